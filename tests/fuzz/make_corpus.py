#!/usr/bin/env python3
"""Writes the first inputs of each fuzz target into corpus/. Inputs that were found later lie beside them."""

import json
import pathlib
import struct

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
U32, I32, F32, BOOL, STRING, ARRAY, U64, F64 = 4, 5, 6, 7, 8, 9, 10, 12
FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<?", U64: "<Q", 11: "<q", F64: "<d"}


def write(target, name, data):
    path = CORPUS / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = data.encode() if isinstance(data, str) else data
    assert len(data) <= 2048, (path, len(data))
    path.write_bytes(data)


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, item):
    return string(item) if kind == STRING else struct.pack(FORMATS[kind], item)


def gguf(entries, tensors=(), version=3):
    """entries: (key, type, value), where the value of an array is (element type, list); tensors: (name, dims)."""
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(entries))
    for key, kind, item in entries:
        out += string(key) + struct.pack("<I", kind)
        if kind == ARRAY:
            element, items = item
            out += struct.pack("<IQ", element, len(items)) + b"".join(value(element, x) for x in items)
        else:
            out += value(kind, item)
    offset = 0
    for name, dims in tensors:
        out += string(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims)
        out += struct.pack("<IQ", 0, offset)
        offset += (4 * dims[0] * (dims[1] if len(dims) > 1 else 1) + 31) // 32 * 32
    out += bytes(-len(out) % 32)
    return out + bytes(offset)


def configuration(arch):
    return [
        ("general.architecture", STRING, arch),
        (f"{arch}.embedding_length", U32, 16),
        (f"{arch}.feed_forward_length", U32, 16),
        (f"{arch}.block_count", U32, 1),
        (f"{arch}.context_length", U32, 64),
        (f"{arch}.attention.head_count", U32, 1),
        (f"{arch}.attention.head_count_kv", U32, 1),
        (f"{arch}.attention.key_length", U32, 16),
        (f"{arch}.attention.value_length", U32, 16),
        (f"{arch}.attention.sliding_window", U32, 8),
        (f"{arch}.attention.layer_norm_rms_epsilon", F32, 1e-5),
        (f"{arch}.rope.freq_base", F32, 10000.0),
    ]


def model_files():
    tensor = ("token_embd.weight", (16, 3))
    sentencepiece = [
        ("tokenizer.ggml.model", STRING, "llama"),
        ("tokenizer.ggml.tokens", ARRAY, (STRING, ["<s>", "a", "b"])),
        ("tokenizer.ggml.scores", ARRAY, (F32, [0.0, -1.0, -2.0])),
        ("tokenizer.ggml.token_type", ARRAY, (I32, [3, 1, 1])),
        ("tokenizer.ggml.bos_token_id", U32, 0),
        ("tokenizer.ggml.add_bos_token", BOOL, True),
        ("tokenizer.chat_template", STRING, "{{ messages[0]['content'] }}"),
    ]
    byte_level = [
        ("tokenizer.ggml.model", STRING, "gpt2"),
        ("tokenizer.ggml.pre", STRING, "qwen2"),
        ("tokenizer.ggml.tokens", ARRAY, (STRING, ["a", "b", "ab"])),
        ("tokenizer.ggml.token_type", ARRAY, (I32, [1, 1, 1])),
        ("tokenizer.ggml.merges", ARRAY, (STRING, ["a b"])),
        ("tokenizer.ggml.eos_token_id", U32, 2),
    ]
    write("gguf", "llama", gguf(configuration("llama") + byte_level, [tensor]))
    write("gguf", "sentencepiece", gguf(configuration("llama") + sentencepiece, [tensor]))
    write("gguf", "gemma3", gguf(configuration("gemma3") + byte_level, [tensor], version=2))
    write("gguf", "qwen2", gguf(configuration("qwen2") + byte_level, [tensor, ("w", (32,))]))
    scalars = [(f"k{kind}", kind, 1) for kind in FORMATS]
    arrays = [(f"a{kind}", ARRAY, (kind, [1, 0, 1])) for kind in FORMATS]
    write("gguf", "every_type", gguf(scalars + arrays + [("general.alignment", U32, 64)]))
    write("gguf", "empty", gguf([]))


