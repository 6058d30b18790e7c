#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "app/command.h"
#include "app/model_host.h"

namespace headrace {
namespace {

struct RunOptions {
  std::string model;
  std::optional<std::string> prompt;
  bool raw = false;
  int max_tokens = -1;  // -1: to the end of the context
  SamplingParams sampling;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stop;
  bool json = false;
  EngineFlags engine;
};

struct Answer {
  std::string text;
  std::vector<TokenId> token_ids;
  FinishReason finish = FinishReason::kError;
  RequestUsage usage;
  double ttft_s = 0;
  double decode_s = 0;
};

std::string_view name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kError:
      break;
  }
  return "error";
}

Result<std::vector<TokenId>> encode_chat(const ModelHost& host,
                                         const boost::json::array& messages) {
  const Tokenizer& tokenizer = host.tokenizer();
  const boost::json::value value(messages);
  HR_ASSIGN_OR_RETURN(const Rope rope,
                      host.chat_template()->render(
                          {.messages = value,
                           .bos_token = std::string(tokenizer.piece(tokenizer.bos_id())),
                           .eos_token = std::string(tokenizer.piece(tokenizer.eos_id()))}));
  std::vector<TextPiece> pieces;
  for (const RopePiece& piece : rope) {
    pieces.push_back({piece.text, piece.trusted});
  }
  return tokenizer.encode(pieces, AddBos::kAsModelSays);
}

// Generates, with each piece of text handed to `on_text` as it becomes final.
template <typename OnText>
Result<Answer> generate(ModelHost& host,
                        const RunOptions& options,
                        std::vector<TokenId> prompt,
                        OnText on_text) {
  RequestSpec spec;
  spec.name = "run";
  spec.prompt = std::move(prompt);
  spec.sampling = options.sampling;
  spec.stop = options.stop;
  spec.max_tokens = options.max_tokens < 0 ? host.max_context() : options.max_tokens;
  const SteadyClock clock;
  spec.arrival = clock.now();
  const TimePoint start = spec.arrival;
  TimePoint first = start;
  HR_ASSIGN_OR_RETURN(const std::unique_ptr<RequestHandle> handle,
                      host.engine().submit(std::move(spec)));
  Answer answer;
  for (;;) {
    const TokenEvent event = handle->wait();
    if (event.token.token >= 0) {
      if (answer.token_ids.empty()) {
        first = clock.now();
      }
      answer.token_ids.push_back(event.token.token);
    }
    answer.text += event.text;
    on_text(event.text);
    if (event.finish) {
      if (event.error) {
        return *event.error;
      }
      answer.finish = *event.finish;
      answer.usage = event.usage;
      answer.ttft_s = to_seconds(first - start);
      answer.decode_s = to_seconds(clock.now() - first);
      return answer;
    }
  }
}

void print_answer_json(const Answer& answer, double load_s) {
  const int computed = answer.usage.prompt_tokens - answer.usage.cached_tokens;
  const auto decoded = static_cast<double>(answer.token_ids.size()) - 1;
  boost::json::object timings{
      {"load_s", load_s},
      {"prefill_s", answer.ttft_s},
      {"decode_s", answer.decode_s},
      {"ttft_s", answer.ttft_s},
      {"prefill_tokens_per_s", answer.ttft_s > 0 ? computed / answer.ttft_s : 0.0},
      {"decode_tokens_per_s", decoded > 0 ? decoded / answer.decode_s : 0.0}};
  print_json({{"text", answer.text},
              {"token_ids", boost::json::value_from(answer.token_ids)},
              {"finish_reason", name_of(answer.finish)},
              {"prompt_tokens", answer.usage.prompt_tokens},
              {"completion_tokens", answer.token_ids.size()},
              {"timings", timings}});
}

Result<std::vector<TokenId>> encode_prompt(const ModelHost& host, const RunOptions& options) {
  if (options.raw || host.chat_template() == nullptr) {
    return host.tokenizer().encode(*options.prompt, SpecialTokens::kParse, AddBos::kAsModelSays);
  }
  return encode_chat(host, {{{"role", "user"}, {"content", *options.prompt}}});
}

