"""`headrace bench` through the real program, on a tiny model: what its JSON holds, and which flags it refuses."""

import json
import pathlib
import subprocess
import unittest

from serving import HEADRACE

MODEL = pathlib.Path(__file__).parents[1] / "data" / "golden" / "llama_q.gguf"


def bench(*arguments):
    return subprocess.run([HEADRACE, "bench", *arguments], capture_output=True, text=True, timeout=300, check=False)


class Model(unittest.TestCase):
    FLAGS = ("model", str(MODEL), "--prompt", "24", "--generate", "4", "--repeat", "2")

    def test_the_json_holds_rates_limits_and_shares(self):
        done = bench(*self.FLAGS, "--batch", "1,3", "--depth", "5", "--threads", "2", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertIn(result["isa"], ("scalar", "avx2", "avx512vnni"))
        self.assertEqual(result["threads"], 2)
        for limit in ("int8_ops_per_s", "f32_flop_per_s", "read_bytes_per_s"):
            self.assertGreater(result["limits"][limit], 1e6)
        self.assertGreater(result["prefill_tokens_per_s"], 0)
        self.assertTrue(0 < result["prefill_share_of_int8_peak"] <= 1)
        self.assertGreater(result["prefill_share_with_attention"], result["prefill_share_of_int8_peak"])
        self.assertEqual([row["batch"] for row in result["decode"]], [1, 3])
        for row in result["decode"]:
            self.assertGreater(row["tokens_per_s"], 0)
            self.assertTrue(0 < row["share_of_read_bandwidth"] <= 1)
        # Three streams read the same weights and three times the keys and values.
        one, three = (row["bytes_per_step"] for row in result["decode"])
        weights = (3 * one - three) / 2
        self.assertGreater(weights, 0)
        self.assertLess(weights, MODEL.stat().st_size)

    def test_the_table_is_for_a_person(self):
        done = bench(*self.FLAGS, "--batch", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"prefill +24 tokens +[0-9.]+ tok/s")
        self.assertRegex(done.stdout, r"decode +1 streams +[0-9.]+ tok/s")

    def test_wrong_flags_are_refused(self):
        for flags, words in (
            (("--prompt", "0"), "must be positive"),
            (("--batch", "1,-2"), "must be positive"),
            (("--repeat", "0"), "must be positive"),
            (("--depth", "100000000"), "longer than the context"),
            (("--threads", "-1"), "--threads"),
            (("--kv", "f8"), "--kv"),
            (("--batch", "one"), "--batch"),
        ):
            with self.subTest(flags=flags):
                usual = [] if "--prompt" in flags else ["--prompt", "24"]
                done = bench("model", str(MODEL), "--generate", "4", *usual, *flags)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_a_file_that_is_not_there_is_an_error(self):
        self.assertNotEqual(bench("model", "/nowhere/model.gguf").returncode, 0)


class Attention(unittest.TestCase):
    FLAGS = ("attention", "--lengths", "256,1024", "--repeat", "1", "--heads", "2", "--kv-heads", "1", "--threads", "2")

    def test_the_json_holds_both_forms(self):
        done = bench(*self.FLAGS, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual([row["n"] for row in result["rows"]], [256, 1024])
        names = {"n", "naive_s", "flash_s", "naive_bytes", "flash_bytes", "naive_scratch_bytes", "flash_scratch_bytes",
                 "max_abs_diff", "bound"}
        for row in result["rows"]:
            self.assertLessEqual(names, set(row))
            self.assertGreater(row["naive_s"], 0)
            self.assertGreater(row["flash_s"], 0)
            self.assertTrue(0 < row["max_abs_diff"] <= row["bound"])
        short, long = result["rows"]
        # Scores of 1,024 x 1,024 floats are 4 MiB; the flash form needs no more for them than for a quarter.
        self.assertGreater(long["naive_scratch_bytes"], 4 << 20)
        self.assertLess(long["flash_scratch_bytes"], 2 << 20)
        self.assertGreater(long["naive_bytes"], short["naive_bytes"])

    def test_wrong_flags_are_refused(self):
        for flags, words in (
            (("--lengths", "0"), "--lengths"),
            (("--lengths", "12,x"), "--lengths"),
            (("--heads", "3", "--kv-heads", "2"), "--kv-heads"),
            (("--head-dim", "20"), "--head-dim"),
            (("--kv", "q3"), "--kv"),
            (("--threads", "-4"), "--threads"),
        ):
            with self.subTest(flags=flags):
                done = bench("attention", *flags)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
