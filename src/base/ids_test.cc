#include "base/ids.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "base/utf8.h"

namespace headrace {
namespace {

TEST(Ids, CompareByValue) { EXPECT_LT(BlockId{1}, BlockId{2}); }

}  // namespace
}  // namespace headrace
