#!/usr/bin/env python3
"""Makes the tokenizer's golden vectors: strings, and the ids that an independent implementation gives for them.

    make_tokenizer_vectors.py MODEL_DIR OUT_DIR

MODEL_DIR holds smollm2.gguf, qwen2.5-coder-1.5b.gguf and gemma3-270m.gguf. Needs the Python packages gguf, tokenizers
(0.22), sentencepiece and protobuf.

The reference is built from each file's own vocabulary:
  * smollm2, qwen2.5-coder: Hugging Face `tokenizers`, byte-level BPE with the normalizer and pre-tokenizer of the
    models' own tokenizer.json.
  * gemma3: `sentencepiece`, the implementation the model was trained with. The conversion of a GGUF in transformers
    makes a unigram model of it, which splits differently, and the file holds no merges to build a Hugging Face BPE from. One built
    from the scores gives the same ids but for runs of more than 31 spaces and for a typed U+2581 beside spaces
    (14 of the 2,600 strings).

Output: strings.json, and for each model NAME.ids: for each string two lists of ids, special tokens read as tokens, then
read as text; a list is its length + 1 and its ids, 0 where the second list equals the first; all numbers LEB128.
No BOS. Same seed, same files.
"""

import json
import pathlib
import random
import re
import sys

import gguf
import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2 as spm_pb2
from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class Vocabulary:
    def __init__(self, path):
        fields = gguf.GGUFReader(path).fields
        get = lambda name: fields[f"tokenizer.ggml.{name}"].contents() if f"tokenizer.ggml.{name}" in fields else []
        self.tokens, self.kinds, self.scores, self.merges = get("tokens"), get("token_type"), get("scores"), get("merges")

    def of_kind(self, *kinds):
        return [token for token, kind in zip(self.tokens, self.kinds) if kind in kinds]


def byte_level(path, normalizer, pre_tokenizer):
    vocabulary = Vocabulary(path)
    ids = {token: i for i, token in enumerate(vocabulary.tokens)}
    model = models.BPE(vocab=ids, merges=[tuple(merge.split(" ")) for merge in vocabulary.merges])
    reference = tokenizers.Tokenizer(model)
    if normalizer is not None:
        reference.normalizer = normalizer
    reference.pre_tokenizer = pre_tokenizer
    reference.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token in vocabulary.of_kind(CONTROL, UNKNOWN)]
    )
    reference.add_tokens(
        [AddedToken(token, normalized=False, special=False) for token in vocabulary.of_kind(USER_DEFINED)]
    )

    def encode(text, parse):
        reference.encode_special_tokens = not parse
        return reference.encode(text, add_special_tokens=False).ids

    return encode


def sentencepiece_bpe(path):
    vocabulary = Vocabulary(path)
    proto = spm_pb2.ModelProto()
    proto.trainer_spec.model_type = spm_pb2.TrainerSpec.BPE
    proto.trainer_spec.byte_fallback = True
    proto.trainer_spec.vocab_size = len(vocabulary.tokens)
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.add_dummy_prefix = False
    proto.normalizer_spec.remove_extra_whitespaces = False
    proto.normalizer_spec.escape_whitespaces = True
    for token, kind, score in zip(vocabulary.tokens, vocabulary.kinds, vocabulary.scores):
        piece = proto.pieces.add()
        piece.piece = token.replace(" ", "\u2581")
        piece.score = score
        piece.type = UNKNOWN if token == "<unk>" else kind
    reference = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    control = sorted(vocabulary.of_kind(CONTROL, UNKNOWN), key=len, reverse=True)
    split = re.compile("(" + "|".join(map(re.escape, control)) + ")")
    ids = {token: i for i, token in enumerate(vocabulary.tokens)}

    def encode(text, parse):
        if not parse:
            return reference.encode(text)
        parts = split.split(text)  # text, token, text, …
        return [i for n, part in enumerate(parts) for i in ([ids[part]] if n % 2 else reference.encode(part))]

    return encode


WORDS = """the of and to in is that for it as was with be by on not he his but at are this have from or had an they
which one you were all her she there would their we him been has when who will no more if out so up said what its about
Hello WORLD Internationalization antidisestablishmentarianism tokenizer naïve café Zürich fiancée coöperate Ångström
straße İstanbul ǅungla ﬁne ﬂow""".split()
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'Ve", "'M", "'LL", "'D", "'\u017f", "\u2019s"]
SPECIALS = """<|endoftext|> <|im_start|> <|im_end|> <|fim_prefix|> <tool_call> </tool_call> <repo_name> <bos> <eos> <unk>
<pad> <start_of_turn> <end_of_turn> <unused7> <unused42> [multimodal] <table> </h1> <0x0A> <0x41> [PAD151700]""".split()
CODE = ["def f(x):\n    return x**2\n", "for (int i = 0; i < n; ++i) {\n\tsum += a[i];\n}\n", "SELECT * FROM t WHERE id=42;",
        "#include <vector>\r\n", "{\"a\": [1, 2.5e-3, null]}", "x->y::z<T>&&", "\\frac{1}{2}", "<div class=\"a\">&nbsp;</div>",
        "https://example.org/a?b=c&d=%20", "if x != y:  # why?\n\n\n        pass", "0xDEADBEEF", "a_b__c___d", "$HOME/.bashrc"]
SPACES = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", "\x0b", "\x0c", "\x85", "\xa0", "\u1680", "\u180e", "\u2003", "\u2028",
          "\u2029", "\u202f", "\u205f", "\u3000", "\u200b", "\ufeff", "\u2581", "\u2581\u2581"]
