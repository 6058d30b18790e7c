#!/usr/bin/env python3
"""Writes a GGUF file with random weights in the shape of a known model, for benchmarks of sizes that nobody has to fetch.

Speed depends on shapes and types, not on what the weights say. The vocabulary comes from a real GGUF file of the same
kind (--vocabulary: any llama model for llama-3.2-1b, a qwen2 one for qwen2.5-7b; `headrace pull smollm2` and `headrace
pull qwen2.5-coder-1.5b` print such paths) and is filled up with unused tokens. Blocks are random bytes under scales that
give every matrix a standard deviation of 1 / sqrt(columns). The same seed gives the same file.

Usage: make_random_model.py SHAPE TYPE --vocabulary FILE.gguf --out FILE.gguf
"""
import argparse
import dataclasses
import math
import pathlib

import gguf
import numpy as np

Q = gguf.GGMLQuantizationType


@dataclasses.dataclass(frozen=True)
class Shape:
    architecture: str
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    context: int
    rope_base: float
    epsilon: float
    tied: bool


SHAPES = {
    "llama-3.2-1b": Shape("llama", 2048, 8192, 16, 32, 8, 64, 128256, 131072, 500000.0, 1e-5, True),
    "qwen2.5-7b": Shape("qwen2", 3584, 18944, 28, 28, 4, 128, 152064, 32768, 1000000.0, 1e-6, False),
    "tiny-llama": Shape("llama", 256, 512, 2, 4, 2, 64, 0, 2048, 10000.0, 1e-5, True),
    "tiny-qwen2": Shape("qwen2", 256, 512, 2, 4, 2, 64, 0, 2048, 10000.0, 1e-6, False),
}
FILE_TYPES = {"F16": 1, "Q4_0": 2, "Q8_0": 7, "Q4_K_M": 15}
CHUNK_VALUES = 1 << 24


def type_of(name, layer, shape, file_type):
    """The types that llama.cpp's own mixes give: Q4_K_M has some matrices in Q6_K, the others their output head."""
    if file_type == "F16":
        return Q.F16
    if file_type == "Q8_0":
        return Q.Q8_0
    is_head = name == "output.weight" or (name == "token_embd.weight" and shape.tied)
    if is_head:
        return Q.Q6_K
    if file_type == "Q4_0":
        return Q.Q4_0
    eighth = shape.layers // 8
    more_bits = layer < eighth or layer >= 7 * shape.layers // 8 or (layer - eighth) % 3 == 2
    return Q.Q6_K if more_bits and ("attn_v" in name or "ffn_down" in name) else Q.Q4_K


def halves(value, count):
    return np.full(count, value, np.float16).view(np.uint8).reshape(count, 2)


def random_blocks(random, dtype, count, deviation):
    """`count` blocks as bytes [count, block bytes], values of about this standard deviation."""
    block, size = gguf.GGML_QUANT_SIZES[dtype]
    if dtype == Q.F16:
        return (random.standard_normal((count, 1), np.float32) * deviation).astype(np.float16).view(np.uint8)
    if dtype == Q.F32:
        return (random.standard_normal((count, 1), np.float32) * deviation).view(np.uint8)
    data = np.frombuffer(random.bytes(count * size), np.uint8).reshape(count, size).copy()
    uniform = lambda levels: math.sqrt((levels * levels - 1) / 12)  # of equally likely integers
    if dtype == Q.Q8_0:
        data[:, :2] = halves(deviation / uniform(256), count)
    elif dtype == Q.Q4_0:
        data[:, :2] = halves(deviation / uniform(16), count)
    elif dtype == Q.Q4_K:  # d * scale * q - dmin * min: equal factors of 32 leave 0 in the middle
        data[:, 4:16] = packed_scales(32)
        scale = deviation / uniform(16) / 32
        data[:, 0:2] = halves(scale, count)
        data[:, 2:4] = halves(scale * 7.5, count)
    elif dtype == Q.Q6_K:  # d * scale * (q - 32)
        data[:, 192:208] = 16
        data[:, 208:210] = halves(deviation / uniform(64) / 16, count)
    assert block * count * deviation > 0
    return data


def packed_scales(value):
    """Q4_K's twelve bytes of eight 6-bit scales and eight 6-bit minima, all equal."""
    low = np.full(8, value & 63 | (value >> 4) << 6, np.uint8)
    high = np.full(4, value & 15 | (value & 15) << 4, np.uint8)
    return np.concatenate([low, high])


