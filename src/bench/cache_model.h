// Bytes that a loop nest moves between one core's cache and the memory behind it, counted by
// replaying what it touches through a fully associative cache of a given size that drops what was
// used longest ago. A page that is written is not fetched first (whole pages are), and goes back
// once when it is dropped or flushed. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace {

class CacheModel {
 public:
  static constexpr std::size_t kPage = 4096;

  // Addresses are in [0, memory_bytes).
  CacheModel(std::size_t cache_bytes, std::size_t memory_bytes);

  void read(std::size_t address, std::size_t bytes) { touch(address, bytes, false); }
  void write(std::size_t address, std::size_t bytes) { touch(address, bytes, true); }
  // What is written and still in the cache goes back.
  void flush();

  std::uint64_t bytes_moved() const { return pages_moved_ * kPage; }

 private:
  using Page = std::uint32_t;

  void touch(std::size_t address, std::size_t bytes, bool is_write);
  void touch_page(Page page, bool is_write);
  void unlink(Page page);
  void link_newest(Page page);

  std::size_t room_;  // pages that still fit
  Page end_;          // of the ring: its next is the newest, its previous the oldest
  std::vector<Page> next_, previous_;
  std::vector<std::uint8_t> state_;  // kCached | kDirty
  std::uint64_t pages_moved_ = 0;
};

}  // namespace headrace
