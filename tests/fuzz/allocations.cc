#include "fuzz/allocations.h"

#include <algorithm>
#include <cstdlib>
#include <malloc.h>
#include <new>

namespace {

// Ends the program before an input without bound exhausts the machine.
constexpr std::ptrdiff_t kMostAlive = std::ptrdiff_t{1} << 30;

thread_local std::ptrdiff_t alive = 0;
thread_local std::ptrdiff_t peak = 0;

void count_and_free(void* block) noexcept {
  if (block != nullptr) {
    alive -= static_cast<std::ptrdiff_t>(malloc_usable_size(block));
    std::free(block);
  }
}

}  // namespace

// All forms but those with an alignment: the sanitizers bring forms of their own, which do not end
// here.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  void* const block = std::malloc(size == 0 ? 1 : size);
  if (block == nullptr) {
    return nullptr;
  }
  alive += static_cast<std::ptrdiff_t>(malloc_usable_size(block));
  peak = std::max(peak, alive);
  if (alive > kMostAlive) {
    std::abort();
  }
  return block;
}
void* operator new(std::size_t size) {
  void* const block = operator new(size, std::nothrow);
  if (block == nullptr) {
    throw std::bad_alloc();
  }
  return block;
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return operator new(size, std::nothrow);
}

void operator delete(void* block) noexcept { count_and_free(block); }
void operator delete(void* block, std::size_t) noexcept { count_and_free(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { count_and_free(block); }
void operator delete[](void* block) noexcept { count_and_free(block); }
void operator delete[](void* block, std::size_t) noexcept { count_and_free(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { count_and_free(block); }

namespace headrace::fuzz {

PeakMemory::PeakMemory() : before_(alive) { peak = alive; }

std::size_t PeakMemory::bytes() const { return static_cast<std::size_t>(peak - before_); }

}  // namespace headrace::fuzz
