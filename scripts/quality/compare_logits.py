#!/usr/bin/env python3
"""How far an engine's logits are from those of the weights as the file states them.

    compare_logits.py MODEL.gguf --text FILE [--text FILE] --work DIR [--headrace PROGRAM] [--tier T]... [--llama DIR]

The reference is Hugging Face transformers in float32 on the dequantized weights of the same GGUF file. Windows of 512
tokens are spread evenly over the texts; each is one prefill, and the rows of its second half that have a following
token are scored: KL(reference || engine) in nats, and how often the most probable token is the same.

  * Headrace: the program headrace_logits (tests/tools), KV in float16, for each --tier.
  * llama.cpp: its shared libraries in --llama, called directly with its default parameters; KV in float16.

All three read the same token ids (cut by llama.cpp's tokenizer; a model that wants BOS gets it as each window's first
token) and are scored by the same code. --work keeps the ids and the reference's logits (float32, 4 bytes x vocabulary a
row: 5 GB for a vocabulary of 262144), which are made once, and results.json.

Needs: numpy, torch, transformers 4.57, accelerate, gguf.
"""
import argparse
import ctypes
import json
import pathlib
import subprocess
import time

import numpy as np

WINDOW = 512
FIRST = 256  # the first position that is scored
SCORED = WINDOW - 1 - FIRST
BATCH_ROWS = 15  # rows scored at once; divides SCORED


