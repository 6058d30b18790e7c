"""What the larger short names answer, from the command line. Skipped, with the reason, where a model is not fetched."""

import json
import os
import pathlib
import subprocess
import unittest

from serving import HEADRACE


def store():
    if home := os.environ.get("HEADRACE_HOME"):
        return pathlib.Path(home) / "models"
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "headrace" / "models"


def require(name):
    if not (store() / f"{name}.gguf").exists():
        raise unittest.SkipTest(f"{name} is not in the store {store()}: fetch it with 'headrace pull {name}'")


def run(*arguments):
    """The JSON of `headrace run`, greedy."""
    command = [HEADRACE, "run", *arguments, "--temperature", "0", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stderr}")
    return json.loads(done.stdout)


class Gemma3(unittest.TestCase):
    def setUp(self):
        require("gemma3-270m")

    def test_completes_a_sentence(self):
        answer = run("gemma3-270m", "--raw", "-p", "The three primary colours are", "--max-tokens", "16")
        self.assertIn("red", answer["text"])

    def test_reads_beyond_its_window(self):
        # 2,000 tokens: the layers with a window of 512 no longer see the beginning, the others do.
        text = "The secret word is lighthouse. " + "The sea is calm today. " * 330 + "The secret word is"
        answer = run("gemma3-270m", "--raw", "-p", text, "--max-tokens", "4")
        self.assertIn("lighthouse", answer["text"])


class Qwen25Coder(unittest.TestCase):
    def setUp(self):
        require("qwen2.5-coder-1.5b")

    def test_writes_a_function(self):
        question = "Write a C++ function that reverses a string."
        answer = run("qwen2.5-coder-1.5b", "-p", question, "--max-tokens", "64")
        self.assertIn("reverse", answer["text"])
        self.assertIn("string", answer["text"])
        self.assertEqual(answer["completion_tokens"], len(answer["token_ids"]))
        self.assertLessEqual(answer["completion_tokens"], 64)


if __name__ == "__main__":
    unittest.main()
