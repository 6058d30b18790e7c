#include "kv/kv_manager.h"

#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kBlock = 4;

std::vector<TokenId> text(int num_tokens, TokenId first = 100) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(num_tokens));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

std::vector<int> ids(const KvManager& kv, TableId table, int group = 0) {
  std::vector<int> result;
  for (const BlockId block : kv.blocks(table, group)) {
    result.push_back(block.value);
  }
  return result;
}

std::vector<int> occupancy(const KvManager& kv) {
  const KvOccupancy o = kv.occupancy();
  return {o.free, o.cached, o.used};
}

// Computes and commits these tokens in a new table.
TableId filled(KvManager& kv, const std::vector<TokenId>& tokens, std::uint64_t salt = 0) {
  const TableId table = kv.open(salt);
  const int num_cached = kv.match_prefix(table, tokens);
  EXPECT_TRUE(kv.reserve(table, num_cached, static_cast<int>(tokens.size())));
  kv.commit(table, tokens);
  kv.check();
  return table;
}

TEST(KvManager, HandsOutBlocksFromOneOnAndNeverTheDummy) {
  KvManager kv({{}}, 4, kBlock, true);
  const TableId table = kv.open(0);
  EXPECT_EQ(kv.blocks_needed(table, 0, 9), 3);
  ASSERT_TRUE(kv.reserve(table, 0, 9));
  EXPECT_THAT(ids(kv, table), ElementsAre(1, 2, 3));
  EXPECT_EQ(kv.held_blocks(table), 3);
  EXPECT_THAT(occupancy(kv), ElementsAre(1, 0, 3));
  EXPECT_EQ(kv.blocks_needed(table, 9, 12), 0);
  EXPECT_EQ(kv.blocks_needed(table, 9, 13), 1);
  kv.check();
}

TEST(KvManager, ReserveGivesAllBlocksOrNone) {
  KvManager kv({{}}, 2, kBlock, true);
  const TableId table = kv.open(0);
  EXPECT_FALSE(kv.reserve(table, 0, 9));
  EXPECT_THAT(ids(kv, table), IsEmpty());
  EXPECT_THAT(occupancy(kv), ElementsAre(2, 0, 0));
  EXPECT_TRUE(kv.reserve(table, 0, 8));
  kv.check();
}

TEST(KvManager, CloseKeepsPublishedBlocksAndFreesTheRest) {
  KvManager kv({{}}, 4, kBlock, true);
  const TableId table = filled(kv, text(10));
  EXPECT_THAT(occupancy(kv), ElementsAre(1, 0, 3));
  kv.close(table);
  EXPECT_THAT(occupancy(kv), ElementsAre(2, 2, 0));
  kv.check();
}

TEST(KvManager, WithoutPrefixCacheNothingStays) {
  KvManager kv({{}}, 4, kBlock, false);
  kv.close(filled(kv, text(10)));
  EXPECT_THAT(occupancy(kv), ElementsAre(4, 0, 0));
  const TableId table = kv.open(0);
  EXPECT_EQ(kv.match_prefix(table, text(10)), 0);
}

TEST(KvManager, PrefixHitIsWholeBlocksAndLeavesOneToken) {
  KvManager kv({{}}, 8, kBlock, true);
  kv.close(filled(kv, text(12)));
  struct Case {
    int num_tokens;
    int hit;
  };
  for (const Case c : {Case{3, 0},
                       Case{4, 0},
                       Case{5, 4},
                       Case{8, 4},
                       Case{9, 8},
                       Case{12, 8},
                       Case{13, 12},
                       Case{40, 12}}) {
    const TableId table = kv.open(0);
    EXPECT_EQ(kv.match_prefix(table, text(c.num_tokens)), c.hit) << c.num_tokens;
    EXPECT_EQ(kv.held_blocks(table), c.hit / kBlock);
    kv.check();
    kv.close(table);
  }
}

TEST(KvManager, PrefixHitSharesBlocks) {
  KvManager kv({{}}, 8, kBlock, true);
  const TableId first = filled(kv, text(10));
  const TableId second = kv.open(0);
  EXPECT_EQ(kv.match_prefix(second, text(12)), 8);
  EXPECT_THAT(ids(kv, second), ElementsAre(1, 2));
  ASSERT_TRUE(kv.reserve(second, 8, 12));
  EXPECT_THAT(ids(kv, second), ElementsAre(1, 2, 4));
  EXPECT_THAT(occupancy(kv), ElementsAre(4, 0, 4));
  kv.close(first);
  EXPECT_THAT(occupancy(kv), ElementsAre(5, 0, 3));
  kv.check();
}