def matrices(shape):
    """(name, layer, rows, columns)."""
    q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    yield "token_embd.weight", -1, shape.vocabulary, shape.hidden
    for i in range(shape.layers):
        yield f"blk.{i}.attn_q.weight", i, q, shape.hidden
        yield f"blk.{i}.attn_k.weight", i, kv, shape.hidden
        yield f"blk.{i}.attn_v.weight", i, kv, shape.hidden
        yield f"blk.{i}.attn_output.weight", i, shape.hidden, q
        yield f"blk.{i}.ffn_gate.weight", i, shape.intermediate, shape.hidden
        yield f"blk.{i}.ffn_up.weight", i, shape.intermediate, shape.hidden
        yield f"blk.{i}.ffn_down.weight", i, shape.hidden, shape.intermediate
    if not shape.tied:
        yield "output.weight", -1, shape.vocabulary, shape.hidden


def vectors(shape):
    """(name, size, is a bias)."""
    q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    yield "output_norm.weight", shape.hidden, False
    for i in range(shape.layers):
        yield f"blk.{i}.attn_norm.weight", shape.hidden, False
        yield f"blk.{i}.ffn_norm.weight", shape.hidden, False
        if shape.architecture == "qwen2":
            for name, size in (("q", q), ("k", kv), ("v", kv)):
                yield f"blk.{i}.attn_{name}.bias", size, True


def add_metadata(writer, shape, name, file_type):
    writer.add_name(f"random weights in the shape of {name}")
    writer.add_file_type(FILE_TYPES[file_type])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_block_count(shape.layers)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden)
    writer.add_feed_forward_length(shape.intermediate)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(shape.epsilon)
    writer.add_vocab_size(shape.vocabulary)


def copy_vocabulary(writer, path, size):
    """The tokenizer's keys of a real file; returns the vocabulary's size, at least `size`."""
    reader = gguf.GGUFReader(path)
    tokens = reader.get_field("tokenizer.ggml.tokens").contents()
    size = max(size, len(tokens))
    filler = [f"<|unused_{i}|>" for i in range(size - len(tokens))]
    for key, field in reader.fields.items():
        if not key.startswith("tokenizer."):
            continue
        value = field.contents()
        kind = field.types[0]
        if key == "tokenizer.ggml.tokens":
            value = value + filler
        elif key == "tokenizer.ggml.token_type":
            value = value + [int(gguf.TokenType.UNUSED)] * len(filler)
        elif key == "tokenizer.ggml.scores":
            value = value + [0.0] * len(filler)
        sub_type = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, value, kind, sub_type)
    return size


def write(args):
    shape = SHAPES[args.shape]
    writer = gguf.GGUFWriter(args.out, shape.architecture)
    size = copy_vocabulary(writer, args.vocabulary, shape.vocabulary)
    shape = dataclasses.replace(shape, vocabulary=size)
    add_metadata(writer, shape, args.shape, args.type)
    plan = []
    for name, layer, rows, columns in matrices(shape):
        dtype = type_of(name, layer, shape, args.type)
        block, block_bytes = gguf.GGML_QUANT_SIZES[dtype]
        num_blocks = rows * columns // block
        assert columns % block == 0, f"{name}: {columns} columns are no whole {dtype.name} blocks"
        info = np.float16 if dtype == Q.F16 else np.uint8
        dims = (rows, columns) if dtype == Q.F16 else (rows, columns // block * block_bytes)
        writer.add_tensor_info(name, dims, np.dtype(info), num_blocks * block_bytes,
                               raw_dtype=None if dtype == Q.F16 else dtype)
        plan.append((dtype, num_blocks, 1 / math.sqrt(columns), 0.0))
    for name, count, is_bias in vectors(shape):
        writer.add_tensor_info(name, (count,), np.dtype(np.float32), count * 4)
        plan.append((Q.F32, count, 0.01, 0.0 if is_bias else 1.0))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    random = np.random.default_rng(args.seed)
    output = writer.fout[0]
    for dtype, num_blocks, deviation, mean in plan:
        writer.write_padding(output, output.tell())
        block, _ = gguf.GGML_QUANT_SIZES[dtype]
        for first in range(0, num_blocks, CHUNK_VALUES // block):
            count = min(num_blocks - first, CHUNK_VALUES // block)
            data = random_blocks(random, dtype, count, deviation)
            output.write((data.view(np.float32) + np.float32(mean)).tobytes() if mean else data.tobytes())
    writer.write_padding(output, output.tell())
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("type", choices=FILE_TYPES)
    parser.add_argument("--vocabulary", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    write(parser.parse_args())


if __name__ == "__main__":
    main()