TEMPLATES = {
    "chatml": "{% for m in messages %}{% if loop.first and m['role'] != 'system' %}{{ '<|im_start|>system\n<|im_end|>\n' }}"
    "{% endif %}{{ '<|im_start|>' + m.role + '\n' + (m.content or '') + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "turns": "{{ bos_token }}{%- if messages[0].role == 'system' -%}{%- set first = messages[0].content ~ '\n\n' -%}"
    "{%- set rest = messages[1:] -%}{%- else -%}{%- set first = '' -%}{%- set rest = messages -%}{%- endif -%}"
    "{%- for m in rest -%}{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}{{ raise_exception('turns') }}{%- endif -%}"
    "{{ '<start_of_turn>' + m.role }}{{ first if loop.first else '' }}{%- if m.content is string -%}{{ m.content | trim }}"
    "{%- elif m.content is iterable -%}{%- for part in m.content -%}{{ part.text }}{%- endfor -%}{%- endif -%}{%- endfor -%}",
    "tools": "{% macro show(x, depth=0) %}{% if x is mapping %}{% for k, v in x.items() %}{{ '  ' * depth }}{{ k }}:"
    "{{ show(v, depth + 1) }}{% endfor %}{% else %}{{ x | tojson(indent=2) }}{% endif %}{% endmacro %}"
    "{% set ns = namespace(n=0, names=[]) %}{% for m in messages if m.tool_calls is defined %}{% for t in m.tool_calls %}"
    "{% set ns.n = ns.n + 1 %}{% set ns.names = ns.names + [t.function.name] %}{{ show(t.function) }}{% endfor %}{% endfor %}"
    "{{ ns.n }} {{ ns.names | join(', ') }} {{ strftime_now('%d %b %Y') }}",
    "filters": "{{ messages | map(attribute='role') | list | unique | sort | join('|') }}{% for g in messages | groupby('role') %}"
    "{{ g.grouper }}{{ g.list | length }}{% endfor %}{{ range(10) | batch(3, 0) | list }}{{ range(7) | slice(2) | list }}"
    "{{ 'a,b'.split(',') }}{{ 'x' | center(9) }}{{ 'Hello there' | replace('l', 'L') | upper | title | wordcount }}"
    "{{ '%05.2f|%s|%-4d' % (1.5, 'a', 7) }}{{ '{:>8}{x!r}'.format(1, x='y') }}{{ 'a\nb' | indent(2, true) }}"
    "{{ 3.14159 | round(2) }}{{ 7 // 2 }}{{ -7 % 3 }}{{ 2 ** 10 }}{{ 'abc'[::-1] }}{{ [1, [2]] == [1, [2]] }}"
    "{{ 'long text to wrap here' | wordwrap(5) }}{{ '<a>' | escape }}{{ {'b': 1, 'a': 2} | dictsort }}",
    "blocks": "{# note #}{% raw %}{{ x }}{% endraw %}{% set x %}a{{ 1 }}{% endset %}{{ x }}{% filter upper %}b{% endfilter %}"
    "{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{% macro f() %}{{ caller(2) }}{% endmacro %}{% call(u) f() %}{{ u }}{% endcall %}{% for a, b in [(1, 2)] recursive %}"
    "{{ loop.cycle('x', 'y') }}{% if a %}{% continue %}{% else %}{% break %}{% endif %}{% else %}none{% endfor %}"
    "{% generation %}g{% endgeneration %}{{ x if false }}{{ not x is none and 1 < 2 <= 3 }}",
}


def templates():
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [{"type": "text", "text": "Lo"}]}]
    for name, source in TEMPLATES.items():
        write("chat_template", name, source)
    write("chat_template", "turns_with_messages", TEMPLATES["turns"] + "\0" + json.dumps(messages))


