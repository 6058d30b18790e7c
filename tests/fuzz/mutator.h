// Makes new inputs from old ones: flipped bits, extreme integers, cuts, repeats, splices, words of
// the target's language. Everything follows from the seed. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::fuzz {

class Mutator {
 public:
  // Words are put in as they are; they outlive the mutator.
  Mutator(std::uint64_t seed, std::span<const std::string_view> words, std::size_t max_bytes);

  // One to eight changes to an input chosen from `corpus` (not empty). At most max_bytes long.
  std::string next(std::span<const std::string> corpus);

 private:
  std::size_t below(std::size_t n);  // uniform enough in [0, n); 0 for n = 0
  void change(std::string& text, std::span<const std::string> corpus);
  void change_bytes(std::string& text);
  void change_integer(std::string& text);
  void change_digits(std::string& text);
  void put_word(std::string& text);
  void repeat_part(std::string& text);
  void splice(std::string& text, const std::string& other);

  std::mt19937_64 random_;
  std::span<const std::string_view> words_;
  std::size_t max_bytes_;
};

}  // namespace headrace::fuzz
