#!/usr/bin/env python3
"""Makes the tiny random models of tests/data/golden and their reference logits.

For each architecture: NAME.gguf (float32 weights) and NAME.logits (little-endian: int32 number of tokens T, prompt
length P and vocabulary V, then T int32 tokens, then T x V float32 logits of Hugging Face transformers in float32).
The first P tokens are a prompt; the others were decoded greedily one by one from it, with the cache.

Beside them, without logits, NAME_q.gguf: the same weights in block types of 32, for tests that ask for equal bits
whatever the batch.

The models are made so that a fault shows: query and key projections are large, which peaks the attention; epsilon is
as large as the mean square of what it is added to; the window is shorter than the text; positions are scaled.

Needs: torch, transformers 4.57, gguf, numpy.  Usage: scripts/golden/make_tiny_models.py [OUT_DIR]
"""
import pathlib
import sys

import gguf
import numpy as np
import torch
from transformers import (Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM, Qwen2Config,
                          Qwen2ForCausalLM)

PROMPT_TOKENS = 40
DECODE_STEPS = 32
VOCAB = 96

COMMON = dict(vocab_size=VOCAB, hidden_size=64, intermediate_size=96, max_position_embeddings=256, rms_norm_eps=0.05,
              bos_token_id=1, eos_token_id=2, pad_token_id=0, attn_implementation="eager")

NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def llama():
    config = LlamaConfig(**COMMON, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=16,
                         rope_theta=5000.0, rope_scaling={"rope_type": "linear", "factor": 2.0},
                         tie_word_embeddings=False)
    return LlamaForCausalLM(config), config


def qwen2():
    config = Qwen2Config(**COMMON, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
                         rope_theta=20000.0, tie_word_embeddings=True, use_sliding_window=False)
    return Qwen2ForCausalLM(config), config


def gemma3():
    config = Gemma3TextConfig(**COMMON, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=1, head_dim=32,
                              rope_theta=40000.0, rope_local_base_freq=700.0, sliding_window=11,
                              rope_scaling={"rope_type": "linear", "factor": 4.0}, query_pre_attn_scalar=32,
                              layer_types=["sliding_attention", "sliding_attention", "full_attention",
                                           "sliding_attention"], tie_word_embeddings=True)
    return Gemma3ForCausalLM(config), config


def randomize(model, seed):
    """Weights that a fault moves: see the module's text."""
    generator = torch.Generator().manual_seed(seed)
    gemma = "Gemma" in type(model).__name__
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=generator)
        if p.dim() == 1 and "norm" in name:
            p.data = noise * 0.2 + (0.0 if gemma else 1.0)
        elif p.dim() == 1:
            p.data = noise * 0.3
        elif "embed_tokens" in name:
            p.data = noise * (0.04 if gemma else 0.3)
        else:
            p.data = noise * (p.shape[1] ** -0.5) * (2.0 if "q_proj" in name or "k_proj" in name else 1.0)


def reference(model, seed):
    """Tokens and logits: a prefill of the prompt, then greedy steps with the cache."""
    tokens = torch.randint(3, VOCAB, (1, PROMPT_TOKENS), generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        out = model(tokens, use_cache=True)
        logits = [out.logits[0]]
        for _ in range(DECODE_STEPS):
            step = out.logits[:, -1:].argmax(-1)
            tokens = torch.cat([tokens, step], 1)
            out = model(step, past_key_values=out.past_key_values, use_cache=True)
            logits.append(out.logits[0])
    return tokens[0].numpy().astype("<i4"), torch.cat(logits).numpy().astype("<f4")


def interleave(weight, heads):
    """Rows of each head in the order in which rotation pairs are neighbours, as GGUF files of Llama have them."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def gguf_name(name, arch):
    stem, suffix = name.rsplit(".", 1)
    if stem.startswith("model.layers."):
        _, _, layer, part = stem.split(".", 3)
        if arch == "gemma3" and part == "post_attention_layernorm":
            return f"blk.{layer}.post_attention_norm.{suffix}"
        return f"blk.{layer}.{NAMES[part]}.{suffix}"
    return f"{NAMES[stem]}.{suffix}"


# Block types of the linear layers, in turn; the embedding, where it is the output head too, is Q8_0.
BLOCK_TYPES = [gguf.GGMLQuantizationType[name] for name in ("Q4_1", "Q8_0", "Q4_0", "Q5_1", "Q5_0")]


def write_tensor(writer, name, data, block_type):
    if block_type is None or data.ndim == 1:
        writer.add_tensor(name, np.ascontiguousarray(data))
    else:
        writer.add_tensor(name, gguf.quants.quantize(data, block_type), raw_dtype=block_type)


def write_model(path, arch, model, config, quantized=False):
    writer = gguf.GGUFWriter(str(path), arch)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_theta)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    if config.rope_scaling:
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(config.rope_scaling["factor"])
    if arch == "gemma3":
        writer.add_sliding_window(config.sliding_window)
        writer.add_uint32("gemma3.attention.sliding_window_pattern", 3)
        writer.add_float32("gemma3.rope.freq_base_swa", config.rope_local_base_freq)
    for i, (name, p) in enumerate(model.named_parameters()):
        data = p.detach().numpy().astype(np.float32)
        block_type = BLOCK_TYPES[1 if "embed" in name else i % len(BLOCK_TYPES)] if quantized else None
        if arch == "llama" and ("q_proj" in name or "k_proj" in name):
            data = interleave(data, config.num_attention_heads if "q_proj" in name else config.num_key_value_heads)
        if arch == "gemma3" and "norm" in name:
            data = data + np.float32(1)
        write_tensor(writer, gguf_name(name, arch), data, block_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(out="tests/data/golden"):
    torch.set_num_threads(1)
    out = pathlib.Path(out)
    for seed, (arch, make) in enumerate({"llama": llama, "qwen2": qwen2, "gemma3": gemma3}.items(), 1):
        model, config = make()
        model.eval()
        randomize(model, seed)
        model.tie_weights()
        tokens, logits = reference(model, 100 + seed)
        write_model(out / f"{arch}.gguf", arch, model, config)
        write_model(out / f"{arch}_q.gguf", arch, model, config, quantized=True)
        with open(out / f"{arch}.logits", "wb") as f:
            f.write(np.array([len(tokens), PROMPT_TOKENS, VOCAB], dtype="<i4").tobytes())
            f.write(tokens.tobytes() + logits.tobytes())
        print(arch, logits.shape, "max", np.abs(logits).max(), "tokens", len(set(tokens.tolist())))


if __name__ == "__main__":
    main(*sys.argv[1:])