TEST(KvManager, OtherTextAfterTheSameStartHitsTheStartOnly) {
  KvManager kv({{}}, 8, kBlock, true);
  kv.close(filled(kv, text(12)));
  std::vector<TokenId> other = text(12);
  other[5] = 7;
  const TableId table = kv.open(0);
  EXPECT_EQ(kv.match_prefix(table, other), 4);
}

TEST(KvManager, OtherSaltIsAMiss) {
  KvManager kv({{}}, 8, kBlock, true);
  kv.close(filled(kv, text(12), 1));
  const TableId other = kv.open(2);
  EXPECT_EQ(kv.match_prefix(other, text(12)), 0);
  const TableId same = kv.open(1);
  EXPECT_EQ(kv.match_prefix(same, text(12)), 8);
}

TEST(KvManager, EqualHashOfOtherTextIsAMiss) {
  const BlockHasher all_equal = [](const BlockHash&, std::span<const TokenId>, std::uint64_t) {
    return BlockHash{1, 2};
  };
  KvManager kv({{}}, 16, kBlock, true, all_equal);
  kv.close(filled(kv, text(12, 100)));
  kv.close(filled(kv, text(12, 500)));
  kv.close(filled(kv, text(12, 100), 9));

  const TableId miss = kv.open(0);
  EXPECT_EQ(kv.match_prefix(miss, text(12, 900)), 0);
  // The second block's tokens are known, but after another first block.
  std::vector<TokenId> crossed = text(12, 100);
  std::ranges::copy(text(4, 500), crossed.begin());
  const TableId crossing = kv.open(0);
  EXPECT_EQ(kv.match_prefix(crossing, crossed), 4);
  const TableId hit = kv.open(0);
  EXPECT_EQ(kv.match_prefix(hit, text(12, 500)), 8);
  kv.check();
}

TEST(KvManager, HashesOfTextsDifferBySaltParentAndTokens) {
  const std::vector<TokenId> tokens = text(4);
  const BlockHash plain = hash_block({}, tokens, 0);
  EXPECT_EQ(plain, hash_block({}, tokens, 0));
  EXPECT_NE(plain, hash_block({}, tokens, 1));
  EXPECT_NE(plain, hash_block(plain, tokens, 0));
  EXPECT_NE(plain, hash_block({}, text(4, 101), 0));
}

TEST(KvManager, EvictsTheOldestTextFromItsEnd) {
  KvManager kv({{}}, 5, kBlock, true);
  kv.close(filled(kv, text(9, 100)));  // blocks 1 2, and 3 partly
  kv.close(filled(kv, text(8, 500)));  // two more
  EXPECT_THAT(occupancy(kv), ElementsAre(1, 4, 0));

  const TableId table = kv.open(0);
  ASSERT_TRUE(kv.reserve(table, 0, 8));  // the free one, then the end of the oldest text
  EXPECT_EQ(kv.stats().evictions, 1);
  EXPECT_THAT(occupancy(kv), ElementsAre(0, 3, 2));
  kv.check();
  kv.close(table);

  const TableId old_text = kv.open(0);
  EXPECT_EQ(kv.match_prefix(old_text, text(9, 100)), 4);
  const TableId new_text = kv.open(0);
  EXPECT_EQ(kv.match_prefix(new_text, text(9, 500)), 8);
  kv.check();
}

TEST(KvManager, UseMakesCachedTextYoung) {
  KvManager kv({{}}, 4, kBlock, true);
  kv.close(filled(kv, text(8, 100)));
  kv.close(filled(kv, text(8, 500)));
  const TableId user = kv.open(0);
  EXPECT_EQ(kv.match_prefix(user, text(9, 100)), 8);
  kv.close(user);
  const TableId table = kv.open(0);
  ASSERT_TRUE(kv.reserve(table, 0, 8));  // evicts both of 500's
  kv.close(table);
  const TableId gone = kv.open(0);
  EXPECT_EQ(kv.match_prefix(gone, text(9, 500)), 0);
  const TableId stays = kv.open(0);
  EXPECT_EQ(kv.match_prefix(stays, text(9, 100)), 8);
}

TEST(KvManager, UsedBlocksAreNeverEvicted) {
  KvManager kv({{}}, 3, kBlock, true);
  const TableId user = filled(kv, text(8));
  const TableId table = kv.open(0);
  EXPECT_FALSE(kv.reserve(table, 0, 8));
  EXPECT_TRUE(kv.reserve(table, 0, 4));
  EXPECT_THAT(ids(kv, user), ElementsAre(1, 2));
}

