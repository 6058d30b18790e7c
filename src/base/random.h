// Counter-based random numbers: a pure function of (seed, position, draw), so that a token's noise
// does not depend on the batch, on preemption, on speculation or on the device. The generator is
// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Any
// thread.
#pragma once

#include <array>
#include <cstdint>

namespace headrace {

// The four 32-bit words of Philox 4x32-10 for this counter and key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

// Uniform in [0, 1), a multiple of 2^-24, from (seed, position, draw).
float uniform(std::uint64_t seed, std::uint64_t position, std::uint32_t draw);

}  // namespace headrace
