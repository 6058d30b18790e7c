#include "bench/cache_model.h"

#include <algorithm>

#include "base/check.h"

namespace headrace {
namespace {

constexpr std::uint8_t kCached = 1;
constexpr std::uint8_t kDirty = 2;

}  // namespace

CacheModel::CacheModel(std::size_t cache_bytes, std::size_t memory_bytes)
    : room_(std::max<std::size_t>(1, cache_bytes / kPage)),
      end_(static_cast<Page>((memory_bytes + kPage - 1) / kPage)),
      next_(std::size_t{end_} + 1, end_),
      previous_(std::size_t{end_} + 1, end_),
      state_(std::size_t{end_} + 1) {}

void CacheModel::unlink(Page page) {
  next_[previous_[page]] = next_[page];
  previous_[next_[page]] = previous_[page];
}

void CacheModel::link_newest(Page page) {
  next_[page] = next_[end_];
  previous_[page] = end_;
  previous_[next_[end_]] = page;
  next_[end_] = page;
}

void CacheModel::touch_page(Page page, bool is_write) {
  if ((state_[page] & kCached) != 0) {
    unlink(page);
  } else {
    pages_moved_ += is_write ? 0 : 1;
    if (room_ > 0) {
      --room_;
    } else {
      const Page oldest = previous_[end_];
      pages_moved_ += (state_[oldest] & kDirty) != 0 ? 1 : 0;
      state_[oldest] = 0;
      unlink(oldest);
    }
  }
  link_newest(page);
  state_[page] = static_cast<std::uint8_t>(state_[page] | kCached | (is_write ? kDirty : 0));
}

void CacheModel::touch(std::size_t address, std::size_t bytes, bool is_write) {
  HR_CHECK(bytes > 0 && address + bytes <= std::size_t{end_} * kPage);
  for (std::size_t page = address / kPage; page <= (address + bytes - 1) / kPage; ++page) {
    touch_page(static_cast<Page>(page), is_write);
  }
}

void CacheModel::flush() {
  for (Page page = next_[end_]; page != end_; page = next_[page]) {
    pages_moved_ += (state_[page] & kDirty) != 0 ? 1 : 0;
    state_[page] = static_cast<std::uint8_t>(state_[page] & ~kDirty);
  }
}

}  // namespace headrace
