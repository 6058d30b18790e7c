// The real models' vocabularies against ids made by independent implementations
// (scripts/golden/make_tokenizer_vectors.py). A model that is not in the
// store that `headrace pull` fills, is skipped.
#include <algorithm>
#include <boost/json.hpp>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <vector>

#include "formats/gguf.h"
#include "formats/gguf_tokenizer.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/tokenizer.h"

namespace headrace {
namespace {

using Ids = std::vector<TokenId>;

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody writes it
  return value == nullptr ? "" : value;
}

// The store that `headrace pull` fills, by the same rules.
std::string model_dir() {
  if (const std::string home = variable("HEADRACE_HOME"); !home.empty()) {
    return home + "/models";
  }
  const std::string cache = variable("XDG_CACHE_HOME");
  return (cache.empty() ? variable("HOME") + "/.cache" : cache) + "/headrace/models";
}

std::vector<std::string> golden_strings() {
  std::vector<std::string> strings;
  const boost::json::value parsed =
      boost::json::parse(read_file(HEADRACE_TEST_DATA "/tokenizer/strings.json"));
  for (const auto& text : parsed.as_array()) {
    strings.emplace_back(text.as_string());
  }
  return strings;
}

struct GoldenIds {
  Ids parsed;  // special tokens read as tokens
  Ids plain;   // special tokens read as text
};

class GoldenReader {
 public:
  explicit GoldenReader(std::string bytes) : bytes_(std::move(bytes)) {}

  GoldenIds next() {
    GoldenIds golden;
    golden.parsed = list(number());
    const std::uint32_t plain = number();
    golden.plain = plain == 0 ? golden.parsed : list(plain);
    return golden;
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::uint32_t number() {
    std::uint32_t value = 0;
    for (int shift = 0; at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= (byte & 0x7FU) << shift;
      if (byte < 0x80) {
        break;
      }
    }
    return value;
  }
  Ids list(std::uint32_t length_plus_1) {
    Ids ids;
    for (std::uint32_t i = 1; i < length_plus_1; ++i) {
      ids.push_back(static_cast<TokenId>(number()));
    }
    return ids;
  }

  std::string bytes_;
  std::size_t at_ = 0;
};

class RealVocabulary : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string path = model_dir() + "/" + GetParam() + ".gguf";
    if (!std::filesystem::exists(path)) {
      GTEST_SKIP() << path << " is not there; `headrace pull " << GetParam() << "` fetches it";
    }
    auto file = GgufFile::open(path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    auto data = read_tokenizer(*file);
    ASSERT_TRUE(data.ok()) << data.error().message;
    auto tokenizer = Tokenizer::create(std::move(*data));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    tokenizer_ = std::move(*tokenizer);
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(RealVocabulary, GivesTheReferencesIds) {
  const auto strings = golden_strings();
  ASSERT_GE(strings.size(), 2000U);
  GoldenReader reader(
      read_file(std::string(HEADRACE_TEST_DATA "/tokenizer/") + GetParam() + ".ids"));
  int num_different = 0;
  for (const std::string& text : strings) {
    const GoldenIds golden = reader.next();
    const Ids parsed = tokenizer_->encode(text, SpecialTokens::kParse, AddBos::kNo);
    const Ids plain = tokenizer_->encode(text, SpecialTokens::kText, AddBos::kNo);
    const TextPiece piece{text, true};
    EXPECT_LE(tokenizer_->least_tokens({&piece, 1}), std::min(parsed.size(), plain.size()));
    if (parsed == golden.parsed && plain == golden.plain) {
      continue;
    }
    if (++num_different <= 10) {
      ADD_FAILURE() << testing::PrintToString(text)
                    << "\nspecial: " << testing::PrintToString(parsed)
                    << "\n expect: " << testing::PrintToString(golden.parsed)
                    << "\nas text: " << testing::PrintToString(plain)
                    << "\n expect: " << testing::PrintToString(golden.plain);
    }
  }
  EXPECT_EQ(num_different, 0) << "of " << strings.size();
  EXPECT_TRUE(reader.at_end());
}

TEST_P(RealVocabulary, StreamedTextEqualsDecodedText) {
  for (const std::string& text : golden_strings()) {
    const Ids ids = tokenizer_->encode(text, SpecialTokens::kParse, AddBos::kAsModelSays);
    IncrementalDetokenizer stream(*tokenizer_);
    std::string streamed;
    for (const TokenId id : ids) {
      streamed += stream.push(id);
    }
    streamed += stream.flush();
    ASSERT_EQ(streamed, tokenizer_->decode(ids, SkipSpecial::kYes)) << testing::PrintToString(text);
  }
}

TEST_P(RealVocabulary, WhereATextIsCutIntoPiecesDoesNotMatter) {
  for (const std::string& text : golden_strings()) {
    const std::string_view view = text;
    const Ids whole = tokenizer_->encode(view, SpecialTokens::kText, AddBos::kNo);
    for (std::size_t cut = 0; cut <= view.size(); cut += 1 + view.size() / 7) {
      const std::vector<TextPiece> pieces = {
          {view.substr(0, cut), false}, {"", true}, {view.substr(cut), false}};
      ASSERT_EQ(tokenizer_->encode(pieces, AddBos::kNo), whole)
          << testing::PrintToString(text) << " at " << cut;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models,
                         RealVocabulary,
                         testing::Values("smollm2", "qwen2.5-coder-1.5b", "gemma3-270m"),
                         [](const auto& model) {
                           std::string name = model.param;
                           std::replace_if(
                               name.begin(),
                               name.end(),
                               [](char c) { return !std::isalnum(c); },
                               '_');
                           return name;
                         });

}  // namespace
}  // namespace headrace
