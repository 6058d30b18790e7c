#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "sched/policy_fixture.h"

namespace headrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Lists;
using testing::preempted;
using testing::rows_of;

TEST(ContinuousPolicy, NothingWaitsNothingRuns) {
  Lists lists({}, 8);
  const StepPlan plan = lists.step();
  EXPECT_THAT(plan.rows, IsEmpty());
  EXPECT_EQ(plan.why, "nothing waits");
}

TEST(ContinuousPolicy, CutsThePromptIntoChunksOfTheBudget) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 6, .watermark = 0}, 16);
  lists.add(1, 14, 100);
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:0+6"));
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:6+6"));
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:12+2*"));
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:14+1*"));
}

TEST(ContinuousPolicy, DecodeRowsComeFirstThenPrefillOldestFirst) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 6, .watermark = 0}, 32);
  lists.add(1, 3, 100);
  lists.add(2, 8, 200);
  StepPlan plan = lists.step();
  EXPECT_THAT(rows_of(plan), ElementsAre("1:0+3*", "2:0+3"));
  EXPECT_EQ(plan.why, "nothing waits");
  lists.add(3, 8, 300);
  plan = lists.step();
  EXPECT_THAT(rows_of(plan), ElementsAre("1:3+1*", "2:3+5*"));
  EXPECT_EQ(plan.num_rows, 6);
  EXPECT_EQ(plan.num_prefill_rows, 5);
  EXPECT_EQ(plan.num_logits, 2);
  EXPECT_EQ(plan.why, "budget");
  plan = lists.step();
  EXPECT_THAT(rows_of(plan), ElementsAre("1:4+1*", "2:8+1*", "3:0+4"));
  EXPECT_EQ(plan.num_prefill_rows, 4);
}

TEST(ContinuousPolicy, NoMoreSequencesThanPlaces) {
  Lists lists({.max_sequences = 2, .max_step_tokens = 64, .watermark = 0}, 32);
  lists.add(1, 3, 100);
  lists.add(2, 3, 200);
  lists.add(3, 3, 300);
  const StepPlan plan = lists.step();
  EXPECT_THAT(rows_of(plan), ElementsAre("1:0+3*", "2:0+3*"));
  EXPECT_EQ(plan.why, "sequences");
}

TEST(ContinuousPolicy, StartsOnlyWhatLeavesTheWatermark) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 64, .watermark = 0.25}, 8);
  lists.add(1, 12, 100);  // 3 of 8 blocks
  lists.add(2, 16, 200);  // 4 more would leave 1; the watermark is 2
  lists.add(3, 4, 300);   // would fit, but does not overtake
  const StepPlan plan = lists.step();
  EXPECT_THAT(rows_of(plan), ElementsAre("1:0+12*"));
  EXPECT_EQ(plan.why, "blocks");
  EXPECT_EQ(lists.kv.occupancy().used, 3);
}

TEST(ContinuousPolicy, AloneASequenceMayTakeEverything) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 64, .watermark = 0.5}, 8);
  lists.add(1, 32, 100);
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:0+32*"));
  EXPECT_EQ(lists.kv.occupancy().used, 8);
}

TEST(ContinuousPolicy, BlocksThatARunningPromptStillNeedsAreNotGivenAway) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 8, .watermark = 0}, 8);
  lists.add(1, 20, 100);  // 5 blocks, 2 of them in the first chunk
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:0+8"));
  lists.find(1).num_computed = 8;
  lists.add(2, 16, 200);  // 4 blocks: 6 are free, but 3 are promised
  lists.step();
  const StepPlan plan = lists.step();
  EXPECT_THAT(rows_of(plan), ElementsAre("1:16+4*"));
  EXPECT_EQ(plan.why, "blocks");
}

TEST(ContinuousPolicy, PrefixHitShortensThePrefill) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 64, .watermark = 0}, 16);
  lists.add(1, 10, 100);
  lists.step();
  lists.add(2, 11, 100);  // begins with the same ten
  const StepPlan plan = lists.step();
  EXPECT_THAT(rows_of(plan), ElementsAre("1:10+1*", "2:8+3*"));
  ASSERT_EQ(plan.started.size(), 1U);
  EXPECT_EQ(plan.started[0].num_cached, 8);
}

TEST(ContinuousPolicy, ASequenceMayRefuseCachedPrefixes) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 64, .watermark = 0}, 16);
  lists.add(1, 10, 100);
  lists.step();
  lists.add(2, 11, 100).use_prefix_cache = false;
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:10+1*", "2:0+11*"));
}

