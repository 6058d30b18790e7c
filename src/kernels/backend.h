// One compute device: its memory, its packed weights and the operations of a forward pass, sized
// like fused layers.
//
// Every operation enqueues on the device's one in-order stream and returns nothing; what it writes
// may be read by the host only after synchronize(). The CPU backend runs an operation at once, or,
// in its lazy mode (tests), at synchronize(), so that reading too early fails there too. Arguments
// are copied at the call except the memory behind pointers, which must live until synchronize().
// Pointers are device memory of this backend. One thread (the engine's, or a loader before it)
// calls; kernels have preconditions and no errors.
//
// Sameness: each output row depends only on that row's input, the weight's shape and type, and the
// tier; never on the number of rows, the chunking, the batch, the block ids or the number of
// threads. Bitwise, and tested.
//
// Rows are activations in float32, row-major without gaps. Dimensions: R rows of a step, S
// sequences, H hidden, D head_dim, K inner and N outer dimension of a linear layer [N, K].
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "kernels/memory.h"
#include "tensor/view.h"

namespace headrace {

// A linear layer's matrix, packed for the backend that made it. Opaque: the layout never leaves
// src/kernels.
class Weight {
 public:
  virtual ~Weight() = default;
  int num_rows = 0;       // N
  int num_cols = 0;       // K
  std::size_t bytes = 0;  // resident
};

enum class Activation : std::uint8_t { kSilu, kGeluTanh };
enum class KvType : std::uint8_t { kF32, kF16 };
enum class RopeStyle : std::uint8_t { kInterleaved, kHalves };  // pairs (2i, 2i+1), or (i, i + D/2)

// A row-parallel product (o_proj, down_proj) is summed over four segments of K, ((s0+s1)+(s2+s3)),
// on every number of ranks; the others over all of K.
enum class KSplit : std::uint8_t { kWhole, kFourSegments };

// How a quantized weight's input is rounded: to 8 bits a value, or to two planes of 8 bits, the
// second for what the first leaves: about 15 bits, for twice the products. Float weights take their
// input as it is.
enum class InputRounding : std::uint8_t { kOnePlane, kTwoPlanes };

struct PackOptions {
  KSplit k_split = KSplit::kWhole;
  InputRounding input = InputRounding::kOnePlane;
  bool row_lookup = false;  // embed() will read rows of it (a tied embedding is both)
};

// Input of a linear layer. With norm_weight, x is first normalized: x / rms(x) * norm_weight, as
// RMSNorm does.
struct LinearInput {
  const float* x = nullptr;  // [R, K]
  int num_rows = 0;
  const float* norm_weight = nullptr;  // [K] or null
  float norm_eps = 0;
};

struct LinearOutput {
  const Weight* weight = nullptr;
  float* out = nullptr;         // [R, N]
  const float* bias = nullptr;  // [N] or null
  bool add_to_out = false;      // out += product: the residual
};

// Where one layer's K and V live: block b of the layer is the bytes at base + b * block_stride.
struct KvLayer {
  std::byte* base = nullptr;
  std::int64_t block_stride = 0;
  KvType type = KvType::kF16;
  int num_kv_heads = 0;
  int head_dim = 0;
};

inline constexpr int kBlockTokens = 16;  // tokens of a KV block

// A step's shape as flat arrays, which the runner fills; one per KV group where marked. The host
// arrays are read during plan_attention() and may change after it.
struct StepLayout {
  int num_rows = 0;
  int num_sequences = 0;
  std::span<const std::int32_t> positions;      // [R]
  std::span<const std::int32_t> query_offsets;  // [S+1], rows of sequence s: [s], [s+1)
  std::span<const std::int32_t>
      context_lens;  // [S], tokens in the cache once this step's rows are appended
  struct Group {
    int window = 0;      // 0: full attention; w: the query at p sees [p-w+1, p]
    int max_blocks = 0;  // columns of block_tables
    std::span<const std::int32_t>
        block_tables;                     // [S, max_blocks], by position/16; slid-out entries are 0
    std::span<const std::int32_t> slots;  // [R], block * 16 + offset where the row's K and V go
  };
  std::span<const Group> groups;
};

// cos and sin of each row for one rotary setting, made once a step.
struct RopeArgs {
  const std::int32_t* positions = nullptr;  // [R]
  int num_rows = 0;
  const float* inv_freq = nullptr;  // [rotary_dim / 2]
  int rotary_dim = 0;
  float scale = 1;  // of cos and sin (YaRN's attention factor)
};

struct RopeAppendArgs {
  float* q = nullptr;        // [R, num_heads * D], normalized and rotated in place
  float* k = nullptr;        // [R, num_kv_heads * D], scratch afterwards
  const float* v = nullptr;  // [R, num_kv_heads * D]
  int num_rows = 0;
  int num_heads = 0;
  const float* cos_sin = nullptr;  // [R, rotary_dim]: rotary_dim/2 cosines, then the sines
  int rotary_dim = 0;
  RopeStyle style = RopeStyle::kHalves;
  const float* q_norm = nullptr;  // [D] or null: RMSNorm of each head before the rotation
  const float* k_norm = nullptr;
  float norm_eps = 0;
  const std::int32_t* slots = nullptr;  // [R]
  KvLayer kv;
};

struct AttentionArgs {
  const float* q = nullptr;  // [R, num_heads * D]
  float* out = nullptr;      // [R, num_heads * D]
  int num_heads = 0;
  int group_idx = 0;  // whose block tables and window
  float scale = 1;    // of q.k
  KvLayer kv;
};

struct BackendInfo {
  std::string_view device;  // "cpu"
  std::string_view tier;    // "scalar", "avx2", "avx512vnni"
  int num_threads = 1;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual BackendInfo info() const = 0;