TEST(KvManager, TheSameTextComputedTwiceIsPublishedOnce) {
  KvManager kv({{}}, 8, kBlock, true);
  const TableId first = kv.open(0);
  const TableId second = kv.open(0);
  ASSERT_TRUE(kv.reserve(first, 0, 8));
  ASSERT_TRUE(kv.reserve(second, 0, 8));
  kv.commit(first, text(8));
  kv.commit(second, text(8));
  kv.check();
  kv.close(second);
  EXPECT_THAT(occupancy(kv), ElementsAre(6, 0, 2));
  kv.close(first);
  EXPECT_THAT(occupancy(kv), ElementsAre(6, 2, 0));
  kv.check();
}

TEST(KvManager, TextWhoseStartWasEvictedIsAMissUntilItIsThereAgain) {
  KvManager kv({{}}, 5, kBlock, true);
  // Both compute block 0 of the same text; only the first one's is published; the second goes on.
  const TableId first = kv.open(0);
  const TableId second = kv.open(0);
  ASSERT_TRUE(kv.reserve(first, 0, 4));
  ASSERT_TRUE(kv.reserve(second, 0, 8));
  kv.commit(first, text(4));
  kv.commit(second, text(8));
  kv.close(first);
  const TableId filler = kv.open(0);
  ASSERT_TRUE(kv.reserve(filler, 0, 12));  // evicts the published start
  kv.close(filler);
  kv.check();
  const TableId miss = kv.open(0);
  EXPECT_EQ(kv.match_prefix(miss, text(9)), 0);
  kv.close(miss);
  kv.close(filled(kv, text(4)));
  const TableId hit = kv.open(0);
  EXPECT_EQ(kv.match_prefix(hit, text(9)), 8);
  kv.check();
}

TEST(KvManager, CommitInSmallStepsPublishesWhatOneStepPublishes) {
  KvManager kv({{}}, 8, kBlock, true);
  const std::vector<TokenId> tokens = text(11);
  const TableId table = kv.open(0);
  for (int n = 1; n <= 11; ++n) {
    ASSERT_TRUE(kv.reserve(table, n - 1, n));
    kv.commit(table, std::span(tokens).first(static_cast<std::size_t>(n)));
    kv.check();
  }
  kv.close(table);
  EXPECT_THAT(occupancy(kv), ElementsAre(6, 2, 0));
}

TEST(KvManager, TruncateGivesBackWhatLiesBeyond) {
  KvManager kv({{}}, 8, kBlock, true);
  const TableId table = filled(kv, text(5));
  ASSERT_TRUE(kv.reserve(table, 5, 16));
  kv.truncate(table, 9);
  EXPECT_EQ(kv.blocks(table, 0).size(), 3U);
  kv.truncate(table, 5);
  EXPECT_THAT(ids(kv, table), ElementsAre(1, 2));
  kv.check();
}

TEST(KvManager, ClearCacheForgetsTextButNotTables) {
  KvManager kv({{}}, 8, kBlock, true);
  kv.close(filled(kv, text(8, 500)));
  const TableId table = filled(kv, text(10));
  kv.clear_cache();
  EXPECT_THAT(occupancy(kv), ElementsAre(5, 0, 3));
  EXPECT_EQ(kv.held_blocks(table), 3);
  const TableId other = kv.open(0);
  EXPECT_EQ(kv.match_prefix(other, text(10)), 0);
  kv.check();
  kv.close(table);
  EXPECT_THAT(occupancy(kv), ElementsAre(8, 0, 0));
  kv.check();
}

TEST(KvManager, StatsCountAMatchOnceItsTableGetsRoom) {
  KvManager kv({{}}, 4, kBlock, true);
  kv.close(filled(kv, text(9)));
  EXPECT_EQ(kv.stats().prefix_queries, 9);
  const TableId refused = kv.open(0);
  EXPECT_EQ(kv.match_prefix(refused, text(30)), 8);
  EXPECT_FALSE(kv.reserve(refused, 8, 30));
  kv.close(refused);
  EXPECT_EQ(kv.stats().prefix_queries, 9);
  EXPECT_EQ(kv.stats().prefix_hits, 0);
  const TableId taken = kv.open(0);
  EXPECT_EQ(kv.match_prefix(taken, text(10)), 8);
  EXPECT_TRUE(kv.reserve(taken, 8, 10));
  EXPECT_EQ(kv.stats().prefix_queries, 19);
  EXPECT_EQ(kv.stats().prefix_hits, 8);
}

// Windows. A query at p with window w sees [p - w + 1, p].

