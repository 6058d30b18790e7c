#!/usr/bin/env python3
"""How far more cores help, on paper: a step's time from its work, the memory's bandwidth and its barriers.

A linear layer is cut into panels of 32 output columns that no two cores share, so it takes the panels of the busiest
core, ceil(panels / cores); with many rows a panel's rows are cut too. A step is, for each layer's products,
    max(panels of the busiest core * time of one, bytes / bandwidth),
plus five barriers a layer, each log2(cores) times as long as between two cores. Attention and what stands between the
products is left out: at short contexts it is small, and it splits evenly. The defaults are a server core with
AVX512-VNNI (770 Gop/s int8, 60 % of it reached) and memory that grows with the socket (MEMORY_GB_S).

Usage: scaling.py [--core-gops N] [--efficiency F] [--barrier-ns N]
"""
import argparse
import math

PANEL = 32
PARTS = 8  # of a panel's rows, in prefill
BARRIERS = 5
MOST_DECODE_ROWS = 64
ONE_CORE_GB_S = 12.0
MEMORY_GB_S = {1: 12, 2: 24, 4: 48, 8: 96, 16: 160, 32: 240, 64: 300}
# hidden, intermediate, layers, values of the query and of the KV heads, vocabulary, bytes a weight
MODELS = {"SmolLM2-135M Q4_1": (576, 1536, 30, 576, 192, 49152, 0.625),
          "Qwen2.5-1.5B Q4_K_M": (1536, 8960, 28, 1536, 256, 151936, 0.60),
          "7B shape Q4_K_M": (3584, 18944, 28, 3584, 512, 152064, 0.60)}


def products_of(model):
    """(outputs, inputs, is the output head) of each matrix product of a step; fused ones are one."""
    hidden, intermediate, layers, q, kv, vocabulary, _ = MODELS[model]
    for _ in range(layers):
        yield q + 2 * kv, hidden, False
        yield hidden, q, False
        yield 2 * intermediate, hidden, False
        yield hidden, intermediate, False
    yield vocabulary, hidden, True


def step_seconds(model, rows, cores, args):
    """Of `rows` rows; a prefill computes the output head for its last row only."""
    rate = args.core_gops * 1e9 * args.efficiency
    seconds = 0.0
    for outputs, inputs, is_head in products_of(model):
        product_rows = 1 if is_head and rows > MOST_DECODE_ROWS else rows
        parts = PARTS if product_rows > MOST_DECODE_ROWS else 1
        tasks = math.ceil(outputs / PANEL) * parts
        busiest = math.ceil(tasks / cores) / parts
        compute = busiest * PANEL * inputs * 2 * product_rows / rate
        # A core alone draws no more than its own share, and one without a panel draws nothing.
        bandwidth = min(MEMORY_GB_S[cores], min(cores, tasks) * ONE_CORE_GB_S) * 1e9
        seconds += max(compute, outputs * inputs * MODELS[model][-1] / bandwidth)
    return seconds + BARRIERS * MODELS[model][2] * args.barrier_ns * 1e-9 * math.log2(cores)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core-gops", type=float, default=770, help="int8 peak of a core")
    parser.add_argument("--efficiency", type=float, default=0.6, help="share of it that the kernels reach")
    parser.add_argument("--barrier-ns", type=float, default=150, help="a barrier of two cores")
    args = parser.parse_args()
    print("| model | work, tok/s | " + " | ".join(f"{n} core{'s' if n > 1 else ''}" for n in MEMORY_GB_S) + " |")
    print("|---|---|" + "---|" * len(MEMORY_GB_S))
    for model in MODELS:
        for name, rows in (("prefill 512", 512), ("decode, 1 stream", 1), ("decode, 32 streams", 32)):
            one = step_seconds(model, rows, 1, args)
            times = [step_seconds(model, rows, cores, args) for cores in MEMORY_GB_S]
            cells = [f"{rows / seconds:.0f} ({one / seconds:.1f}x)" for seconds in times]
            print(f"| {model} | {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
