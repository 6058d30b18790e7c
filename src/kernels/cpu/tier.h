// Instruction-set tiers of the CPU backend, and which of them this machine can run: by cpuid (what
// the processor has) and xgetbv (what the operating system saves). A tier fixes the arithmetic,
// hence the bits of every result. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace headrace {

enum class CpuTier : std::uint8_t { kScalar, kAvx2, kAvx512Vnni };  // worst to best

std::string_view tier_name(CpuTier tier);  // "scalar", "avx2", "avx512vnni"

// Worst first; kScalar is always there.
std::vector<CpuTier> available_tiers();

// The best there is for an empty name. Refused: a name that is no tier, a tier that this machine
// lacks.
Result<CpuTier> choose_tier(std::string_view name);

// Whether this processor's 16-bit integer dot products are as quick as its 8-bit ones, which
// decides the form, hence the bits, of 4-bit weights in the avx512vnni tier. Intel's are; those of
// AMD's Zen 4 take a cycle of the only unit.
bool pairs_scales_well();

}  // namespace headrace
