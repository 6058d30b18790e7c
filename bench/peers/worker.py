"""What the workers of the peers share: one request a line on standard input, one answer a line on standard output.

A worker is a process with one engine and one model. Its first line says {"version", "kv", "load_s"}; then each request
{"op": "prefill", "tokens": n} or {"op": "decode", "batch": b, "steps": n, "depth": d} gets {"seconds": s}, or
{"error": text}. Token ids are seeded and never come twice.
"""
import json
import os
import sys


class Tokens:
    def __init__(self, vocab_size, seed):
        import numpy
        self.vocab_size = vocab_size
        self.random = numpy.random.default_rng(seed)

    def take(self, count):
        # The first ids are special tokens in many vocabularies.
        return self.random.integers(min(1000, self.vocab_size // 2), self.vocab_size, count)


def serve(engine, hello):
    # Libraries print to standard output: answers go to a copy of it, their words to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps(hello), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        operation = getattr(engine, request.pop("op"))
        try:
            answer = {"seconds": operation(**request)}
        except Exception as error:  # the comparison goes on with the other engines
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
