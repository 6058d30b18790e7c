// Attention the textbook way, as a yardstick for the flash form: of one query head at a time, all n
// x n scores as float32 in memory, then the softmax in a pass of its own, then the product with the
// values in a third. Its two products run on the same register tiles as the flash form, on as many
// threads. For benchmarks and tests: nothing that serves calls it. One thread calls; memory grows
// to the longest sequence seen.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "kernels/backend.h"

namespace headrace {

// What the scores cover: all pairs, those that the mask hides being computed and then weighted 0,
// or no more than the mask leaves (to a tile of rows by a step of tokens).
enum class NaiveScope : std::uint8_t { kAllPairs, kUnmasked };

class NaiveAttention {
 public:
  // `tier` as in BackendInfo.
  static Result<std::unique_ptr<NaiveAttention>> create(std::string_view tier, int num_threads);
  ~NaiveAttention();
  NaiveAttention(const NaiveAttention&) = delete;
  NaiveAttention& operator=(const NaiveAttention&) = delete;

  // args.out of one sequence of num_tokens queries at positions 0, 1, ..., whose keys and values
  // lie in `blocks`; what Backend::attention() computes. Gives the seconds spent in the two
  // products.
  Result<double> run(const AttentionArgs& args,
                     std::span<const std::int32_t> blocks,
                     int num_tokens,
                     NaiveScope scope);

 private:
  struct State;
  explicit NaiveAttention(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace headrace
