#include "kernels/cpu/tier.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <array>

namespace headrace {
namespace {

constexpr std::array<std::string_view, 3> kTierNames = {"scalar", "avx2", "avx512vnni"};

#if defined(__x86_64__)

struct CpuidLeaf {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

CpuidLeaf cpuid(unsigned leaf, unsigned subleaf) {
  CpuidLeaf out;
  if (__get_cpuid_count(leaf, subleaf, &out.eax, &out.ebx, &out.ecx, &out.edx) == 0) {
    return {};
  }
  return out;
}

bool has_bits(unsigned word, unsigned mask) { return (word & mask) == mask; }

// The register states that the operating system saves; 0 without OSXSAVE.
unsigned saved_states() {
  if (!has_bits(cpuid(1, 0).ecx, bit_OSXSAVE)) {
    return 0;
  }
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

bool can_run(CpuTier tier) {
  constexpr unsigned kYmmStates = 0x6;   // XMM, YMM
  constexpr unsigned kZmmStates = 0xe6;  // and the masks, the upper halves of ZMM0-15, ZMM16-31
  if (tier == CpuTier::kScalar) {
    return true;
  }
  const CpuidLeaf one = cpuid(1, 0);
  const CpuidLeaf seven = cpuid(7, 0);
  const unsigned states = saved_states();
  const bool avx2 = has_bits(states, kYmmStates) &&
                    has_bits(one.ecx, bit_AVX | bit_FMA | bit_F16C) &&
                    has_bits(seven.ebx, bit_AVX2);
  if (tier == CpuTier::kAvx2) {
    return avx2;
  }
  return avx2 && has_bits(states, kZmmStates) &&
         has_bits(seven.ebx, bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ) &&
         has_bits(seven.ecx, bit_AVX512VNNI);
}

#else

bool can_run(CpuTier tier) { return tier == CpuTier::kScalar; }

#endif

std::string join_names(const std::vector<CpuTier>& tiers) {
  std::string out;
  for (const CpuTier tier : tiers) {
    out += (out.empty() ? "" : ", ") + std::string(tier_name(tier));
  }
  return out;
}

}  // namespace

bool pairs_scales_well() {
#if defined(__x86_64__)
  const CpuidLeaf vendor = cpuid(0, 0);
  return vendor.ebx == signature_INTEL_ebx && vendor.edx == signature_INTEL_edx &&
         vendor.ecx == signature_INTEL_ecx;
#else
  return false;
#endif
}

std::string_view tier_name(CpuTier tier) { return kTierNames[static_cast<std::size_t>(tier)]; }

std::vector<CpuTier> available_tiers() {
  std::vector<CpuTier> out;
  for (const CpuTier tier : {CpuTier::kScalar, CpuTier::kAvx2, CpuTier::kAvx512Vnni}) {
    if (can_run(tier)) {
      out.push_back(tier);
    }
  }
  return out;
}

Result<CpuTier> choose_tier(std::string_view name) {
  const std::vector<CpuTier> tiers = available_tiers();
  if (name.empty()) {
    return tiers.back();
  }
  const auto known = std::find(kTierNames.begin(), kTierNames.end(), name);
  if (known == kTierNames.end()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "instruction set '{}' is unknown: this machine can run {}",
                      name,
                      join_names(tiers));
  }
  const auto tier = static_cast<CpuTier>(known - kTierNames.begin());
  if (std::find(tiers.begin(), tiers.end(), tier) == tiers.end()) {
    return make_error(ErrorCode::kUnsupported,
                      "this machine cannot run instruction set '{}': choose among {}",
                      name,
                      join_names(tiers));
  }
  return tier;
}

}  // namespace headrace