def requests():
    sampling = {
        "temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.1, "typical_p": 1, "seed": 7, "n": 2, "stop": ["a", "b"],
        "stop_token_ids": [1, 2], "max_tokens": 16, "min_tokens": 1, "ignore_eos": False, "frequency_penalty": 0.1,
        "presence_penalty": -0.1, "repetition_penalty": 1.1, "logit_bias": {"5": -100, "6": 2.5}, "stream": True,
        "stream_options": {"include_usage": True}, "user": "u", "priority": 3, "deadline_ms": 1000, "cache_salt": "s",
    }  # fmt: skip
    user = {"role": "user", "content": "Hi"}
    parts = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "\u00e9"}]}
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
    rest = [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "1", "content": "2"}]
    chat = {"messages": [{"role": "developer", "content": "x"}, user, parts, *rest], "logprobs": True, "top_logprobs": 5}
    write("request", "chat", json.dumps({**chat, **sampling}))
    write("request", "chat_kwargs", json.dumps({"messages": [user], "documents": [{"title": "a", "text": "b"}],
          "chat_template_kwargs": {"thinking": False}, "add_generation_prompt": False, "max_completion_tokens": 4}))  # fmt: skip
    write("request", "completion", json.dumps({"model": "m", "prompt": ["a", "b"], "echo": True, "logprobs": 3, **sampling}))
    write("request", "completion_ids", json.dumps({"prompt": [[1, 2, 3], [4]], "max_tokens": 0, "logit_bias": None}))
    parameters = {"max_new_tokens": 8, "do_sample": True, "details": True, "stop": ["x"], "top_k": 3, "return_full_text": True,
                  "decoder_input_details": False, "repetition_penalty": 1.2, "seed": 1, "top_n_tokens": 2}  # fmt: skip
    write("request", "tgi", json.dumps({"inputs": "a", "parameters": parameters}))
    write("request", "unbuilt", json.dumps({"prompt": "a", "response_format": {"type": "json_object"}, "guided_regex": "a*"}))
    write("request", "deep", '{"prompt":' + "[" * 60 + "1e3" + "]" * 60 + "}")


def vocabularies():
    # The kind is one less than in files: any byte below 128 stands for one that exists.
    def token(text, kind):
        return bytes([len(text.encode())]) + text.encode() + bytes([kind])

    def scored(text, kind, score):
        return token(text, kind) + struct.pack("<f", score)

    def counted(items):
        return bytes([len(items)]) + b"".join(items)

    def merge(text):
        return bytes([len(text)]) + text.encode()

    text = b"\x05hello a<x>ab\xff\xc3\xa9"
    # Nothing to begin with: byte-level, then SentencePiece.
    small = [token(t, k) for t, k in (("a", 0), ("b", 0), ("ab", 0), ("<x>", 2), ("<y>", 3))]
    write("vocabulary", "byte_level", b"\x00\x01" + counted(small) + counted([merge("a b")]) + text)
    pieces = [scored(t, k, s) for t, k, s in (("<unk>", 1, 0), ("a", 0, -1), ("\u2581a", 0, -2), ("<0xFF>", 5, 0))]
    write("vocabulary", "sentencepiece", b"\x02\x0c" + struct.pack("<5h", 1, 1, -1, 0, -1) + counted(pieces) + b"\0" + text)
    # More for a good one.
    write("vocabulary", "byte_level_more", b"\x03\x00" + counted([token("hello hello", 3), token("", 0)]) + counted([]) + text)
    write("vocabulary", "sentencepiece_more", b"\x01\x05" + counted([scored("\u2581hello\u2581", 0, 1e30)]) + b"\0" + text)


def texts():
    samples = {
        "words": "hello hello  12345 it's\n\n\n<|im_start|>user<bos> \u00e9\u4e16\u754c \U0001f642 e\u0301",
        "spaces": " " * 60 + "\t\r\n\u00a0\u2581\u2581 \u0120hell",
        "specials": "<bos><bos><tool><|im_end|><|im_<|im_start|><eos><0x0A>[PAD]",
    }
    for vocabulary in range(4):
        for name, text in samples.items():
            write("tokenizer_text", f"{name}_{vocabulary}", bytes([vocabulary, 7]) + text.encode())
    write("tokenizer_text", "no_utf8", b"\x00\x02hell\xc3o\xe2\x96\xff\xf0\x9f\x99 \xed\xa0\x80\xf4\x90\x80\x80\xc0\x80\0")
    write("tokenizer_text", "ids", b"\x02\x03" + struct.pack("<8i", 0, 1, 270, 271, -1, 1 << 30, -(1 << 31), 261))


if __name__ == "__main__":
    model_files()
    templates()
    requests()
    vocabularies()
    texts()
