#include "base/result.h"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>

namespace headrace {
namespace {

Result<int> half_of(int value) {
  if (value % 2 != 0) {
    return make_error(ErrorCode::kInvalidArgument, "{} is odd", value);
  }
  return value / 2;
}

Result<int> quarter_of(int value) {
  HR_ASSIGN_OR_RETURN(const int half, half_of(value));
  HR_ASSIGN_OR_RETURN(const int quarter, half_of(half));
  return quarter;
}

Status check_even(int value) {
  HR_RETURN_IF_ERROR(half_of(value));
  return {};
}

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_EQ(*half_of(6), 3);
  EXPECT_EQ(half_of(7).error().message, "7 is odd");
  EXPECT_EQ(half_of(7).error().code, ErrorCode::kInvalidArgument);
}

TEST(Result, TheMacrosPassTheErrorOn) {
  EXPECT_EQ(*quarter_of(12), 3);
  EXPECT_EQ(quarter_of(6).error().message, "3 is odd");
  EXPECT_TRUE(check_even(2).ok());
  EXPECT_EQ(check_even(3).error().message, "3 is odd");
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

TEST(Error, WithinPutsThePlaceBeforeTheMessage) {
  EXPECT_EQ(make_error(ErrorCode::kCorrupt, "bad").within("m.gguf").message, "m.gguf: bad");
}

TEST(ResultDeathTest, ReadingTheValueOfAnErrorEndsTheProcess) {
  EXPECT_DEATH(static_cast<void>(half_of(1).value()), "check failed");
  EXPECT_DEATH(static_cast<void>(half_of(2).error()), "check failed");
}

}  // namespace
}  // namespace headrace
