// One tier's loops for MachineProbe. Pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

struct ProbeKernels {
  // Independent multiply-adds in registers; gives the number of operations done, two a
  // multiply-add.
  std::int64_t (*int8)(std::int64_t rounds) = nullptr;
  std::int64_t (*f32)(std::int64_t rounds) = nullptr;
  // Reads every byte, a multiple of 512, and prefetches so many bytes ahead; the result depends on
  // all of them.
  std::uint64_t (*read)(const std::byte* data, std::size_t bytes, std::size_t ahead) = nullptr;
};

namespace scalar {
const ProbeKernels& probe_kernels();
}
namespace avx2 {
const ProbeKernels& probe_kernels();
}
namespace avx512vnni {
const ProbeKernels& probe_kernels();
}

}  // namespace headrace
