// The tokenizer's part of a GGUF file: vocabulary, scores, merges, special ids and chat template,
// checked against each other. That the vocabulary has as many tokens as the embedding has rows is
// the model's check. Pure, any thread.
//
// What a file leaves out is set as llama.cpp does: SentencePiece ("llama") adds BOS and a leading
// space, byte-level BPE
// ("gpt2") neither, except that Llama 3's relatives among its pre-tokenizers add BOS. An
// end-of-turn id that the file does not name is the first well-known end-of-turn or end-of-text
// token, of control kind, that is not EOS.
#pragma once

#include "base/result.h"
#include "formats/gguf.h"
#include "formats/tokenizer_data.h"

namespace headrace {

Result<TokenizerData> read_tokenizer(const GgufFile& file);

}  // namespace headrace
