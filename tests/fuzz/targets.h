// What is fuzzed: each target is one function over bytes, which must take any bytes without a
// crash, a hang, or memory beyond its bound.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace headrace::fuzz {

struct Outcome {
  bool accepted = false;
  std::string message = {};  // of what was refused
};

struct Target {
  std::string_view name;  // also the folder of its corpus
  // Reads the input and says how it went. Fails the running test where something that must hold
  // for any input does not.
  Outcome (*run)(std::string_view input);
  std::span<const std::string_view> words;
  std::size_t max_input_bytes;
  std::size_t max_peak_bytes;  // of memory at once, for the longest input
};

extern const Target
    kGgufTarget;  // a model file's header: metadata, configuration, tokenizer, description
extern const Target kChatTemplateTarget;   // a template, then, after a NUL, JSON messages
extern const Target kRequestTarget;        // an HTTP body, read as each form of request
extern const Target kVocabularyTarget;     // a hostile vocabulary, then text
extern const Target kTokenizerTextTarget;  // arbitrary bytes through good vocabularies

}  // namespace headrace::fuzz
