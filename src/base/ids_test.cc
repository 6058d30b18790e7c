#include "base/ids.h"

#include <gtest/gtest.h>
#include <type_traits>
#include <unordered_set>

namespace headrace {
namespace {

TEST(Ids, CompareByValue) {
  EXPECT_LT(BlockId{1}, BlockId{2});
  EXPECT_EQ(SequenceId{7}, SequenceId{7});
  EXPECT_NE(RequestId{1}, RequestId{2});
}

TEST(Ids, DoNotConvertIntoEachOther) {
  EXPECT_FALSE((std::is_convertible_v<RequestId, SequenceId>));
  EXPECT_FALSE((std::is_constructible_v<SequenceId, RequestId>));
  EXPECT_FALSE((std::is_convertible_v<BlockId, std::int32_t>));
}

TEST(Ids, AreKeysOfHashTables) {
  const std::unordered_set<BlockId> blocks = {BlockId{1}, BlockId{2}, BlockId{1}};
  EXPECT_EQ(blocks.size(), 2U);
}

}  // namespace
}  // namespace headrace
