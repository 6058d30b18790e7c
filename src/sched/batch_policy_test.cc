// Static and dynamic batching: exact plans.
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "sched/policy_fixture.h"

namespace headrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Lists;
using testing::padding_of;
using testing::preempted;
using testing::rows_of;

constexpr Duration kDelay = std::chrono::milliseconds(50);

Lists static_lists(SchedulerLimits limits, int num_blocks) {
  limits.batch_delay = kDelay;
  return {limits, num_blocks, BatchingKind::kStatic};
}

Lists dynamic_lists(SchedulerLimits limits, int num_blocks) {
  limits.batch_delay = kDelay;
  return {limits, num_blocks, BatchingKind::kDynamic};
}

TEST(BatchingKind, IsFoundByItsNameAlone) {
  EXPECT_EQ(batching_kind("static"), BatchingKind::kStatic);
  EXPECT_EQ(batching_kind("dynamic"), BatchingKind::kDynamic);
  EXPECT_EQ(batching_kind("continuous"), BatchingKind::kContinuous);
  EXPECT_EQ(batching_kind("Static"), std::nullopt);
  EXPECT_EQ(batching_kind(""), std::nullopt);
  EXPECT_EQ(name_of(BatchingKind::kDynamic), "dynamic");
}

TEST(StaticPolicy, WaitsForAFullBatch) {
  Lists lists = static_lists({.max_sequences = 2, .max_step_tokens = 64, .watermark = 0}, 16);
  lists.add(1, 3, 100);
  StepPlan plan = lists.step();
  EXPECT_THAT(plan.rows, IsEmpty());
  EXPECT_EQ(plan.why, "batch");
  EXPECT_EQ(plan.wait_until, lists.now + kDelay);
  lists.add(2, 3, 200);
  plan = lists.step();
  EXPECT_THAT(rows_of(plan), ElementsAre("1:0+3*", "2:0+3*"));
  EXPECT_EQ(plan.wait_until, std::nullopt);
}

TEST(StaticPolicy, RunsAPartBatchWhenTheFirstHasWaitedForTheDelay) {
  Lists lists = static_lists({.max_sequences = 4, .max_step_tokens = 64, .watermark = 0}, 16);
  lists.add(1, 3, 100);
  lists.now += kDelay / 2;
  lists.add(2, 3, 200);
  EXPECT_EQ(lists.step().wait_until, TimePoint{} + kDelay);
  lists.now = TimePoint{} + kDelay;
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:0+3*", "2:0+3*"));
}

TEST(StaticPolicy, RunsAtOnceWhenNoMoreCanCome) {
  Lists lists = static_lists({.max_sequences = 4, .max_step_tokens = 64, .watermark = 0}, 16);
  lists.add(1, 3, 100);
  lists.more_may_come = false;
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:0+3*"));
}

TEST(StaticPolicy, PadsPromptsToTheLongestBeforeItDecodes) {
  Lists lists = static_lists({.max_sequences = 3, .max_step_tokens = 11, .watermark = 0}, 16);
  lists.add(1, 3, 100);
  lists.add(2, 8, 200);
  lists.add(3, 6, 300);
  StepPlan plan = lists.step();
  EXPECT_THAT(rows_of(plan), ElementsAre("1:0+3*", "2:0+8*"));
  EXPECT_THAT(plan.padding, IsEmpty());
  plan = lists.step();  // 1 and 2 could decode
  EXPECT_THAT(rows_of(plan), ElementsAre("3:0+6*"));
  EXPECT_THAT(padding_of(plan), ElementsAre("6+2", "3+3"));
  EXPECT_EQ(plan.num_rows, 11);
  EXPECT_EQ(plan.num_prefill_rows, 11);
  EXPECT_EQ(plan.num_padding_rows, 5);
  plan = lists.step();
  EXPECT_THAT(plan.rows, IsEmpty());
  EXPECT_THAT(padding_of(plan), ElementsAre("6+2"));
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:3+1*", "2:8+1*", "3:6+1*"));
}

TEST(StaticPolicy, WhoHasEndedKeepsItsPlaceAndARow) {
  Lists lists = static_lists({.max_sequences = 2, .max_step_tokens = 64, .watermark = 0}, 16);
  lists.add(1, 4, 100);
  lists.add(2, 4, 200);
  lists.step();
  lists.step();
  lists.end(1);
  lists.add(3, 4, 300);
  const StepPlan plan = lists.step();
  EXPECT_THAT(rows_of(plan), ElementsAre("2:5+1*"));
  EXPECT_THAT(padding_of(plan), ElementsAre("5+1"));
  EXPECT_EQ(plan.num_prefill_rows, 0);
  EXPECT_EQ(plan.num_rows, 2);
  // When the batch has ended the next may form.
  lists.end(2);
  EXPECT_EQ(lists.step().why, "batch");
  lists.now += kDelay;
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("3:0+4*"));
}

TEST(StaticPolicy, EqualPromptsNeedNoPadding) {
  Lists lists = static_lists({.max_sequences = 2, .max_step_tokens = 64, .watermark = 0}, 16);
  lists.add(1, 4, 100);
  lists.add(2, 4, 200);
  EXPECT_EQ(lists.step().num_padding_rows, 0);
  EXPECT_EQ(lists.step().num_padding_rows, 0);
}

