// Finds stop strings in a stream of text, however the text is cut. Of several, the one that is
// complete first ends the answer; of those complete at the same byte, the longest. Text is given
// out as soon as it can no longer be part of a stop. Knuth, Morris and Pratt's automaton for each
// string: time is linear in the text.
//
// One object per sequence, one thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

class StopMatcher {
 public:
  // Empty strings are left out.
  explicit StopMatcher(std::span<const std::string> stops);

  struct Output {
    std::string text;                 // is final
    std::optional<std::string> stop;  // found: text ends before it, and nothing follows
  };
  Output push(std::string_view text);
  // What was held back.
  std::string flush();

 private:
  struct Automaton {
    std::string stop;
    std::vector<std::size_t> fallback;  // [n]: the longest border of the first n bytes
    std::size_t matched = 0;
    void advance(char c);
  };

  std::vector<Automaton> automata_;
  std::string held_;
};

}  // namespace headrace
