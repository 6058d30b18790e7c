#include "admission/admission.h"

#include "gtest/gtest.h"

namespace headrace {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Verdict = Admission::Verdict;

// Four run for 8 s each: a place every 2 s. 1,000 prompt tokens a second.
Backlog busy(int num_waiting, std::int64_t waiting_tokens) {
  return {.num_waiting = num_waiting,
          .num_running = 4,
          .max_running = 4,
          .waiting_tokens = waiting_tokens,
          .prefill_tokens_per_s = 1000,
          .run_s = 8};
}

TEST(Admission, AnIdleEngineTakesEverything) {
  const Admission admission = admit({.prompt_tokens = 5000, .time_left = milliseconds(1)},
                                    {.max_running = 4, .prefill_tokens_per_s = 1000, .run_s = 8},
                                    {.max_queue = 0, .max_queue_tokens = 10, .ttft = seconds(1)});
  EXPECT_EQ(admission.verdict, Verdict::kAccept);
  EXPECT_EQ(admission.predicted_ttft, seconds(5));
}

TEST(Admission, PredictsThePlaceOrThePromptsBeforeWhicheverIsLater) {
  EXPECT_EQ(admit({.prompt_tokens = 500}, busy(0, 0), {}).predicted_ttft, milliseconds(2500));
  EXPECT_EQ(admit({.prompt_tokens = 500}, busy(2, 100), {}).predicted_ttft, milliseconds(6500));
  EXPECT_EQ(admit({.prompt_tokens = 500}, busy(2, 9000), {}).predicted_ttft, milliseconds(9500));
}

TEST(Admission, PlacesThatAreFreeCostNoWait) {
  Backlog backlog = busy(1, 100);
  backlog.num_running = 2;
  EXPECT_EQ(admit({.prompt_tokens = 400}, backlog, {}).predicted_ttft, milliseconds(500));
}

TEST(Admission, TheQueueIsBoundedByRequests) {
  const AdmissionLimits limits{.max_queue = 2};
  EXPECT_EQ(admit({.prompt_tokens = 1}, busy(1, 1), limits).verdict, Verdict::kAccept);
  const Admission full = admit({.prompt_tokens = 1}, busy(2, 2), limits);
  EXPECT_EQ(full.verdict, Verdict::kQueueFull);
  EXPECT_EQ(full.why, "requests");
  EXPECT_EQ(full.retry_after, seconds(2));  // one has to end
  EXPECT_EQ(admit({.prompt_tokens = 1}, busy(4, 4), limits).retry_after, seconds(6));
}

TEST(Admission, TheQueueIsBoundedByTokens) {
  const AdmissionLimits limits{.max_queue = 100, .max_queue_tokens = 1000};
  EXPECT_EQ(admit({.prompt_tokens = 100}, busy(1, 900), limits).verdict, Verdict::kAccept);
  const Admission full = admit({.prompt_tokens = 600}, busy(1, 900), limits);
  EXPECT_EQ(full.verdict, Verdict::kQueueFull);
  EXPECT_EQ(full.why, "tokens");
  EXPECT_EQ(full.retry_after, milliseconds(500));
  // A prompt longer than the whole queue may wait alone.
  EXPECT_EQ(admit({.prompt_tokens = 6000}, busy(0, 0), limits).verdict, Verdict::kAccept);
}

TEST(Admission, ADeadlineThatCannotBeMetIsRefusedAtOnce) {
  const Admission late = admit({.prompt_tokens = 500, .time_left = seconds(4)}, busy(2, 100), {});
  EXPECT_EQ(late.verdict, Verdict::kLate);
  EXPECT_EQ(late.why, "deadline");
  EXPECT_EQ(late.retry_after, milliseconds(2500));
  EXPECT_EQ(admit({.prompt_tokens = 500, .time_left = seconds(7)}, busy(2, 100), {}).verdict,
            Verdict::kAccept);
}

TEST(Admission, AnObjectiveIsKeptWithSomeRoom) {
  const AdmissionLimits limits{.ttft = seconds(10)};
  EXPECT_EQ(admit({.prompt_tokens = 500}, busy(2, 100), limits).verdict, Verdict::kAccept);
  const Admission late = admit({.prompt_tokens = 500}, busy(3, 100), limits);  // 8.5 s
  EXPECT_EQ(late.verdict, Verdict::kLate);
  EXPECT_EQ(late.why, "slo");
  EXPECT_EQ(late.retry_after, milliseconds(500));
}

TEST(Admission, NothingIsPredictedBeforeAnythingIsKnown) {
  const Backlog unknown{
      .num_waiting = 50, .num_running = 1, .max_running = 1, .waiting_tokens = 99999};
  const Admission admission =
      admit({.prompt_tokens = 100, .time_left = seconds(1)}, unknown, {.ttft = seconds(1)});
  EXPECT_EQ(admission.verdict, Verdict::kAccept);
  EXPECT_EQ(admission.predicted_ttft, Duration{0});
}

}  // namespace
}  // namespace headrace
