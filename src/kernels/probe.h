// What this machine can do at most with one instruction set and so many threads: multiply-adds that
// never leave the registers, and reading of memory that a step would read. Loops of a few
// milliseconds, the best of several, so that a benchmark can measure the limits again and again
// between its own runs. One thread calls; the work runs on it and on workers of the probe's own,
// which sleep in between. Units: operations (a multiply-add is two) and bytes, a second.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/result.h"

namespace headrace {

class MachineProbe {
 public:
  // `tier` as in BackendInfo: refused where this machine lacks it.
  static Result<std::unique_ptr<MachineProbe>> create(std::string_view tier, int num_threads);
  ~MachineProbe();
  MachineProbe(const MachineProbe&) = delete;
  MachineProbe& operator=(const MachineProbe&) = delete;

  // 8-bit products summed in wider integers: the tier's densest instruction for it.
  double int8_ops_per_s();
  double f32_flop_per_s();

  // Memory for read_bytes_per_s() of up to this size.
  Status reserve(std::size_t bytes);
  // All threads together read a buffer of this size over and over, each its parts once a pass. What
  // fits a cache is read from it, as a model's weights of that size are.
  double read_bytes_per_s(std::size_t bytes);

 private:
  struct State;
  explicit MachineProbe(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace headrace
