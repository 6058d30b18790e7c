#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/internal/added_tokens.h"
#include "tokenizer/internal/byte_level_bpe.h"
#include "tokenizer/internal/sentencepiece_bpe.h"
#include "tokenizer/internal/text_model.h"
#include "tokenizer/internal/vocabulary.h"

namespace headrace {

struct Tokenizer::Impl {
  explicit Impl(Vocabulary v) : vocabulary(std::move(v)) {}

  Vocabulary vocabulary;
  std::unique_ptr<const TextModel> model;
  AddedTokens added;
  std::size_t most_bytes = 1;  // of a text that one token takes
};

namespace {

template <typename Model>
Result<std::unique_ptr<const TextModel>> make(const Vocabulary& vocabulary) {
  HR_ASSIGN_OR_RETURN(std::unique_ptr<const TextModel> model, Model::create(vocabulary));
  return model;
}

Result<std::unique_ptr<const TextModel>> make_model(const Vocabulary& vocabulary) {
  const std::string& name = vocabulary.data().model;
  if (name == "gpt2") {
    return make<ByteLevelBpe>(vocabulary);
  }
  if (name == "llama") {
    return make<SentencePieceBpe>(vocabulary);
  }
  return make_error(ErrorCode::kUnsupported,
                    "tokenizer: model '{}' is not known; known are gpt2 (byte-level BPE) and llama "
                    "(SentencePiece BPE)",
                    name);
}

// The whole text as the model searches it, and where in it control tokens may match.
struct Prompt {
  std::string text;
  std::vector<TrustedRange> trusted;
};

Prompt join(std::span<const TextPiece> pieces, const TextModel& model) {
  Prompt prompt;
  std::string run;
  for (std::size_t i = 0; i < pieces.size();) {
    const bool trusted = pieces[i].trusted;
    run.clear();
    for (; i < pieces.size() && (pieces[i].trusted == trusted || pieces[i].text.empty()); ++i) {
      run += pieces[i].text;
    }
    const std::size_t begin = prompt.text.size();
    prompt.text +=
        model.escape(find_invalid_utf8(run) == std::string::npos ? run : replace_invalid_utf8(run));
    if (trusted && prompt.text.size() > begin) {
      prompt.trusted.push_back({begin, prompt.text.size()});
    }
  }
  return prompt;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(TokenizerData data) {
  HR_ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::create(std::move(data)));
  auto impl = std::make_unique<Impl>(std::move(vocabulary));
  HR_ASSIGN_OR_RETURN(impl->model, make_model(impl->vocabulary));
  HR_ASSIGN_OR_RETURN(impl->added,
                      AddedTokens::create(impl->vocabulary, [&](std::string_view text) {
                        return impl->model->escape(text);
                      }));
  for (std::size_t i = 0; i < impl->vocabulary.size(); ++i) {
    impl->most_bytes = std::max(impl->most_bytes, impl->model->most_bytes(static_cast<TokenId>(i)));
  }
  impl->vocabulary.drop_merges();
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(impl)));
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

std::vector<TokenId> Tokenizer::encode(std::span<const TextPiece> pieces, AddBos add_bos) const {
  const Prompt prompt = join(pieces, *impl_->model);
  const std::string_view text = prompt.text;
  HR_CHECK(text.size() <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));
  const auto matches = impl_->added.find(text, prompt.trusted);
  std::vector<TokenId> ids;
  const bool starts_with_bos =
      !matches.empty() && matches[0].begin == 0 && matches[0].id == bos_id();
  const bool wanted = add_bos == AddBos::kYes || (add_bos == AddBos::kAsModelSays && adds_bos());
  if (wanted && bos_id() >= 0 && !starts_with_bos) {
    ids.push_back(bos_id());
  }
  std::size_t begin = 0;
  const auto encode_until = [&](std::size_t end) {
    if (end > begin) {
      impl_->model->encode(text.substr(begin, end - begin), ids);
    }
  };
  for (const AddedTokens::Match& match : matches) {
    encode_until(match.begin);
    ids.push_back(match.id);
    begin = match.end;
  }
  encode_until(text.size());
  return ids;
}

std::vector<TokenId> Tokenizer::encode(std::string_view text,
                                       SpecialTokens special,
                                       AddBos add_bos) const {
  const TextPiece piece{text, special == SpecialTokens::kParse};
  return encode({&piece, 1}, add_bos);
}

std::size_t Tokenizer::least_tokens(std::span<const TextPiece> pieces) const {
  std::size_t num_bytes = 0;
  for (const TextPiece& piece : pieces) {
    if (find_invalid_utf8(piece.text) == std::string::npos) {
      num_bytes += impl_->model->least_bytes(piece.text);
    }
  }
  return num_bytes / impl_->most_bytes + (num_bytes % impl_->most_bytes != 0 ? 1 : 0);
}

std::string Tokenizer::token_bytes(TokenId id) const {
  return impl_->vocabulary.contains(id) ? impl_->model->token_bytes(id) : std::string();
}

std::string Tokenizer::decode(std::span<const TokenId> ids, SkipSpecial skip) const {
  std::string bytes;
  for (const TokenId id : ids) {
    if (skip == SkipSpecial::kNo || !is_control(id)) {
      bytes += token_bytes(id);
    }
  }
  if (drops_leading_space() && bytes.starts_with(' ')) {
    bytes.erase(0, 1);
  }
  return find_invalid_utf8(bytes) == std::string::npos ? bytes : replace_invalid_utf8(bytes);
}

int Tokenizer::vocab_size() const { return static_cast<int>(impl_->vocabulary.size()); }
TokenId Tokenizer::bos_id() const { return impl_->vocabulary.data().bos_id; }
TokenId Tokenizer::eos_id() const { return impl_->vocabulary.data().eos_id; }
bool Tokenizer::adds_bos() const { return impl_->vocabulary.data().add_bos; }
std::string_view Tokenizer::piece(TokenId id) const { return impl_->vocabulary.piece(id); }
TokenKind Tokenizer::kind(TokenId id) const { return impl_->vocabulary.kind(id); }
bool Tokenizer::is_control(TokenId id) const { return impl_->vocabulary.is_control(id); }
bool Tokenizer::is_end_of_generation(TokenId id) const {
  return impl_->vocabulary.is_end_of_generation(id);
}
bool Tokenizer::drops_leading_space() const { return impl_->model->adds_leading_space(); }

}  // namespace headrace
