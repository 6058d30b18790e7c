#include "fuzz/mutator.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

namespace headrace::fuzz {
namespace {

constexpr std::array<std::uint64_t, 16> kExtremes = {0,
                                                     1,
                                                     2,
                                                     3,
                                                     31,
                                                     32,
                                                     0x7f,
                                                     0xff,
                                                     0x7fff,
                                                     0xffff,
                                                     0x7fffffff,
                                                     0x80000000,
                                                     0xffffffff,
                                                     0x100000000,
                                                     0x7fffffffffffffff,
                                                     0xffffffffffffffff};

constexpr std::array<std::string_view, 10> kDigits = {"0",
                                                      "-1",
                                                      "65536",
                                                      "2147483647",
                                                      "2147483648",
                                                      "-2147483649",
                                                      "9223372036854775807",
                                                      "18446744073709551616",
                                                      "1e308",
                                                      "0.0000001"};

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

Mutator::Mutator(std::uint64_t seed, std::span<const std::string_view> words, std::size_t max_bytes)
    : random_(seed), words_(words), max_bytes_(max_bytes) {}

std::size_t Mutator::below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

std::string Mutator::next(std::span<const std::string> corpus) {
  std::string text = corpus[below(corpus.size())];
  for (std::size_t left = 1 + below(1 + below(8)); left > 0; --left) {
    change(text, corpus);
    text.resize(std::min(text.size(), max_bytes_));
  }
  return text;
}

void Mutator::change(std::string& text, std::span<const std::string> corpus) {
  const std::size_t at = below(text.size());
  switch (below(12)) {
    case 0:
      text.resize(at);
      return;
    case 1:
      text.erase(at, 1 + below(16));
      return;
    case 2:
      text.insert(at, text, below(text.size()), 1 + below(64));
      return;
    case 3:
      repeat_part(text);
      return;
    case 4:
      splice(text, corpus[below(corpus.size())]);
      return;
    case 5:
    case 6:
      change_integer(text);
      return;
    case 7:
      change_digits(text);
      return;
    case 8:
    case 9:
      put_word(text);
      return;
    default:
      change_bytes(text);
      return;
  }
}

void Mutator::change_bytes(std::string& text) {
  if (text.empty()) {
    text.push_back(static_cast<char>(below(256)));
    return;
  }
  char& byte = text[below(text.size())];
  if (below(2) == 0) {
    byte = static_cast<char>(byte ^ static_cast<char>(1U << below(8)));
  } else {
    byte = static_cast<char>(below(256));
  }
}

// Little-endian, as model files have them: an extreme value, or a little more or less than before.
void Mutator::change_integer(std::string& text) {
  const std::size_t width = std::size_t{1} << below(4);
  if (text.size() < width) {
    return;
  }
  char* const at = text.data() + below(text.size() - width + 1);
  std::uint64_t value = kExtremes[below(kExtremes.size())];
  if (below(2) == 0) {
    value = 0;
    std::memcpy(&value, at, width);
    value += below(33) - 16;
  }
  std::memcpy(at, &value, width);
}

void Mutator::change_digits(std::string& text) {
  const auto start = text.begin() + static_cast<std::ptrdiff_t>(below(text.size()));
  const auto first = std::find_if(start, text.end(), is_digit);
  if (first == text.end()) {
    return;
  }
  const auto last = std::find_if_not(first, text.end(), is_digit);
  text.replace(first, last, kDigits[below(kDigits.size())]);
}

void Mutator::put_word(std::string& text) {
  if (words_.empty()) {
    return;
  }
  const std::string_view word = words_[below(words_.size())];
  const std::size_t at = below(text.size() + 1);
  const std::size_t replaced = below(2) == 0 ? 0 : word.size();
  text.replace(at, replaced, word);
}

void Mutator::repeat_part(std::string& text) {
  const std::size_t at = below(text.size());
  const std::string part = text.substr(at, 1 + below(12));
  std::string many;
  for (std::size_t left = 2 + below(below(8) == 0 ? 1000 : 20); left > 0; --left) {
    many += part;
  }
  text.insert(at, many);
}

void Mutator::splice(std::string& text, const std::string& other) {
  text.resize(below(text.size() + 1));
  text += std::string_view(other).substr(below(other.size() + 1));
}

}  // namespace headrace::fuzz