TEST(ContinuousPolicy, TheYoungestIsPreemptedAndTheOldestProgresses) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 64, .watermark = 0}, 4);
  lists.add(1, 4, 100);
  lists.add(2, 4, 200);
  lists.add(3, 4, 300);
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:0+4*", "2:0+4*", "3:0+4*"));
  // Each needs a second block: one is free, for 1. For 2 the youngest goes, whose one block serves.
  const StepPlan plan = lists.step();
  EXPECT_THAT(preempted(plan), ElementsAre(3));
  EXPECT_THAT(rows_of(plan), ElementsAre("1:4+1*", "2:4+1*"));
  EXPECT_EQ(lists.waiting.front().id.value, 3U);
  // It cannot come back before blocks are there.
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:5+1*", "2:5+1*"));
}

TEST(ContinuousPolicy, APreemptedSequenceMayFindItsOwnTextAgain) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 64, .watermark = 0}, 4);
  lists.add(1, 7, 100);
  lists.add(2, 8, 200);
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:0+7*", "2:0+8*"));
  // 1 still has room; 2 needs a third block and is the youngest: it waits, computed text and all.
  StepPlan plan = lists.step();
  EXPECT_THAT(rows_of(plan), ElementsAre("1:7+1*"));
  EXPECT_EQ(plan.why, "blocks");
  EXPECT_THAT(plan.preempted, IsEmpty());
  plan = lists.step();  // now 1 needs one
  EXPECT_THAT(preempted(plan), ElementsAre(2));
  EXPECT_THAT(rows_of(plan), ElementsAre("1:8+1*"));
  lists.kv.close(lists.find(1).table);
  lists.running.clear();
  plan = lists.step();
  ASSERT_EQ(plan.started.size(), 1U);
  EXPECT_EQ(plan.started[0].num_cached, 4);  // its second block was evicted for 1
  EXPECT_THAT(rows_of(plan), ElementsAre("2:4+5*"));
}

TEST(ContinuousPolicy, LowestPriorityIsPreemptedBeforeTheYoungest) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 64, .watermark = 0}, 3);
  lists.add(1, 4, 100).priority = 5;
  lists.add(2, 4, 200);
  lists.add(3, 4, 300);
  lists.step();
  const StepPlan plan = lists.step();
  EXPECT_THAT(preempted(plan), ElementsAre(1));  // for 2; 3 ranks last and waits
  EXPECT_THAT(rows_of(plan), ElementsAre("2:4+1*"));
}

TEST(ContinuousPolicy, APlannedRowOfAPreemptedSequenceIsTakenBack) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 4, .watermark = 0}, 3);
  lists.add(1, 4, 100).priority = 5;
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:0+4*"));
  lists.find(1).priority = 0;
  lists.add(2, 2, 200);
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:4+1*", "2:0+2*"));
  // 1 computes again from its start, as after a preemption that left its table: the older prefills,
  // the younger decodes.
  lists.find(1).num_computed = 0;
  lists.kv.close(lists.find(1).table);
  lists.find(1).table = lists.kv.open(7);
  const TableId hog = lists.kv.open(8);
  ASSERT_TRUE(lists.kv.reserve(hog, 0, 8));
  const StepPlan plan = lists.step();
  EXPECT_THAT(preempted(plan), ElementsAre(2));
  EXPECT_THAT(rows_of(plan), ElementsAre("1:0+3"));
  EXPECT_EQ(plan.num_rows, 3);
  EXPECT_EQ(plan.num_prefill_rows, 3);
  EXPECT_EQ(plan.num_logits, 0);
}

TEST(ContinuousPolicy, AChunkShrinksToTheBlocksThatAreThere) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 64, .watermark = 0}, 4);
  lists.add(1, 12, 100);
  lists.step();
  SchedSequence& first = lists.find(1);
  lists.kv.close(first.table);
  first.table = lists.kv.open(5);
  first.num_computed = 0;
  const TableId hog = lists.kv.open(6);
  ASSERT_TRUE(lists.kv.reserve(hog, 0, 8));
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:0+8"));
}

TEST(ContinuousPolicy, StalledSequencesTakeNoRowsAndNoPlace) {
  Lists lists({.max_sequences = 1, .max_step_tokens = 64, .watermark = 0}, 8);
  lists.add(1, 4, 100);
  lists.step();
  lists.find(1).stalled = true;
  lists.add(2, 4, 200);
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("2:0+4*"));
  // Back again, there are two for one place: the oldest goes first.
  lists.find(1).stalled = false;
  const StepPlan plan = lists.step();
  EXPECT_THAT(rows_of(plan), ElementsAre("1:4+1*"));
  EXPECT_EQ(plan.why, "sequences");
}

