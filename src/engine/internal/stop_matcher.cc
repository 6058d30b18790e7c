#include "engine/internal/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace headrace {

StopMatcher::StopMatcher(std::span<const std::string> stops) {
  for (const std::string& stop : stops) {
    if (stop.empty()) {
      continue;
    }
    Automaton automaton{.stop = stop, .fallback = {0, 0}};
    for (std::size_t n = 1; n < stop.size(); ++n) {
      std::size_t border = automaton.fallback[n];
      while (border > 0 && stop[border] != stop[n]) {
        border = automaton.fallback[border];
      }
      automaton.fallback.push_back(stop[border] == stop[n] ? border + 1 : 0);
    }
    automata_.push_back(std::move(automaton));
  }
}

void StopMatcher::Automaton::advance(char c) {
  while (matched > 0 && stop[matched] != c) {
    matched = fallback[matched];
  }
  matched += stop[matched] == c ? 1 : 0;
}

StopMatcher::Output StopMatcher::push(std::string_view text) {
  for (const char c : text) {
    held_ += c;
    const Automaton* found = nullptr;
    for (Automaton& automaton : automata_) {
      automaton.advance(c);
      if (automaton.matched == automaton.stop.size() &&
          (found == nullptr || automaton.stop.size() > found->stop.size())) {
        found = &automaton;
      }
    }
    if (found != nullptr) {
      held_.resize(held_.size() - found->stop.size());
      return {std::exchange(held_, {}), found->stop};
    }
  }
  std::size_t keep = 0;
  for (const Automaton& automaton : automata_) {
    keep = std::max(keep, automaton.matched);
  }
  Output output{held_.substr(0, held_.size() - keep), std::nullopt};
  held_.erase(0, held_.size() - keep);
  return output;
}

std::string StopMatcher::flush() {
  for (Automaton& automaton : automata_) {
    automaton.matched = 0;
  }
  return std::exchange(held_, {});
}

}  // namespace headrace
