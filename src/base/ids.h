// Identities that must not be mixed up. A token id is a plain integer, since tokens live in flat
// int32 arrays.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace headrace {

using TokenId = std::int32_t;

template <typename Tag, typename Rep>
struct StrongId {
  Rep value{};
  friend auto operator<=>(const StrongId&, const StrongId&) = default;
};

using RequestId =
    StrongId<struct RequestIdTag, std::uint64_t>;  // one HTTP request or one CLI question
using SequenceId =
    StrongId<struct SequenceIdTag, std::uint64_t>;  // one stream of tokens; a request with n has n
using BlockId =
    StrongId<struct BlockIdTag, std::int32_t>;  // a KV block; 0 is the dummy, never handed out

}  // namespace headrace

template <typename Tag, typename Rep>
struct std::hash<headrace::StrongId<Tag, Rep>> {
  std::size_t operator()(const headrace::StrongId<Tag, Rep>& id) const noexcept {
    return std::hash<Rep>{}(id.value);
  }
};