TEST(ContinuousPolicy, StalledSequencesGiveTheirBlocksToANewOne) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 64, .watermark = 0}, 4);
  lists.add(1, 12, 100);
  lists.step();
  lists.find(1).stalled = true;
  lists.add(2, 8, 200);
  const StepPlan plan = lists.step();
  EXPECT_THAT(preempted(plan), ElementsAre(1));
  EXPECT_THAT(rows_of(plan), ElementsAre("2:0+8*"));
}

TEST(ContinuousPolicy, LogitRowsOfAScoredPromptAreBounded) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 64, .max_logit_rows = 3, .watermark = 0}, 16);
  lists.add(1, 2, 100);
  lists.step();
  lists.add(2, 5, 200).logits_from = 0;
  StepPlan plan = lists.step();
  EXPECT_THAT(rows_of(plan), ElementsAre("1:2+1*", "2:0+2"));
  EXPECT_EQ(plan.rows[1].num_logits, 2);
  EXPECT_EQ(plan.num_logits, 3);
  lists.find(2).logits_from = 2;
  lists.add(3, 4, 300);
  plan = lists.step();
  // 3 may start, but its last row has to wait for a place among the logits.
  EXPECT_THAT(rows_of(plan), ElementsAre("1:3+1*", "2:2+2", "3:0+3"));
  EXPECT_EQ(plan.rows[2].num_logits, 0);
  lists.find(2).logits_from = 4;
  plan = lists.step();
  EXPECT_THAT(rows_of(plan), ElementsAre("1:4+1*", "2:4+1*", "3:3+1*"));
  EXPECT_EQ(plan.num_logits, 3);
}

TEST(ContinuousPolicy, AnOldPromptProgressesBesideAFullBatchOfDecodes) {
  Lists lists({.max_sequences = 2, .max_step_tokens = 2, .watermark = 0}, 16);
  lists.add(1, 2, 100);
  lists.add(2, 2, 200);
  lists.step();
  lists.step();
  lists.step();
  // Two decode; an older one, which had stalled, comes back with text to compute.
  ASSERT_EQ(lists.running.size(), 2U);
  lists.add(0, 6, 300);
  SchedSequence old = lists.waiting.front();
  lists.waiting.clear();
  old.table = lists.kv.open(0);
  old.has_table = true;
  lists.running.push_front(old);
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:4+1*", "0:0+1"));
}

TEST(ContiguousKv, ASequenceEntersWithTheBlocksOfTheWholeReservation) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 64, .watermark = 0, .reserved_tokens = 16},
              10);
  lists.add(1, 3, 100);
  lists.add(2, 3, 200);
  lists.add(3, 3, 300);  // 2 blocks are left, and it needs one; but 4 are to be reserved
  const StepPlan plan = lists.step();
  EXPECT_THAT(rows_of(plan), ElementsAre("1:0+3*", "2:0+3*"));
  EXPECT_EQ(plan.why, "blocks");
  EXPECT_EQ(lists.kv.occupancy().used, 8);
  // Growing takes none.
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:3+1*", "2:3+1*"));
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:4+1*", "2:4+1*"));
  EXPECT_EQ(lists.kv.occupancy().used, 8);
}

TEST(ContiguousKv, AloneASequenceTakesWhatItNeedsOfAMemorySmallerThanAReservation) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 64, .watermark = 0, .reserved_tokens = 64},
              8);
  lists.add(1, 9, 100);
  lists.add(2, 3, 200);
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:0+9*"));
  EXPECT_EQ(lists.kv.occupancy().used, 3);
}

TEST(ContiguousKv, APreemptedSequenceIsReservedItsWholeLengthAgain) {
  Lists lists({.max_sequences = 4, .max_step_tokens = 64, .watermark = 0, .reserved_tokens = 8}, 4);
  lists.add(1, 8, 100);
  lists.add(2, 8, 200);
  EXPECT_THAT(rows_of(lists.step()), ElementsAre("1:0+8*", "2:0+8*"));
  StepPlan plan = lists.step();  // both are at the end of what was reserved
  EXPECT_THAT(preempted(plan), ElementsAre(2));
  EXPECT_THAT(rows_of(plan), ElementsAre("1:8+1*"));
  lists.end(1);
  plan = lists.step();
  EXPECT_EQ(plan.started.size(), 1U);
  EXPECT_EQ(lists.kv.occupancy().used, 3);
}

}  // namespace
}  // namespace headrace
