#include "app/config_file.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace headrace {
namespace {

class ConfigFile : public ::testing::Test {
 protected:
  ConfigFile() {
    command_.add_option("MODEL", model_);
    command_.add_option("--port", port_);
    command_.add_option("--kv-memory", kv_memory_);
    command_.add_flag("--json", json_);
  }
  ~ConfigFile() override { std::filesystem::remove(path_); }

  // What the file says, on top of these words of the command line.
  Status apply(const std::string& toml, const std::string& words = "") {
    std::ofstream(path_) << toml;
    command_.parse(words, false);
    return apply_config_file(command_, path_);
  }

  const std::string path_ = ::testing::TempDir() + "headrace_config_test.toml";
  CLI::App command_{"", "serve"};
  std::string model_;
  int port_ = 8080;
  std::string kv_memory_ = "auto";
  bool json_ = false;
};

TEST_F(ConfigFile, SetsFlagsAndTheModel) {
  ASSERT_TRUE(apply("model = 'smollm2'\nport = 9000\nkv-memory = '2G'\njson = true\n").ok());
  EXPECT_EQ(model_, "smollm2");
  EXPECT_EQ(port_, 9000);
  EXPECT_EQ(kv_memory_, "2G");
  EXPECT_TRUE(json_);
}

TEST_F(ConfigFile, TheCommandLineGoesBeforeTheFile) {
  ASSERT_TRUE(apply("port = 9000\nkv-memory = '2G'\n", "--port 9001").ok());
  EXPECT_EQ(port_, 9001);
  EXPECT_EQ(kv_memory_, "2G");
}

TEST_F(ConfigFile, AnUnknownKeyIsRefusedByName) {
  const Status status = apply("prot = 9000\n");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.error().message, path_ + ": 'prot' is no flag of serve");
}

TEST_F(ConfigFile, WhatCannotBeReadIsSaid) {
  const Status folder = apply_config_file(command_, "/");
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().message, "/: cannot be read: Is a directory");
  const Status absent = apply_config_file(command_, "/no/such/file");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().message, "/no/such/file: cannot be read: No such file or directory");
}

TEST_F(ConfigFile, AValueOfAnotherTypeIsRefused) {
  EXPECT_FALSE(apply("port = 'many'\n").ok());
  EXPECT_FALSE(apply("port = [1, 2]\n").ok());
}

TEST_F(ConfigFile, BrokenTomlIsRefusedWithItsLine) {
  const Status status = apply("port = 1\nport = = 2\n");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message.rfind(path_ + ":2: ", 0), 0);
}

TEST_F(ConfigFile, AMissingFileIsAnError) {
  EXPECT_FALSE(apply_config_file(command_, "/nowhere/headrace.toml").ok());
}

}  // namespace
}  // namespace headrace