EMOJI = ["😀", "👍🏽", "👩‍👩‍👧‍👦", "🇫🇷", "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "❤️", "☎︎", "1️⃣", "🫩", "🧑‍🚀"]
SCRIPTS = ["汉字处理", "日本語のテキスト", "ひらがな", "カタカナｶﾅ", "한국어", "각", "ภาษาไทยน้ำ", "العربيَّةُ", "עִבְרִית", "हिन्दी", "தமிழ்",
           "Ελληνικά", "кириллица", "ქართული", "አማርኛ", "བོད་སྐད", "ខ្មែរ", "𐍈𐌰𐌽", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "ﷺ", "Việt Nam"]
NUMBERS = ["0", "7", "42", "1234567890", "3.14159", "1,000,000", "٣٤٥", "१२३", "½", "Ⅻ", "²³", "①", "𝟘𝟙", "一二三", "1st", "v2.0"]
MARKS = [chr(c) for c in [*range(0x300, 0x34f), 0x591, 0x5b0, 0x64b, 0x651, 0x93c, 0x94d, 0x9bc, 0xe38, 0xf71, 0xf74,
                          0x1ab0, 0x1abf, 0x1dc0, 0x20d0, 0x3099, 0x302a, 0x8d3, 0x11930, 0x1d165, 0x1e2ec]]
BASES = list("aeiouAEIOUcnsyzʻ") + ["α", "и", "が", "ᄀ", "각", "가", "क", "ড", "\u0b47", "\u1100", "\u1161", "\u11a8", "Å", "\u212b", "\u2126", "\U00011935"]


def any_character(rng):
    while True:
        plane = rng.choice([0, 0, 0, 0, 1, 1, 2, 3, 14, 15, 16])
        c = plane * 0x10000 + rng.randrange(0x10000)
        if not 0xD800 <= c <= 0xDFFF:
            return chr(c)


def decomposed(rng):
    return "".join(rng.choice(BASES) + "".join(rng.choice(MARKS) for _ in range(rng.randrange(4))) for _ in range(rng.randint(1, 4)))


PARTS = [
    (lambda r: r.choice(WORDS), 8), (lambda r: " " + r.choice(WORDS), 8), (lambda r: r.choice(WORDS) + r.choice(CONTRACTIONS), 4),
    (lambda r: r.choice(CONTRACTIONS), 2), (lambda r: r.choice(SPECIALS), 3), (lambda r: r.choice(CODE), 2), (lambda r: r.choice(SPACES), 6),
    (lambda r: r.choice(SPACES) * r.randint(1, 12), 2), (lambda r: r.choice(EMOJI), 3), (lambda r: r.choice(SCRIPTS), 4),
    (lambda r: r.choice(NUMBERS), 4), (lambda r: decomposed(r), 3), (lambda r: any_character(r), 3), (lambda r: chr(r.randrange(0x80)), 4),
    (lambda r: chr(r.randrange(0x80, 0x3000)), 3), (lambda r: r.choice("!?.,;:-_()[]{}<>'\"`~@#$%^&*+=|\\/") * r.randint(1, 3), 4),
]


def make_strings():
    rng = random.Random(20240229)
    strings = [""] + SPECIALS + CODE + SPACES + EMOJI + SCRIPTS + NUMBERS + CONTRACTIONS
    strings += [" " * n for n in (4, 15, 16, 30, 31, 32, 33, 62, 63, 70)] + ["\n" * n for n in (3, 16, 30, 31, 32, 33, 63)]
    strings += ["x" + " " * n + "y" for n in (1, 2, 3, 31, 32, 40)] + ["a" * 60, "=" * 70, "9" * 30, "漢" * 30, "ab" * 40, "\t" * 33]
    strings += ["x" + token + "y" for token in SPECIALS] + [" " + token + " " for token in SPECIALS] + [SPECIALS[1] * 3, "<|im_start", "<|im_start|>>"]
    strings += [chr(c) for c in range(0x80)] + [chr(c) for c in range(0xFF, 0x3400, 97)]
    parts, weights = zip(*PARTS)
    while len(strings) < 2600:
        strings.append("".join(part(rng) for part in rng.choices(parts, weights, k=rng.randint(1, 7))))
    return strings


def leb128(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def pack(ids):
    return leb128(len(ids) + 1) + b"".join(map(leb128, ids))


def main():
    model_dir, out_dir = map(pathlib.Path, sys.argv[1:3])
    gpt2_words = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
    qwen2_words = [pre_tokenizers.Split(Regex(QWEN2_WORDS), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    references = {
        "smollm2": lambda path: byte_level(path, None, pre_tokenizers.Sequence(gpt2_words)),
        "qwen2.5-coder-1.5b": lambda path: byte_level(path, normalizers.NFC(), pre_tokenizers.Sequence(qwen2_words)),
        "gemma3-270m": sentencepiece_bpe,
    }
    strings = make_strings()
    out_dir.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(text, ensure_ascii=False) for text in strings)
    (out_dir / "strings.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    for name, build in references.items():
        encode = build(str(model_dir / f"{name}.gguf"))
        out = bytearray()
        for text in strings:
            parsed, plain = encode(text, True), encode(text, False)
            out += pack(parsed) + (leb128(0) if plain == parsed else pack(plain))
        (out_dir / f"{name}.ids").write_bytes(out)
        print(name, len(strings), "strings,", len(out), "bytes")


if __name__ == "__main__":
    main()
