// The vocabulary of a model file, checked once: tokens, kinds, the ids with a meaning. Immutable
// after create(), any thread. Errors name the field; ids given to accessors may be out of range and
// then stand for nothing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "formats/tokenizer_data.h"

namespace headrace {

class Vocabulary {
 public:
  static Result<Vocabulary> create(TokenizerData data);

  Vocabulary(Vocabulary&&) = default;
  Vocabulary(const Vocabulary&) = delete;

  const TokenizerData& data() const { return data_; }
  std::size_t size() const { return data_.tokens.size(); }
  bool contains(TokenId id) const { return id >= 0 && static_cast<std::size_t>(id) < size(); }
  std::string_view piece(TokenId id) const;  // "" for ids out of range
  TokenKind kind(TokenId id) const;
  bool is_control(TokenId id) const;
  bool is_end_of_generation(TokenId id) const;

  // -1 where no token reads so. Of equal tokens the first counts.
  TokenId find(std::string_view piece) const;

  // The merges are of no use once the tables are built from them.
  void drop_merges() { data_.merges = {}; }

 private:
  explicit Vocabulary(TokenizerData data);

  TokenizerData data_;
  std::unordered_map<std::string_view, TokenId>
      ids_;  // views into data_.tokens, which a move leaves in place
  std::vector<bool> ends_generation_;
};

}  // namespace headrace