  // Memory, zeroed, 64-byte aligned, counted under its part until the buffer dies.
  virtual Result<Buffer> alloc(std::size_t bytes, MemoryPart part) = 0;
  virtual const MemoryCounters& memory() const = 0;

  // Packs a matrix; reads the view's bytes, which may be dropped afterwards. Synchronous.
  virtual Result<std::unique_ptr<Weight>> pack(const TensorView& view,
                                               const PackOptions& options) = 0;
  // Exactly what pack() will hold for this shape, without doing it.
  virtual std::size_t packed_bytes(DType dtype,
                                   int num_rows,
                                   int num_cols,
                                   const PackOptions& options) const = 0;
  // Bytes of one KV block (kBlockTokens tokens) of one layer.
  virtual std::size_t kv_block_bytes(KvType type, int num_kv_heads, int head_dim) const = 0;

  virtual void upload(void* device, const void* host, std::size_t bytes) = 0;
  virtual void download(void* host, const void* device, std::size_t bytes) = 0;
  virtual void synchronize() = 0;

  // out[r] = table[ids[r]] * scale; ids are in range.
  virtual void embed(
      const Weight& table, const std::int32_t* ids, int num_rows, float scale, float* out) = 0;
  // All outputs from one input, which is normalized and quantized once.
  virtual void linear(const LinearInput& input, std::span<const LinearOutput> outputs) = 0;
  // out = activation(gate(x)) * up(x), [R, N].
  virtual void gated_linear(const LinearInput& input,
                            const Weight& gate,
                            const Weight& up,
                            Activation activation,
                            float* out) = 0;
  virtual void rope_table(const RopeArgs& args, float* cos_sin) = 0;
  virtual void rope_append(const RopeAppendArgs& args) = 0;

  // Once a step, on host data; the plan holds until the next call.
  virtual void plan_attention(const StepLayout& layout) = 0;
  virtual void attention(const AttentionArgs& args) = 0;

  // out = y / rms(y) * weight, added to out where add_to_out. [R, H]
  virtual void rms_norm(const float* y,
                        const float* weight,
                        float eps,
                        int num_rows,
                        int dim,
                        bool add_to_out,
                        float* out) = 0;
  virtual void gather_rows(
      const float* x, const std::int32_t* rows, int num_rows, int dim, float* out) = 0;
};

// The CPU. `tier` empty: the best this machine has; a tier that it lacks is refused. Threads: the
// caller's and num_threads - 1 workers of its own.
enum class StreamMode : std::uint8_t { kEager, kLazy };
struct CpuOptions {
  int num_threads = 1;
  std::string_view tier;
  StreamMode stream = StreamMode::kEager;
};
Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options);

}  // namespace headrace
