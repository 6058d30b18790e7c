"""llama.cpp through llama-cpp-python's own bindings, driven as its llama-bench drives it: decode() of token batches."""
import argparse
import ctypes
import time

import llama_cpp
from worker import Tokens, serve

UBATCH = 512


class Engine:
    def __init__(self, path, threads, context, sequences, seed):
        llama_cpp.llama_backend_init()
        self.log = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(self.log, ctypes.c_void_p(0))
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = 0
        started = time.perf_counter()
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), params)
        if not self.model:
            raise RuntimeError(f"llama.cpp cannot load {path}")
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = context * sequences
        params.n_batch = max(2048, sequences)
        params.n_ubatch = UBATCH
        params.n_seq_max = sequences
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED
        params.kv_unified = False
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        if not self.context:
            raise RuntimeError("llama.cpp has no memory for this context")
        self.load_s = time.perf_counter() - started
        vocab = llama_cpp.llama_model_get_vocab(self.model)
        self.tokens = Tokens(llama_cpp.llama_vocab_n_tokens(vocab), seed)
        self.batch = llama_cpp.llama_batch_init(params.n_batch, 0, 1)
        self.batch_size = params.n_batch

    def clear(self):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)

    def step(self, rows):
        """rows: (token, position, sequence, wants logits)."""
        for i, (token, position, sequence, logits) in enumerate(rows):
            self.batch.token[i] = token
            self.batch.pos[i] = position
            self.batch.n_seq_id[i] = 1
            self.batch.seq_id[i][0] = sequence
            self.batch.logits[i] = logits
        self.batch.n_tokens = len(rows)
        if llama_cpp.llama_decode(self.context, self.batch) != 0:
            raise RuntimeError("llama_decode failed")

    def compute(self, count, sequence):
        tokens = self.tokens.take(count)
        for first in range(0, count, self.batch_size):
            chunk = range(first, min(count, first + self.batch_size))
            self.step([(int(tokens[i]), i, sequence, i == count - 1) for i in chunk])

    def prefill(self, tokens):
        self.clear()
        started = time.perf_counter()
        self.compute(tokens, 0)
        llama_cpp.llama_synchronize(self.context)
        return time.perf_counter() - started

    def decode(self, batch, steps, depth):
        self.clear()
        for sequence in range(batch):
            if depth:
                self.compute(depth, sequence)
        llama_cpp.llama_synchronize(self.context)
        started = time.perf_counter()
        for step in range(steps):
            tokens = self.tokens.take(batch)
            self.step([(int(tokens[i]), depth + step, i, True) for i in range(batch)])
            llama_cpp.llama_synchronize(self.context)
        return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--context", type=int, required=True)
    parser.add_argument("--sequences", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    args = parser.parse_args()
    engine = Engine(args.model, args.threads, args.context, args.sequences, args.seed)
    serve(engine, {"version": f"llama-cpp-python {llama_cpp.__version__}", "kv": "f16", "load_s": engine.load_s})


if __name__ == "__main__":
    main()