int answer_once(ModelHost& host, const RunOptions& options, double load_s) {
  auto prompt = encode_prompt(host, options);
  if (!prompt.ok()) {
    return fail(prompt.error());
  }
  const auto answer =
      generate(host, options, *std::move(prompt), [&options](const std::string& text) {
        if (!options.json) {
          fmt::print("{}", text);
          std::fflush(stdout);
        }
      });
  if (!answer.ok()) {
    return fail(answer.error());
  }
  if (options.json) {
    print_answer_json(*answer, load_s);
  } else {
    fmt::print("\n");
  }
  return kExitDone;
}

// Reads a question a line until the input ends; the whole conversation is sent each time, its start
// from the cache.
int chat(ModelHost& host, const RunOptions& options) {
  if (host.chat_template() == nullptr) {
    return fail(make_error(ErrorCode::kInvalidArgument,
                           "{} has no chat template: give a prompt with -p",
                           host.name()));
  }
  boost::json::array messages;
  std::string line;
  fmt::print(stderr, "Ask; an empty line or Ctrl-D ends.\n");
  while (fmt::print(stderr, "> "), std::getline(std::cin, line) && !line.empty()) {
    messages.push_back({{"role", "user"}, {"content", line}});
    auto prompt = encode_chat(host, messages);
    if (!prompt.ok()) {
      return fail(prompt.error());
    }
    const auto answer = generate(host, options, *std::move(prompt), [](const std::string& text) {
      fmt::print("{}", text);
      std::fflush(stdout);
    });
    if (!answer.ok()) {
      return fail(answer.error());
    }
    fmt::print("\n");
    messages.push_back({{"role", "assistant"}, {"content", answer->text}});
  }
  return kExitDone;
}

int run(RunOptions& options) {
  const SteadyClock clock;
  const auto resolved = find_model_file(options.model);
  if (!resolved.ok()) {
    return fail(resolved.error());
  }
  const TimePoint start = clock.now();
  options.engine.max_batch = 1;
  const auto host = ModelHost::load(*resolved, options.engine, {}, show_progress);
  finish_progress();
  if (!host.ok()) {
    return fail(host.error());
  }
  const double load_s = to_seconds(clock.now() - start);
  options.sampling.seed = options.seed ? *options.seed : std::random_device{}();
  if (const Status valid = validate(options.sampling, (*host)->tokenizer().vocab_size());
      !valid.ok()) {
    return fail(valid.error());
  }
  (*host)->engine().start();
  return options.prompt ? answer_once(**host, options, load_s) : chat(**host, options);
}

}  // namespace

void add_run_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunOptions>();
  options->sampling.temperature = 0.8F;
  options->sampling.top_p = 0.95F;
  CLI::App* command = app.add_subcommand("run", "answer one prompt, or chat when no -p is given");
  command->add_option("MODEL", options->model, "a GGUF file or a short name")->required();
  command->add_option("-p,--prompt", options->prompt, "the question");
  command->add_flag(
      "--raw", options->raw, "no chat template; special tokens in the prompt are read");
  command
      ->add_option("--max-tokens",
                   options->max_tokens,
                   "most tokens of the answer (default: the context's rest)")
      ->check(at_least(0));
  command->add_option("--temperature", options->sampling.temperature, "0: always the likeliest")
      ->capture_default_str();
  command->add_option("--top-k", options->sampling.top_k, "0: off")->capture_default_str();
  command->add_option("--top-p", options->sampling.top_p, "1: off")->capture_default_str();
  command->add_option("--typical-p", options->sampling.typical_p, "1: off")->capture_default_str();
  command->add_option("--min-p", options->sampling.min_p, "0: off")->capture_default_str();
  command->add_option("--seed", options->seed, "for the same answer again (default: random)")
      ->check(whole_number());
  command->add_option("--stop", options->stop, "text that ends the answer; may be repeated")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        return text.empty() ? std::string("must not be empty") : std::string();
      });
  command->add_flag("--json", options->json, "print one JSON object");
  options->engine.add_to(*command);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace headrace
