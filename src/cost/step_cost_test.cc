#include "cost/step_cost.h"

#include "gtest/gtest.h"

#include "base/random.h"

namespace headrace {
namespace {

// 3 ms, 0.5 ms a decode row, 0.4 ms a prefill row, 10 ns a key.
double true_ms(const StepShape& shape) {
  return 3 + 0.5 * shape.num_decode_rows + 0.4 * shape.num_prefill_rows + 1e-5 * shape.num_keys;
}

Duration millis(double ms) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(ms));
}

StepShape shape_of(std::uint64_t i) {
  const auto draw = [i](std::uint32_t k) { return static_cast<double>(uniform(1, i, k)); };
  StepShape shape{.num_decode_rows = static_cast<int>(draw(0) * 32),
                  .num_prefill_rows = draw(1) < 0.5 ? 0 : static_cast<int>(draw(2) * 256)};
  shape.num_keys = (shape.num_decode_rows + shape.num_prefill_rows) * (draw(3) * 2000);
  return shape;
}

TEST(StepCostModel, LearnsTheCostOfEachPart) {
  StepCostModel model;
  EXPECT_FALSE(model.ready());
  for (std::uint64_t i = 0; i < 200; ++i) {
    const double noise = 0.95 + 0.1 * static_cast<double>(uniform(2, i, 0));
    model.observe(shape_of(i), millis(true_ms(shape_of(i)) * noise));
  }
  EXPECT_TRUE(model.ready());
  for (std::uint64_t i = 1000; i < 1100; ++i) {
    const StepShape shape = shape_of(i);
    EXPECT_NEAR(to_millis(model.predict(shape)) / true_ms(shape), 1, 0.08);
  }
}

TEST(StepCostModel, FollowsAMachineThatBecomesBusy) {
  StepCostModel model;
  for (std::uint64_t i = 0; i < 300; ++i) {
    model.observe(shape_of(i), millis(true_ms(shape_of(i))));
  }
  for (std::uint64_t i = 300; i < 1500; ++i) {
    model.observe(shape_of(i), millis(2 * true_ms(shape_of(i))));
  }
  const StepShape shape{.num_decode_rows = 8, .num_prefill_rows = 64, .num_keys = 20000};
  EXPECT_NEAR(to_millis(model.predict(shape)) / true_ms(shape), 2, 0.1);
}

TEST(StepCostModel, OneStalledStepDoesNotSpoilIt) {
  StepCostModel model;
  for (std::uint64_t i = 0; i < 300; ++i) {
    model.observe(shape_of(i), millis(true_ms(shape_of(i))));
  }
  model.observe({.num_decode_rows = 1}, std::chrono::seconds(30));
  const StepShape shape{.num_decode_rows = 8, .num_prefill_rows = 64, .num_keys = 20000};
  EXPECT_NEAR(to_millis(model.predict(shape)) / true_ms(shape), 1, 0.05);
}

TEST(StepCostModel, KeepsWhatItKnowsOfPrefillWhileOnlyDecodeComes) {
  StepCostModel model;
  for (std::uint64_t i = 0; i < 300; ++i) {
    model.observe(shape_of(i), millis(true_ms(shape_of(i))));
  }
  const StepShape decode{.num_decode_rows = 8, .num_keys = 8000};
  for (int i = 0; i < 5000; ++i) {
    model.observe(decode, millis(true_ms(decode)));
  }
  const StepShape shape{.num_decode_rows = 8, .num_prefill_rows = 64, .num_keys = 20000};
  EXPECT_NEAR(to_millis(model.predict(shape)) / true_ms(shape), 1, 0.1);
}

TEST(StepCostModel, FitsPrefillRowsIntoALimit) {
  StepCostModel model;
  for (std::uint64_t i = 0; i < 300; ++i) {
    model.observe(shape_of(i), millis(true_ms(shape_of(i))));
  }
  const StepShape decode{.num_decode_rows = 10};  // 8 ms
  EXPECT_NEAR(model.prefill_rows_within(decode, 0, millis(48), 512), 100, 3);
  EXPECT_EQ(model.prefill_rows_within(decode, 0, millis(48), 50), 50);
  EXPECT_EQ(model.prefill_rows_within(decode, 0, millis(5), 512), 0);
  EXPECT_EQ(model.prefill_rows_within(decode, 0, millis(48), 0), 0);
}

}  // namespace
}  // namespace headrace
