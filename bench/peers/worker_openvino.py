"""OpenVINO GenAI, which reads GGUF files of llama and qwen2. One stream through its LLMPipeline; several through its
ContinuousBatchingPipeline. Its API has no single steps, so a decode rate is the time of `steps` + 1 tokens less that of
one, on different prompts."""
import argparse
import time

import numpy
import openvino
import openvino_genai
from worker import Tokens, serve

SHORTEST_PROMPT = 8


class Engine:
    def __init__(self, path, threads, seed, precision):
        self.path = path
        # The hint is OpenVINO's own for one user; float32 is asked for where float weights are compared.
        self.settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
        if precision:
            self.settings["INFERENCE_PRECISION_HINT"] = precision
        started = time.perf_counter()
        self.pipeline = openvino_genai.LLMPipeline(path, "CPU", **self.settings)
        self.batching = None
        self.tokens = Tokens(len(self.pipeline.get_tokenizer().get_vocab()), seed)
        self.prefill(SHORTEST_PROMPT)  # compiles, which a first token would wait for
        self.load_s = time.perf_counter() - started

    @staticmethod
    def config(count):
        return openvino_genai.GenerationConfig(max_new_tokens=count, min_new_tokens=count, ignore_eos=True,
                                               do_sample=False)

    def prompt(self, count):
        return self.tokens.take(count).astype(numpy.int64)[None, :]

    def generate_one(self, prompt_tokens, count):
        ids = self.prompt(prompt_tokens)
        inputs = openvino_genai.TokenizedInputs(openvino.Tensor(ids), openvino.Tensor(numpy.ones_like(ids)))
        started = time.perf_counter()
        self.pipeline.generate(inputs, self.config(count))
        return time.perf_counter() - started

    def generate_many(self, batch, prompt_tokens, count):
        if self.batching is None:
            scheduler = openvino_genai.SchedulerConfig()
            scheduler.cache_size = 2  # GB
            scheduler.max_num_batched_tokens = 512
            scheduler.enable_prefix_caching = False
            self.batching = openvino_genai.ContinuousBatchingPipeline(self.path, scheduler, "CPU", self.settings)
            self.generate_many(batch, SHORTEST_PROMPT, 2)  # compiles
        prompts = [openvino.Tensor(self.prompt(prompt_tokens)) for _ in range(batch)]
        started = time.perf_counter()
        self.batching.generate(prompts, [self.config(count)] * batch)
        return time.perf_counter() - started

    def prefill(self, tokens):
        return self.generate_one(tokens, 1)

    def decode(self, batch, steps, depth):
        prompt = max(SHORTEST_PROMPT, depth)
        if batch == 1:
            return self.generate_one(prompt, steps + 1) - self.generate_one(prompt, 1)
        return self.generate_many(batch, prompt, steps + 1) - self.generate_many(batch, prompt, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--context", type=int)
    parser.add_argument("--sequences", type=int)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--precision", default="", help="f32 for float weights")
    args = parser.parse_args()
    engine = Engine(args.model, args.threads, args.seed, args.precision)
    kv = engine.settings.get("KV_CACHE_PRECISION") or "u8 (its default)"
    version = openvino_genai.__version__ if hasattr(openvino_genai, "__version__") else openvino_genai.get_version()
    serve(engine, {"version": f"openvino-genai {version}", "kv": kv, "load_s": engine.load_s})


if __name__ == "__main__":
    main()