TEST(KvManager, WindowGroupGivesBackWhatSlidOut) {
  KvManager kv({{0}, {6}}, 16, kBlock, true);
  const std::vector<TokenId> tokens = text(20);
  const TableId table = kv.open(0);
  ASSERT_TRUE(kv.reserve(table, 0, 8));
  EXPECT_EQ(kv.held_blocks(table), 4);
  kv.commit(table, std::span(tokens).first(8));  // position 8 sees 3 ... 8: block 0 still
  EXPECT_EQ(kv.held_blocks(table), 4);
  ASSERT_TRUE(kv.reserve(table, 8, 9));
  kv.commit(table, std::span(tokens).first(9));  // position 9 sees 4 ... 9
  EXPECT_THAT(ids(kv, table, 0), ElementsAre(1, 2, 5));
  EXPECT_THAT(ids(kv, table, 1), ElementsAre(0, 4, 6));
  EXPECT_EQ(kv.held_blocks(table), 5);
  kv.check();
  ASSERT_TRUE(kv.reserve(table, 9, 20));
  kv.commit(table, tokens);  // position 20 sees 15 ... 20: block 3 still
  EXPECT_EQ(ids(kv, table, 1).at(2), 0);
  EXPECT_NE(ids(kv, table, 1).at(3), 0);
  kv.check();
  kv.close(table);
  kv.check();
}

TEST(KvManager, PrefixHitMustHoldInAllGroups) {
  KvManager kv({{0}, {6}}, 16, kBlock, true);
  kv.close(filled(kv, text(17)));
  // 16 tokens: the window needs 11 ... 16, blocks 2 and 3.
  const TableId table = kv.open(0);
  EXPECT_EQ(kv.match_prefix(table, text(17)), 16);
  EXPECT_EQ(ids(kv, table, 1).at(1), 0);
  EXPECT_NE(ids(kv, table, 1).at(2), 0);
  EXPECT_EQ(kv.held_blocks(table), 6);
  kv.check();
}

TEST(KvManager, EvictedWindowBlocksShortenTheHit) {
  KvManager kv({{0}, {6}}, 9, kBlock, true);
  // 4 full and 4 window blocks are published; 0 and 1 of the window slid out first, so they are the
  // oldest.
  kv.close(filled(kv, text(16)));
  EXPECT_THAT(occupancy(kv), ElementsAre(1, 8, 0));
  const TableId filler = kv.open(0);
  ASSERT_TRUE(kv.reserve(
      filler, 0, 6));  // 4 blocks: the free one and three evicted: window 1, 0, then full 3
  kv.close(filler);
  kv.check();
  EXPECT_EQ(kv.stats().evictions, 3);
  const TableId table = kv.open(0);
  // 12 tokens need full 0 ... 2 and window 1, 2: block 1 is gone. 8 need window 0 and 1, 4 need 0.
  // Nothing holds.
  EXPECT_EQ(kv.match_prefix(table, text(16)), 0);
  kv.check();
}

TEST(KvManager, WindowAloneHitsWithoutTheTextsStart) {
  KvManager kv({{6}}, 4, kBlock, true);
  const std::vector<TokenId> tokens = text(16);
  const TableId table = kv.open(0);
  for (int n = 4; n <= 16; n += 4) {
    ASSERT_TRUE(kv.reserve(table, n - 4, n));
    kv.commit(table, std::span(tokens).first(static_cast<std::size_t>(n)));
    kv.check();
  }
  kv.close(table);
  const TableId filler = kv.open(0);
  ASSERT_TRUE(kv.reserve(filler, 0, 8));  // evicts blocks 0 and 1, which slid out first
  kv.close(filler);
  const TableId hit = kv.open(0);
  EXPECT_EQ(kv.match_prefix(hit, text(17)), 16);
  kv.check();
}

TEST(KvManager, MostBlocksForASequence) {
  const KvManager kv({{0}, {8}}, 64, kBlock, true);
  EXPECT_EQ(kv.max_blocks_for(4, 100), 2);
  EXPECT_EQ(kv.max_blocks_for(40, 100), 20);  // one chunk: all of both groups
  EXPECT_EQ(kv.max_blocks_for(40, 4),
            10 + 4);  // the window's 7 and the chunk's 4 touch 4 blocks at most
  EXPECT_EQ(kv.max_blocks_for(40, 1), 10 + 3);
}

TEST(KvManagerDeathTest, MisuseEndsTheProcess) {
  KvManager kv({{}}, 4, kBlock, true);
  const TableId table = filled(kv, text(8));
  EXPECT_DEATH(kv.truncate(table, 7), "num_full");
  kv.close(table);
  EXPECT_DEATH(kv.close(table), "open");
}

}  // namespace
}  // namespace headrace
