// Counts what the calling thread allocates with operator new, to see that no input makes a parser
// reserve memory by its own word. Replaces the program's operator new and delete; memory of C
// libraries is not seen.
#pragma once

#include <cstddef>

namespace headrace::fuzz {

// The most bytes that were alive at once since the object was made, beyond those alive then. One at
// a time a thread; what is allocated on one thread must be freed on it.
class PeakMemory {
 public:
  PeakMemory();
  std::size_t bytes() const;

 private:
  std::ptrdiff_t before_;
};

}  // namespace headrace::fuzz
