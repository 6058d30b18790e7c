#!/usr/bin/env python3
"""Headrace beside llama.cpp (llama-cpp-python) and OpenVINO GenAI: the same model file, threads and lengths, the engines
taking turns in one run, never the same prompt twice. Writes a table of rates, ratios, KV types, versions and shares of
the machine's limits, and the same as JSON.

MODEL is a GGUF file or a short name that `headrace pull` knows. Run it through bench/peers/run, which makes the peers'
environment, on a machine with nothing else to do. --start measures something else: seconds from a process's start to its
first token, with the file in the page cache.
"""
import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys

import table
from engines import Case, Failure, Headrace, LlamaBench, Worker

FULL_MODELS = ["smollm2", "gemma3-270m", "qwen2.5-coder-1.5b"]
FULL_CASES = [Case(512, 128, (1, 8, 16, 32)), Case(333, 64, (1,)), Case(1777, 64, (1,))]
LONG_CASES = [Case(7936, 128, (1,), 7936)]
QUICK_CASES = [Case(256, 32, (1, 8))]
START_PROMPT = 64


def model_path(program, name):
    if pathlib.Path(name).exists():
        return name
    done = subprocess.run([program, "pull", name, "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{name} is no file and cannot be pulled")
    return json.loads(done.stdout)["path"]


def has_float_weights(path):
    import gguf
    field = gguf.GGUFReader(path).get_field("general.file_type")
    return field is not None and int(field.contents()) in (0, 1, 32)  # F32, F16, BF16


def make_peers(args, path, case):
    """The peers that can read this file, and why the others cannot."""
    precision = ("--precision", "f32") if "openvino" in args.peers and has_float_weights(path) else ()
    makers = {"llama.cpp": lambda: Worker("llama.cpp", "worker_llama_cpp.py", path, case, args.threads),
              "openvino": lambda: Worker("OpenVINO GenAI", "worker_openvino.py", path, case, args.threads, precision),
              "llama-bench": lambda: LlamaBench(args.llama_bench, path, case, args.threads)}
    peers, notes = [], []
    for name in args.peers:
        try:
            peers.append(makers[name]())
        except Failure as failure:
            notes.append(f"{name}: {failure}")
    return peers, notes


def measure_case(args, path, case):
    """Rates of every engine and work, a list of rounds each."""
    ours = Headrace(args.headrace, path, case, args.threads)
    peers, notes = make_peers(args, path, case)
    rows = [{"work": work, "amount": amount, "rates": {}, "shares": []} for work, amount in case.works()]
    for number in range(args.rounds):
        for engine in [ours, *peers]:
            try:
                engine.begin_round()
                for row in rows:
                    rate = engine.measure(row["work"], row["amount"])
                    row["rates"].setdefault(engine.name, []).append(rate)
                    if engine is ours:
                        row["shares"].append(ours.shares(row["work"], row["amount"]))
            except Failure as failure:
                if engine is ours:
                    raise SystemExit(f"headrace: {failure}") from failure
                note = f"{engine.name}: {failure}"
                notes.extend([note] if note not in notes else [])
        print(f"{pathlib.Path(path).stem}, prompt {case.prompt}, depth {case.depth}: round {number + 1} of {args.rounds}",
              file=sys.stderr, flush=True)
    engines = [{"name": e.name, "version": e.version, "kv": e.kv} for e in [ours, *peers]]
    for peer in peers:
        peer.close()
    return {"prompt": case.prompt, "generate": case.generate, "depth": case.depth, "isa": ours.isa,
            "limits": ours.result["limits"], "rows": rows, "engines": engines, "notes": notes}


def measure_start(args, path):
    """Seconds from nothing to the first token, each engine in a new process a round."""
    case = Case(START_PROMPT, 1, (1,))
    text = "a" + " a" * (START_PROMPT - 1)
    command = [args.headrace, "run", path, "--raw", "-p", text, "--max-tokens", "1", "--context", "256", "--threads",
               str(args.threads), "--json"]
    seconds, engines = {}, []
    for _ in range(args.rounds):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"headrace: {done.stderr.strip()}")
        timings = json.loads(done.stdout)["timings"]
        seconds.setdefault("headrace", []).append(timings["load_s"] + timings["ttft_s"])
        peers, notes = make_peers(args, path, case)
        for peer in peers:
            seconds.setdefault(peer.name, []).append(peer.load_s + peer.ask(op="prefill", tokens=START_PROMPT))
            peer.close()
        engines = [{"name": p.name, "version": p.version, "kv": p.kv} for p in peers]
    return {"prompt": START_PROMPT, "seconds": {k: statistics.median(v) for k, v in seconds.items()}, "engines": engines,
            "notes": notes}


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"default: {' '.join(FULL_MODELS)}")
    parser.add_argument("--quick", action="store_true", help="the smallest model, short lengths, two rounds")
    parser.add_argument("--long", action="store_true", help="prompts and contexts of 8k too")
    parser.add_argument("--start", action="store_true", help="seconds to the first token instead")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--prompt", type=int, help="with any of these four: this one case")
    parser.add_argument("--generate", type=int)
    parser.add_argument("--batch", type=lambda text: tuple(map(int, text.split(","))))
    parser.add_argument("--depth", type=int)
    parser.add_argument("--peers", type=lambda text: text.split(","), help="of llama.cpp, openvino, llama-bench")
    parser.add_argument("--llama-bench", metavar="PROGRAM", help="adds llama.cpp's own benchmark, for one stream")
    parser.add_argument("--headrace", default="build/release/headrace", metavar="PROGRAM")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/peers"), metavar="FOLDER")
    args = parser.parse_args()
    args.peers = args.peers or ["llama.cpp", "openvino"]
    unknown = set(args.peers) - {"llama.cpp", "openvino", "llama-bench"}
    if unknown:
        parser.error(f"--peers: {', '.join(sorted(unknown))} is none of llama.cpp, openvino, llama-bench")
    if args.llama_bench and "llama-bench" not in args.peers:
        args.peers.append("llama-bench")
    if "llama-bench" in args.peers and not args.llama_bench:
        parser.error("--peers llama-bench: name the program with --llama-bench")
    if not shutil.which(args.headrace):
        parser.error(f"{args.headrace} is no program: build it with 'cmake --preset release && ninja -C build/release "
                     "headrace', or name it with --headrace")
    args.rounds = args.rounds or (2 if args.quick else 5)
    args.models = args.models or (FULL_MODELS[:1] if args.quick else FULL_MODELS)
    return args


def cases_of(args):
    if any(value is not None for value in (args.prompt, args.generate, args.batch, args.depth)):
        return [Case(args.prompt or 512, args.generate or 128, args.batch or (1,), args.depth or 0)]
    return QUICK_CASES if args.quick else FULL_CASES + (LONG_CASES if args.long else [])


def main():
    args = parse_arguments()
    result = {"cpu": cpu_name(), "threads": args.threads, "rounds": args.rounds, "models": []}
    for name in args.models:
        path = model_path(args.headrace, name)
        model = {"name": pathlib.Path(name).stem if pathlib.Path(name).exists() else name, "cases": []}
        if args.start:
            model["start"] = measure_start(args, path)
        else:
            model["cases"] = [measure_case(args, path, case) for case in cases_of(args)]
        result["models"].append(model)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    text = table.start_table(result) if args.start else table.rate_table(result)
    (args.out / "table.md").write_text(text)
    print(text, end="")
    print(f"{args.out}/table.md and {args.out}/result.json written", file=sys.stderr)


if __name__ == "__main__":
    main()
