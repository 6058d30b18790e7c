#include "kernels/cpu/row_kernels.h"

#include "kernels/cpu/scalar/vec16.h"
// The algorithms, over the vectors above.
#include "kernels/cpu/attention-inl.h"
#include "kernels/cpu/rows-inl.h"

namespace headrace::scalar {

const RowKernels& row_kernels() {
  static constexpr RowKernels kKernels = {
      attend_partitions, finish, attend, rope_append_rows, norm_rows<false>, norm_rows<true>};
  return kKernels;
}

}  // namespace headrace::scalar
