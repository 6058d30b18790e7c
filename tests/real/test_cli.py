"""What the commands say when something is wrong: one line, what to do, and the exit code."""

import json
import os
import subprocess
import tempfile
import unittest

from serving import HEADRACE, MODEL


def headrace(*arguments, **environment):
    return subprocess.run(
        [HEADRACE, *arguments],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


class Cli(unittest.TestCase):
    def fails(self, code, words, *arguments, **environment):
        run = headrace(*arguments, **environment)
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        self.assertTrue(run.stderr.startswith("headrace: "), run.stderr)
        self.assertIn(words, run.stderr)
        self.assertEqual(run.stdout, "")

    def test_wrong_usage(self):
        self.fails(2, "there is no command 'frob'", "frob")
        self.fails(2, "MODEL is required: see headrace run --help", "run")
        self.fails(2, "no whole number", "run", MODEL, "--max-tokens", "-1")
        self.fails(2, "no whole number", "run", MODEL, "--seed", "99999999999999999999")
        self.fails(2, "--stop: must not be empty", "run", MODEL, "-p", "a", "--stop", "")
        self.fails(2, "excludes", "tokenize", MODEL, "--text", "a", "--ids", "1")
        self.fails(2, "--cors", "serve", MODEL, "--port", "0", "--cors", "a\r\nb: c")
        self.fails(2, "'nonsense' is unknown", "run", MODEL, "-p", "a", HEADRACE_FORCE_ISA="nonsense")

    def test_what_is_not_there(self):
        self.fails(1, "no such file or folder", "run", "no-such-model")
        self.fails(1, "Is a directory", "serve", MODEL, "--port", "0", "--api-key-file", "/")
        self.fails(1, "No such file", "serve", MODEL, "--port", "0", "--api-key-file", "/no/such/file")
        self.fails(2, "no key in it", "serve", MODEL, "--port", "0", "--api-key-file", os.devnull)
        self.fails(1, "Is a directory", "serve", MODEL, "--config", "/")
        self.fails(1, "Is a directory", "template", MODEL, "--messages", "/")

    def test_messages_are_a_list(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"role": "user"}')
            file.flush()
            self.fails(2, "must hold a list of messages", "template", MODEL, "--messages", file.name)

    def test_a_templates_own_error_is_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            template = os.path.join(folder, "t.jinja")
            messages = os.path.join(folder, "m.json")
            with open(template, "w") as file:
                file.write("{{ raise_exception('two\nlines') }}")
            with open(messages, "w") as file:
                file.write("[]")
            self.fails(2, "two lines", "template", template, "--messages", messages)

    def test_little_memory_for_kv_says_what_fits(self):
        self.fails(1, "are given by --kv-memory: use --kv-memory", "run", MODEL, "-p", "a", "--kv-memory", "1")
        self.fails(1, "MiB are given by --kv-memory: use --context ", "run", MODEL, "-p", "a", "--context", "8192", "--kv-memory", "95M")

    def test_a_full_disk_is_no_success(self):
        for arguments in (["tokenize", MODEL, "--text", "a"], ["inspect", MODEL, "--json"]):
            with open("/dev/full", "w") as full:
                run = subprocess.run([HEADRACE, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(run.returncode, 1)
            self.assertIn("No space left on device", run.stderr)

    def test_eval_needs_a_window_of_text(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("A few words.")
            file.flush()
            self.fails(2, "tokens, not one window of 512", "eval", MODEL, "--text", file.name)
        self.fails(1, "No such file", "eval", MODEL, "--text", "/no/such/file")
        self.fails(2, "--against", "eval", MODEL, "--text", os.devnull, "--max-ppl-change", "1")

    def test_a_gate_that_refuses_ends_with_3(self):
        text = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "LICENSE")
        for limit, code in (("0", 0), ("-0.5", 3)):
            run = headrace("eval", MODEL, "--text", text, "--windows", "1", "--against", MODEL, "--max-ppl-change", limit, "--json")
            self.assertEqual(run.returncode, code, run.stderr)
            result = json.loads(run.stdout)
            self.assertEqual(result["tokens"], 255)
            self.assertEqual(result["against"]["ppl"], result["ppl"])
            self.assertEqual(result["against"]["top1_agreement_pct"], 100)

    def test_json_is_one_object(self):
        for arguments in (
            ["tokenize", MODEL, "--text", "a"],
            ["tokenize", MODEL, "--ids", "1,2"],
            ["inspect", MODEL],
            ["pull", MODEL],
            ["run", MODEL, "-p", "a", "--max-tokens", "2"],
        ):
            run = headrace(*arguments, "--json")
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIsInstance(json.loads(run.stdout), dict)
            self.assertEqual(run.stdout.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
