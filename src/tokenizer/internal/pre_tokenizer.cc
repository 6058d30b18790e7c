#include "tokenizer/internal/pre_tokenizer.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <fmt/ranges.h>
#include <limits>
#include <utility>
#include <vector>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/utf8.h"
#include "tokenizer/internal/nfc.h"

namespace headrace {
namespace {

// Insides of character classes. PCRE2 10.42 knows Unicode 14; the ranges are what Unicode 15 and 16
// added (17's digits too for smollm, whose reference splits digits by a newer table). White space
// is written out: PCRE2's \s also takes U+180E, which is none since Unicode 6.3.
#define HR_LETTER                                                                                               \
  R"(\p{L}\x{1C89}-\x{1C8A}\x{A7CB}-\x{A7CD}\x{A7DA}-\x{A7DC}\x{105C0}-\x{105F3}\x{10D4A}-\x{10D65})"           \
  R"(\x{10D6F}-\x{10D85}\x{10EC2}-\x{10EC4}\x{1123F}-\x{11240}\x{11380}-\x{11389}\x{1138B}\x{1138E})"           \
  R"(\x{11390}-\x{113B5}\x{113B7}\x{113D1}\x{113D3}\x{11BC0}-\x{11BE0}\x{11F02}\x{11F04}-\x{11F10})"            \
  R"(\x{11F12}-\x{11F33}\x{1342F}\x{13441}-\x{13446}\x{13460}-\x{143FA}\x{16100}-\x{1611D}\x{16D40}-\x{16D6C})" \
  R"(\x{18CFF}\x{1B132}\x{1B155}\x{1DF25}-\x{1DF2A}\x{1E030}-\x{1E06D}\x{1E4D0}-\x{1E4EB}\x{1E5D0}-\x{1E5ED})"  \
  R"(\x{1E5F0}\x{2B739}\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})"
#define HR_NUMBER                                                                                           \
  R"(\p{N}\x{10D40}-\x{10D49}\x{116D0}-\x{116E3}\x{11BF0}-\x{11BF9}\x{11F50}-\x{11F59}\x{16130}-\x{16139})" \
  R"(\x{16D70}-\x{16D79}\x{1CCF0}-\x{1CCF9}\x{1D2C0}-\x{1D2D3}\x{1E4F0}-\x{1E4F9}\x{1E5F1}-\x{1E5FA})"
#define HR_DIGIT HR_NUMBER R"(\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6})"
#define HR_SPACE \
  R"(\x09-\x0D\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})"

struct PreTokenizerSpec {
  std::string_view name;
  const char* pattern;
  bool to_nfc;
};

constexpr std::array<PreTokenizerSpec, 2> kSpecs = {{
    {"smollm",
     "'(?:[stmd]|re|ve|ll)"
     "| ?[" HR_LETTER "]+"
     "|[" HR_DIGIT "]"
     "| ?[^" HR_SPACE HR_LETTER HR_DIGIT "]+"
     "|[" HR_SPACE "]+(?![^" HR_SPACE HR_DIGIT "])"
     "|[" HR_SPACE "]+",
     false},
    {"qwen2",
     "(?i:'(?:[stmd]|re|ve|ll))"
     "|[^\\r\\n" HR_LETTER HR_NUMBER "]?[" HR_LETTER "]+"
     "|[" HR_NUMBER "]"
     "| ?[^" HR_SPACE HR_LETTER HR_NUMBER "]+[\\r\\n]*"
     "|[" HR_SPACE "]*[\\r\\n]+"
     "|[" HR_SPACE "]+(?![^" HR_SPACE "])"
     "|[" HR_SPACE "]+",
     true},
}};

#undef HR_LETTER
#undef HR_NUMBER
#undef HR_DIGIT
#undef HR_SPACE

struct CodeFree {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct MatchDataFree {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct MatchContextFree {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

}  // namespace

struct PreTokenizer::Pattern {
  std::unique_ptr<pcre2_code, CodeFree> code;
  std::unique_ptr<pcre2_match_context, MatchContextFree> context;
};

PreTokenizer::PreTokenizer(std::unique_ptr<const Pattern> pattern, bool to_nfc)
    : pattern_(std::move(pattern)), to_nfc_(to_nfc) {}
PreTokenizer::PreTokenizer(PreTokenizer&& other) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::create(std::string_view name) {
  const PreTokenizerSpec* spec = nullptr;
  std::vector<std::string_view> known;
  for (const PreTokenizerSpec& candidate : kSpecs) {
    known.push_back(candidate.name);
    if (candidate.name == name) {
      spec = &candidate;
    }
  }
  if (spec == nullptr) {
    return make_error(ErrorCode::kUnsupported,
                      "tokenizer: pre-tokenizer '{}' is not known; known are {}",
                      name,
                      fmt::join(known, ", "));
  }
  int error = 0;
  std::size_t offset = 0;
  auto pattern = std::make_unique<Pattern>();
  pattern->code.reset(pcre2_compile(PCRE2_SPTR(spec->pattern),
                                    PCRE2_ZERO_TERMINATED,
                                    PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED,
                                    &error,
                                    &offset,
                                    nullptr));
  pattern->context.reset(pcre2_match_context_create(nullptr));
  if (pattern->code == nullptr || pattern->context == nullptr) {
    return make_error(ErrorCode::kInternal,
                      "tokenizer: the expression of '{}' fails at {} (PCRE2 error {})",
                      name,
                      offset,
                      error);
  }
  // PCRE2_ANCHORED above, not at the match, where it would switch JIT off. Without JIT (not built
  // in, or no executable memory) the interpreter gives the same words; its limits on work are meant
  // for nested repeats, and a long run of spaces would meet them.
  pcre2_jit_compile(pattern->code.get(), PCRE2_JIT_COMPLETE);
  pcre2_set_match_limit(pattern->context.get(), std::numeric_limits<std::uint32_t>::max());
  pcre2_set_heap_limit(pattern->context.get(), std::numeric_limits<std::uint32_t>::max());
  return PreTokenizer(std::move(pattern), spec->to_nfc);
}

std::string PreTokenizer::normalize(std::string_view text) const {
  return to_nfc_ ? nfc(text) : std::string(text);
}

void PreTokenizer::for_each_word(std::string_view text,
                                 const std::function<void(std::string_view)>& call) const {
  const std::unique_ptr<pcre2_match_data, MatchDataFree> data(pcre2_match_data_create(1, nullptr));
  HR_CHECK(data != nullptr);
  const std::size_t* bounds = pcre2_get_ovector_pointer(data.get());
  std::size_t begin = 0;
  while (begin < text.size()) {
    const int found = pcre2_match(pattern_->code.get(),
                                  PCRE2_SPTR(text.data()),
                                  text.size(),
                                  begin,
                                  PCRE2_NO_UTF_CHECK,
                                  data.get(),
                                  pattern_->context.get());
    // Each expression matches at least one character at any place; memory may still run out.
    const std::size_t end =
        found > 0 ? bounds[1]
                  : begin + static_cast<std::size_t>(decode_utf8(text.substr(begin)).length);
    call(text.substr(begin, end - begin));
    begin = end;
  }
}

}  // namespace headrace