TEST(StaticPolicy, AStalledSequenceHoldsUpNoBatch) {
  Lists lists = static_lists({.max_sequences = 1, .max_step_tokens = 64, .watermark = 0}, 16);
  lists.add(1, 4, 100);
  lists.step();
  lists.find(1).stalled = true;
  lists.add(2, 4, 200);
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("2:0+4*"));
  lists.find(1).stalled = false;
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:4+1*"));  // the older of two for one place
}

TEST(StaticPolicy, APreemptedSequenceComesBackIntoItsBatch) {
  Lists lists = static_lists({.max_sequences = 2, .max_step_tokens = 64, .watermark = 0}, 4);
  lists.add(1, 8, 100);
  lists.add(2, 8, 200);
  lists.add(3, 4, 300);
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:0+8*", "2:0+8*"));
  StepPlan plan = lists.step();
  EXPECT_THAT(preempted(plan), ElementsAre(2));
  EXPECT_THAT(rows_of(plan), ElementsAre("1:8+1*"));
  EXPECT_THAT(plan.padding, IsEmpty());  // it waits, and has not ended
  lists.end(1);
  plan = lists.step();
  ASSERT_EQ(plan.started.size(), 1U);
  EXPECT_EQ(plan.started[0].id.value, 2U);
}

TEST(StaticPolicy, ABatchLargerThanTheMemoryStartsWhatFits) {
  Lists lists = static_lists({.max_sequences = 2, .max_step_tokens = 64, .watermark = 0}, 4);
  lists.add(1, 10, 100);
  lists.add(2, 10, 200);
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:0+10*"));
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:10+1*"));
  lists.end(1);
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("2:0+10*"));
}

TEST(DynamicPolicy, RunsAPreferredSizeAtOnce) {
  Lists lists = dynamic_lists({.max_sequences = 8, .max_step_tokens = 64, .watermark = 0}, 32);
  lists.add(1, 2, 100);
  StepPlan plan = lists.step();
  EXPECT_EQ(plan.why, "batch");
  EXPECT_EQ(plan.wait_until, lists.now + kDelay);
  lists.add(2, 2, 200);  // a quarter
  lists.add(3, 2, 300);
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:0+2*", "2:0+2*"));
}

TEST(DynamicPolicy, TakesTheLargestPreferredSize) {
  Lists lists = dynamic_lists({.max_sequences = 8, .max_step_tokens = 64, .watermark = 0}, 32);
  for (std::uint64_t id = 1; id <= 5; ++id) {
    lists.add(id, 1, static_cast<TokenId>(id * 100));
  }
  EXPECT_EQ(lists.step().rows.size(), 4U);
}

TEST(DynamicPolicy, RunsWhatIsThereAfterTheDelay) {
  Lists lists = dynamic_lists({.max_sequences = 8, .max_step_tokens = 64, .watermark = 0}, 32);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    lists.add(id, 1, static_cast<TokenId>(id * 100));
  }
  lists.now += kDelay;
  EXPECT_EQ(lists.step().rows.size(), 3U);
}

TEST(DynamicPolicy, NoOneEntersBeforeTheBatchHasEnded) {
  Lists lists = dynamic_lists({.max_sequences = 2, .max_step_tokens = 64, .watermark = 0}, 16);
  lists.add(1, 2, 100);
  lists.add(2, 6, 200);
  lists.step();
  lists.add(3, 2, 300);
  lists.end(1);
  const StepPlan plan = lists.step();
  EXPECT_THAT(rows_of(plan), ElementsAre("2:6+1*"));
  EXPECT_THAT(plan.padding, IsEmpty());  // ragged: no one computes for those who have ended
  lists.end(2);
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("3:0+2*"));  // a single one is a preferred size
}

TEST(DynamicPolicy, DecodesBesideThePromptsOfItsBatch) {
  Lists lists = dynamic_lists({.max_sequences = 2, .max_step_tokens = 6, .watermark = 0}, 16);
  lists.add(1, 3, 100);
  lists.add(2, 8, 200);
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:0+3*", "2:0+3"));
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:3+1*", "2:3+5*"));
}

TEST(DynamicPolicy, WhoeverRanUnderAnotherPolicyBelongsToTheBatch) {
  Lists first({.max_sequences = 4, .max_step_tokens = 64, .watermark = 0}, 16);
  first.add(1, 4, 100);
  first.step();
  const auto policy = make_policy(BatchingKind::kDynamic, {.max_sequences = 4, .watermark = 0});
  first.add(2, 4, 200);
  const std::vector<SchedSequence> run(first.running.begin(), first.running.end());
  const std::vector<SchedSequence> wait(first.waiting.begin(), first.waiting.end());
  const StepPlan plan = policy->schedule({.running = run, .waiting = wait}, first.kv);
  EXPECT_THAT(rows_of(plan), ElementsAre("1:4+1*"));
  EXPECT_THAT(plan.started, IsEmpty());
}

}  // namespace
}  // namespace headrace
