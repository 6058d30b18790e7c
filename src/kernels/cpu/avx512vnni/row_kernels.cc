#include "kernels/cpu/row_kernels.h"

#include "kernels/cpu/avx512vnni/vec16.h"
// The algorithms, over the vectors above.
#include "kernels/cpu/attention-inl.h"
#include "kernels/cpu/naive_attention-inl.h"
#include "kernels/cpu/rows-inl.h"

namespace headrace::avx512vnni {

const RowKernels& row_kernels() {
  static constexpr RowKernels kKernels = {
      attend_partitions, finish, attend, rope_append_rows, norm_rows<false>, norm_rows<true>};
  return kKernels;
}

const NaiveKernels& naive_kernels() {
  static constexpr NaiveKernels kKernels = {.widen = naive_widen,
                                            .scores = naive_scores,
                                            .softmax = naive_softmax,
                                            .values = naive_values};
  return kKernels;
}

}  // namespace headrace::avx512vnni
