// Conversions of 16-bit floats, one value at a time, exact and by the book (round to nearest even).
// For set-up and reference code; kernels have their own vector forms.
#pragma once

#include <bit>
#include <cstdint>

namespace headrace {

float f16_to_f32(std::uint16_t half);
std::uint16_t f32_to_f16(float value);

inline float bf16_to_f32(std::uint16_t half) {
  return std::bit_cast<float>(std::uint32_t{half} << 16);
}

}  // namespace headrace
