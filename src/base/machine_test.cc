#include "base/machine.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Machine, SizesArePowersOf1024) {
  EXPECT_EQ(*parse_bytes("0"), 0);
  EXPECT_EQ(*parse_bytes("100000"), 100000);
  EXPECT_EQ(*parse_bytes("3K"), 3072);
  EXPECT_EQ(*parse_bytes("512M"), 536870912);
  EXPECT_EQ(*parse_bytes("4GiB"), 4294967296);
}

TEST(Machine, WhatIsNoSizeIsRefused) {
  for (const char* text :
       {"", "G", "-1", "4 G", "4T", "1.5G", "99999999999999999999", "99999999999999G"}) {
    EXPECT_FALSE(parse_bytes(text).ok()) << text;
  }
}

TEST(Machine, SomeMemoryIsAvailable) { EXPECT_GT(available_memory_bytes(), 1U << 20); }

}  // namespace
}  // namespace headrace
