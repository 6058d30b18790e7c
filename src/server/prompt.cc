#include "server/prompt.h"

#include <span>
#include <utility>

#include "chat/chat_template.h"

namespace headrace {
namespace {

std::string token_text(const Tokenizer& tokenizer, TokenId id) {
  return id < 0 ? std::string() : std::string(tokenizer.piece(id));
}

Status check_length(const Tokenizer& tokenizer,
                    std::span<const TextPiece> pieces,
                    std::optional<int> max_tokens) {
  if (!max_tokens) {
    return {};
  }
  const std::size_t least = tokenizer.least_tokens(pieces);
  if (least <= static_cast<std::size_t>(*max_tokens)) {
    return {};
  }
  Error error = make_error(ErrorCode::kInvalidArgument,
                           "the prompt has at least {} tokens, the context {}: shorten it, or "
                           "serve with a longer --context",
                           least,
                           *max_tokens);
  error.param = "prompt";
  return error;
}

}  // namespace

Result<PreparedPrompt> prepare_chat(const ServedModel& model,
                                    const ChatInput& input,
                                    std::optional<int> max_tokens) {
  if (model.chat_template == nullptr) {
    Error error = make_error(ErrorCode::kInvalidArgument,
                             "the model '{}' has no chat template: use /v1/completions",
                             model.name);
    error.param = "messages";
    return error;
  }
  const boost::json::value messages(input.messages);
  const boost::json::value tools(input.tools);
  const boost::json::value documents(input.documents);
  RenderInput render{messages};
  render.tools = input.tools.empty() ? nullptr : &tools;
  render.documents = input.documents.empty() ? nullptr : &documents;
  render.add_generation_prompt = input.add_generation_prompt;
  render.bos_token = token_text(*model.tokenizer, model.tokenizer->bos_id());
  render.eos_token = token_text(*model.tokenizer, model.tokenizer->eos_id());
  render.extra = input.template_kwargs;
  HR_ASSIGN_OR_RETURN(const Rope rope, model.chat_template->render(render));
  std::vector<TextPiece> pieces;
  pieces.reserve(rope.size());
  for (const RopePiece& piece : rope) {
    pieces.push_back({piece.text, piece.trusted});
  }
  HR_RETURN_IF_ERROR(check_length(*model.tokenizer, pieces, max_tokens));
  // The template writes the beginning-of-sequence token where the model wants one.
  return PreparedPrompt{model.tokenizer->encode(pieces, AddBos::kNo), to_string(rope)};
}

Result<PreparedPrompt> prepare_prompt(const ServedModel& model,
                                      const PromptInput& input,
                                      bool add_special_tokens,
                                      std::optional<int> max_tokens) {
  if (const auto* chat = std::get_if<ChatInput>(&input)) {
    return prepare_chat(model, *chat, max_tokens);
  }
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&input)) {
    return PreparedPrompt{*ids, model.tokenizer->decode(*ids, SkipSpecial::kNo)};
  }
  const auto& text = std::get<std::string>(input);
  const TextPiece piece{text, true};
  HR_RETURN_IF_ERROR(check_length(*model.tokenizer, {&piece, 1}, max_tokens));
  const AddBos add_bos = add_special_tokens ? AddBos::kAsModelSays : AddBos::kNo;
  return PreparedPrompt{model.tokenizer->encode(text, SpecialTokens::kParse, add_bos), text};
}

}  // namespace headrace
