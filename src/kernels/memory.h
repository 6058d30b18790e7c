// Device memory, counted by what it is for. A Buffer gives its bytes back, and off the count, when
// it dies. One thread allocates; any thread reads the counters.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace headrace {

enum class MemoryPart : std::uint8_t { kWeights, kKv, kWorkspace };
inline constexpr int kNumMemoryParts = 3;

class MemoryCounters {
 public:
  std::size_t bytes(MemoryPart part) const {
    return bytes_[static_cast<std::size_t>(part)].load(std::memory_order_relaxed);
  }
  void add(MemoryPart part, std::size_t n) {
    bytes_[static_cast<std::size_t>(part)].fetch_add(n, std::memory_order_relaxed);
  }
  void subtract(MemoryPart part, std::size_t n) {
    bytes_[static_cast<std::size_t>(part)].fetch_sub(n, std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::size_t>, kNumMemoryParts> bytes_{};
};

class Buffer {
 public:
  using Deleter = std::function<void(void*)>;
  Buffer() = default;
  Buffer(void* data, std::size_t bytes, Deleter deleter)
      : data_(data, std::move(deleter)), bytes_(bytes) {}

  template <typename T = std::byte>
  T* as() const {
    return static_cast<T*>(data_.get());
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<void, Deleter> data_{nullptr, [](void*) {}};
  std::size_t bytes_ = 0;
};

}  // namespace headrace