class Llama:
    """llama.cpp's library through its C interface."""

    class Params(ctypes.Structure):
        # Parameters go by value, from the library's own defaults back to it: the size only has to be large enough.
        _fields_ = [("bytes", ctypes.c_char * 1024)]

    class Batch(ctypes.Structure):
        _fields_ = [("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)), ("embd", ctypes.c_void_p),
                    ("pos", ctypes.POINTER(ctypes.c_int32)), ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
                    ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
                    ("logits", ctypes.POINTER(ctypes.c_int8))]

    LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)

    def __init__(self, directory, model, threads):
        for name in ("ggml-base", "ggml-cpu", "ggml"):
            ctypes.CDLL(str(directory / f"lib{name}.so.0"), mode=ctypes.RTLD_GLOBAL)
        self.lib = lib = ctypes.CDLL(str(directory / "libllama.so.0"), mode=ctypes.RTLD_GLOBAL)
        pointer = ctypes.c_void_p
        for name, result, arguments in [
                ("llama_model_default_params", self.Params, []), ("llama_context_default_params", self.Params, []),
                ("llama_model_load_from_file", pointer, [ctypes.c_char_p, self.Params]),
                ("llama_init_from_model", pointer, [pointer, self.Params]), ("llama_n_ctx", ctypes.c_uint32, [pointer]),
                ("llama_set_n_threads", None, [pointer, ctypes.c_int32, ctypes.c_int32]),
                ("llama_model_get_vocab", pointer, [pointer]), ("llama_vocab_n_tokens", ctypes.c_int32, [pointer]),
                ("llama_vocab_get_add_bos", ctypes.c_bool, [pointer]), ("llama_vocab_bos", ctypes.c_int32, [pointer]),
                ("llama_tokenize", ctypes.c_int32, [pointer, ctypes.c_char_p, ctypes.c_int32, pointer,
                                                    ctypes.c_int32, ctypes.c_bool, ctypes.c_bool]),
                ("llama_batch_init", self.Batch, [ctypes.c_int32] * 3),
                ("llama_decode", ctypes.c_int32, [pointer, self.Batch]),
                ("llama_get_memory", pointer, [pointer]), ("llama_memory_clear", None, [pointer, ctypes.c_bool]),
                ("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), [pointer, ctypes.c_int32])]:
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments
        self.silent = self.LOG(lambda level, text, data: None)
        lib.llama_log_set(self.silent, None)
        self.model = lib.llama_model_load_from_file(str(model).encode(), lib.llama_model_default_params())
        assert self.model, f"llama.cpp cannot load {model}"
        self.vocab = lib.llama_model_get_vocab(self.model)
        self.vocab_size = lib.llama_vocab_n_tokens(self.vocab)
        self.context = lib.llama_init_from_model(self.model, lib.llama_context_default_params())
        assert self.context and lib.llama_n_ctx(self.context) == WINDOW
        lib.llama_set_n_threads(self.context, threads, threads)

    def tokenize(self, text):
        data = text.encode()
        ids = np.empty(len(data) + 8, np.int32)
        count = self.lib.llama_tokenize(self.vocab, data, len(data), ids.ctypes.data, ids.size, False, False)
        assert count > 0
        return ids[:count]

    def bos(self):
        return self.lib.llama_vocab_bos(self.vocab) if self.lib.llama_vocab_get_add_bos(self.vocab) else None

    def rows(self, windows):
        batch = self.lib.llama_batch_init(WINDOW, 0, 1)
        for window in windows:
            self.lib.llama_memory_clear(self.lib.llama_get_memory(self.context), True)
            batch.n_tokens = WINDOW
            for i in range(WINDOW):
                batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = int(window[i]), i, 1, 0
                batch.logits[i] = FIRST <= i < WINDOW - 1
            assert self.lib.llama_decode(self.context, batch) == 0
            for at in range(FIRST, WINDOW - 1, BATCH_ROWS):
                rows = [self.lib.llama_get_logits_ith(self.context, i) for i in range(at, at + BATCH_ROWS)]
                yield np.stack([np.ctypeslib.as_array(row, (self.vocab_size,)) for row in rows])


def cut_windows(llama, texts, count):
    """[count, WINDOW] token ids: as many windows of each text, evenly spaced."""
    windows = []
    for text in texts:
        ids = llama.tokenize(text.read_text(encoding="utf-8"))
        of_this = count // len(texts)
        assert ids.size >= of_this * WINDOW, f"{text} has {ids.size} tokens; {of_this} windows are asked for"
        windows += [ids[at:at + WINDOW] for at in np.linspace(0, ids.size - WINDOW, of_this).astype(int)]
    windows = np.stack(windows)
    if (bos := llama.bos()) is not None:
        windows[:, 0] = bos
    return windows


def load_reference(model):
    import gguf
    import torch
    from transformers import AutoModelForCausalLM
    network = AutoModelForCausalLM.from_pretrained(model.parent, gguf_file=model.name, dtype=torch.float32,
                                                   attn_implementation="eager").eval()
    # The weights are the file's, bit for bit: of the first and the last layer those that no conversion permutes.
    names = {"attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj",
             "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    checked_layers = ("0", str(network.config.num_hidden_layers - 1))
    compared = 0
    for tensor in gguf.GGUFReader(model).tensors:
        parts = tensor.name.split(".")
        if tensor.name == "token_embd.weight":
            mine = network.get_input_embeddings().weight
        elif parts[0] == "blk" and parts[1] in checked_layers and parts[2] in names and parts[-1] == "weight":
            mine = network.get_submodule(f"model.layers.{parts[1]}.{names[parts[2]]}").weight
        else:
            continue
        assert np.array_equal(gguf.dequantize(tensor.data, tensor.tensor_type), mine.detach().numpy()), tensor.name
        compared += 1
    print(f"reference: {compared} matrices equal the gguf package's; {network.config}")
    return network


def write_reference(model, windows, path, threads):
    """Writes the reference's logits to path, window after window; one that was interrupted goes on where it stopped."""
    import torch
    torch.set_num_threads(threads)
    network = load_reference(model)
    partial = path.with_suffix(".part")
    window_bytes = SCORED * network.config.vocab_size * 4
    done = partial.stat().st_size // window_bytes if partial.exists() else 0
    with open(partial, "ab") as file, torch.inference_mode():
        file.truncate(done * window_bytes)
        for i in range(done, len(windows)):
            start = time.time()
            window = torch.from_numpy(windows[i].astype(np.int64))[None]
            hidden = network.model(window, use_cache=False).last_hidden_state
            for at in range(FIRST, WINDOW - 1, BATCH_ROWS):
                file.write(network.lm_head(hidden[0, at:at + BATCH_ROWS]).numpy().tobytes())
            print(f"reference: window {i + 1} of {len(windows)}, {time.time() - start:.1f} s", flush=True)
    partial.rename(path)


def headrace_rows(program, model, tokens, vocab_size, tier, threads):
    command = [program, model, tokens, "--window", str(WINDOW), "--first", str(FIRST), "--kv", "f16", "--tier", tier,
               "--threads", str(threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        while data := process.stdout.read(BATCH_ROWS * vocab_size * 4):
            yield np.frombuffer(data, np.float32).reshape(BATCH_ROWS, vocab_size)
    assert process.returncode == 0, command


def score(reference, rows, targets, rows_path):
    """Scores rows (blocks of them, in order) against the reference [N, V]; each row's numbers go to rows_path."""
    import torch
    num_rows = len(reference)
    # Made once: small results kept between a block's large ones would leave holes that the next block does not fit.
    kl, same, loss, reference_loss = (np.empty(num_rows) for _ in range(4))
    at = 0
    for block in rows:
        here = slice(at, at + len(block))
        target = torch.from_numpy(targets[here].astype(np.int64))[:, None]
        p = torch.log_softmax(torch.from_numpy(reference[here].astype(np.float64)), -1)
        q = torch.log_softmax(torch.from_numpy(block.astype(np.float64)), -1)
        kl[here] = (p.exp() * (p - q)).sum(-1).numpy()
        same[here] = (p.argmax(-1) == q.argmax(-1)).numpy()
        loss[here] = -q.gather(1, target).numpy()[:, 0]
        reference_loss[here] = -p.gather(1, target).numpy()[:, 0]
        at = here.stop
    assert at == num_rows, f"{at} rows of {num_rows}"
    np.savez(rows_path, kl=kl, same=same)
    return {"rows": at, "kl_mean": float(kl.mean()), "kl_mean_error": float(kl.std() / np.sqrt(at)),
            "kl_median": float(np.median(kl)), "kl_p99": float(np.quantile(kl, 0.99)), "kl_max": float(kl.max()),
            "top1": float(same.mean()), "top1_error": float(same.std() / np.sqrt(at)),
            "perplexity": float(np.exp(loss.mean())), "perplexity_reference": float(np.exp(reference_loss.mean()))}


def compare(work, name, baseline):
    """The mean difference of name from baseline over the same rows, with its standard error."""
    mine, theirs = np.load(work / f"rows {name}.npz"), np.load(work / f"rows {baseline}.npz")
    differences = {}
    for key in ("kl", "same"):
        difference = mine[key].astype(np.float64) - theirs[key].astype(np.float64)
        differences[key] = [float(difference.mean()), float(difference.std() / np.sqrt(difference.size))]
    return differences


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--text", type=pathlib.Path, action="append", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--llama", type=pathlib.Path, required=True, help="folder of libllama.so.0")
    parser.add_argument("--headrace", type=pathlib.Path, help="the program headrace_logits")
    parser.add_argument("--tier", action="append", help="instruction sets of headrace (default: the best there is)")
    parser.add_argument("--skip-llama", action="store_true", help="score Headrace alone")
    parser.add_argument("--windows", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def main():
    args = parse_arguments()
    args.work.mkdir(parents=True, exist_ok=True)
    tokens, logits, results_path = (args.work / name for name in ("tokens.i32", "reference.f32", "results.json"))
    llama = Llama(args.llama, args.model, args.threads)
    windows = cut_windows(llama, args.text, args.windows)
    if tokens.exists():
        assert tokens.read_bytes() == windows.tobytes(), f"{args.work} holds other windows: give another folder"
    tokens.write_bytes(windows.tobytes())
    if not logits.exists():
        write_reference(args.model, windows, logits, args.threads)
    reference = np.memmap(logits, np.float32, "r").reshape(windows.shape[0] * SCORED, -1)
    assert reference.shape[1] == llama.vocab_size
    targets = windows[:, FIRST + 1:].ravel()
    engines = {}
    if args.headrace:
        for tier in args.tier or [""]:
            engines[f"headrace {tier}".strip()] = headrace_rows(args.headrace, args.model, tokens,
                                                                llama.vocab_size, tier, args.threads)
    if not args.skip_llama:
        engines["llama.cpp"] = llama.rows(windows)
    results = json.loads(results_path.read_text()) if results_path.exists() else {}
    for name, rows in engines.items():
        results[name] = score(reference, rows, targets, args.work / f"rows {name}.npz")
        print(name, json.dumps(results[name]), flush=True)
        results_path.write_text(json.dumps(results, indent=1) + "\n")
    for name in results:
        if name != "llama.cpp" and (args.work / "rows llama.cpp.npz").exists():
            print(f"{name} less llama.cpp (mean, standard error):", compare(args.work, name, "llama.cpp"))


if __name__ == "__main__":
    main()
