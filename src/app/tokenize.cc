#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "app/command.h"
#include "base/utf8.h"
#include "formats/gguf.h"
#include "formats/gguf_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace headrace {
namespace {

struct TokenizeOptions {
  std::string model;
  std::optional<std::string> text;
  std::vector<TokenId> ids;
  bool back = false;  // --ids was given
  bool special = false;
  bool bos = false;
  bool json = false;
};

Result<std::unique_ptr<Tokenizer>> load_tokenizer(const std::string& model) {
  HR_ASSIGN_OR_RETURN(const ResolvedModel resolved, find_model_file(model));
  HR_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(resolved.path));
  HR_ASSIGN_OR_RETURN(TokenizerData data, read_tokenizer(file));
  auto tokenizer = Tokenizer::create(std::move(data));
  if (!tokenizer) {
    return std::move(tokenizer.error()).within(file.name());
  }
  return tokenizer;
}

void print_ids(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool json) {
  if (!json) {
    fmt::print("{}\n", fmt::join(ids, " "));
    return;
  }
  boost::json::array id_array;
  boost::json::array pieces;
  for (const TokenId id : ids) {
    id_array.push_back(id);
    pieces.push_back(boost::json::string(replace_invalid_utf8(tokenizer.piece(id))));
  }
  print_json({{"ids", id_array}, {"pieces", pieces}});
}

int run_tokenize(const TokenizeOptions& options) {
  const auto tokenizer = load_tokenizer(options.model);
  if (!tokenizer.ok()) {
    return fail(tokenizer.error());
  }
  const Tokenizer& t = **tokenizer;
  if (options.back) {
    for (const TokenId id : options.ids) {
      if (id < 0 || id >= t.vocab_size()) {
        return fail(make_error(
            ErrorCode::kInvalidArgument, "--ids: {} is not in [0, {})", id, t.vocab_size()));
      }
    }
    const std::string text = t.decode(options.ids, SkipSpecial::kNo);
    if (options.json) {
      print_json({{"text", text}});
    } else {
      fmt::print("{}", text);
    }
    return kExitDone;
  }
  const std::string text =
      options.text ? *options.text : std::string(std::istreambuf_iterator<char>(std::cin), {});
  print_ids(t,
            t.encode(text,
                     options.special ? SpecialTokens::kParse : SpecialTokens::kText,
                     options.bos ? AddBos::kYes : AddBos::kNo),
            options.json);
  return kExitDone;
}

}  // namespace

void add_tokenize_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command = app.add_subcommand("tokenize", "text to token ids, and back with --ids");
  command->add_option("MODEL", options->model, "a GGUF file or a short name")->required();
  CLI::Option* text =
      command->add_option("--text", options->text, "the text (default: standard input)");
  CLI::Option* ids = command->add_option("--ids", options->ids, "token ids to turn back into text")
                         ->delimiter(',')
                         ->excludes(text);
  command->add_flag("--special", options->special, "read special tokens in the text");
  command->add_flag("--bos", options->bos, "put the beginning-of-sequence token in front");
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, ids, &action] {
    options->back = ids->count() > 0;
    action = [options] { return run_tokenize(*options); };
  });
}

}  // namespace headrace
