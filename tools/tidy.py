#!/usr/bin/env python3
"""Runs clang-tidy on the sources (not the tests) of a build tree. A file that passed is not looked at again until it,
a header of the project that it includes, its compile command, .clang-tidy or clang-tidy itself changes; what passed is
remembered in the user's cache folder, for every checkout.

Usage: tidy.py BUILD_DIR [--jobs N] [PATH_PREFIX...]
The build tree must be built with ninja: the headers of each file are read from ninja's own records.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FINDING = re.compile(r"\S+:\d+:\d+: (error|warning): ")
SKIPPED_SUFFIXES = ("_test.cc", "_bench.cc")


def parse_deps(output):
    """{object: [file...]} from the output of `ninja -t deps`."""
    deps, current = {}, None
    for line in output.splitlines():
        if line.startswith(" "):
            current.append(line.strip())
        elif ": #deps" in line:
            current = deps.setdefault(line.split(": #deps")[0], [])
    return deps


def without_precompiled(command):
    """The compile command as clang-tidy can take it: GCC's precompiled headers mean nothing to it, and a file must include
    what it uses by itself."""
    return re.sub(r" -Winvalid-pch| -include \S*/cmake_pch\.hxx", "", command)


class Hasher:
    """SHA-256 of files, each read once."""

    def __init__(self):
        self.known = {}

    def of_file(self, path):
        if path not in self.known:
            self.known[path] = hashlib.sha256(path.read_bytes()).hexdigest()
        return self.known[path]


def key_of(entry, files, common, hasher):
    """What the verdict on one compile command depends on. System headers count by name: their package does not change
    without the compiler's or their path."""
    key = hashlib.sha256(common.encode())
    key.update(entry["command"].replace(str(ROOT), ".").encode())
    for name in sorted(files):
        path = pathlib.Path(entry["directory"], name).resolve()
        if path.is_relative_to(ROOT):
            key.update(f"{path.relative_to(ROOT)} {hasher.of_file(path)}\n".encode())
        else:
            key.update(f"{name}\n".encode())
    return key.hexdigest()


def lint(database, source):
    """(passed, what clang-tidy said)."""
    # The commands are GCC's, which has warnings that clang does not know.
    run = subprocess.run(["clang-tidy", "--quiet", "-p", database, "--extra-arg=-Wno-unknown-warning-option", source],
                         capture_output=True, text=True)
    said = "\n".join(line for line in run.stdout.splitlines() if not line.startswith("Use -"))
    if run.returncode != 0 and not said:
        said = run.stderr.strip()
    return run.returncode == 0, said


def new_findings(said, seen):
    """The findings in what clang-tidy said that are not in `seen`, which they join: one in a header is told once."""
    findings = []
    for line in said.splitlines():
        if FINDING.match(line) or not findings:
            findings.append([])
        findings[-1].append(line)
    fresh = ["\n".join(lines) for lines in findings if lines[0] not in seen]
    seen.update(lines[0] for lines in findings)
    return fresh


def object_of(entry):
    words = shlex.split(entry["command"])
    return words[words.index("-o") + 1]


def wanted(entries, prefixes):
    for entry in entries:
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if not path.is_relative_to(ROOT) or path.name.endswith(SKIPPED_SUFFIXES):
            continue
        name = str(path.relative_to(ROOT))
        if name.startswith("tests/"):
            continue
        if not prefixes or name.startswith(tuple(prefixes)):
            yield name, entry


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build_dir")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("prefixes", nargs="*")
    args = parser.parse_intermixed_args()

    build = pathlib.Path(args.build_dir)
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "headrace" / "tidy"
    cache.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True, check=True).stdout
    common = version + (ROOT / ".clang-tidy").read_text()
    deps = parse_deps(subprocess.run(["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True,
                                     check=True).stdout)
    hasher = Hasher()
    entries = json.loads((build / "compile_commands.json").read_text())
    for entry in entries:
        entry["command"] = without_precompiled(entry["command"])
    database = build / "tidy"
    database.mkdir(exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps(entries))
    todo, num_known = [], 0
    for name, entry in wanted(entries, args.prefixes):
        key = key_of(entry, deps.get(object_of(entry), [entry["file"]]), common, hasher)
        if (cache / key).exists():
            num_known += 1
        else:
            todo.append((name, key))

    num_failed, seen = 0, set()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        verdicts = {pool.submit(lint, str(database), str(ROOT / name)): (name, key) for name, key in todo}
        for verdict in concurrent.futures.as_completed(verdicts):
            name, key = verdicts[verdict]
            passed, said = verdict.result()
            if passed:
                (cache / key).touch()
            else:
                num_failed += 1
                for finding in new_findings(said, seen):
                    print(finding, flush=True)
    print(f"clang-tidy: {len(todo)} files looked at, {num_known} known to be good, {num_failed} with findings")
    return 1 if num_failed else 0


if __name__ == "__main__":
    sys.exit(main())
