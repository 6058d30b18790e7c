"""The pure parts of the benchmark scripts: tables, the page that they fill, the plot, the model on paper."""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).parents[2]
sys.path += [str(ROOT / "bench" / "peers"), str(ROOT / "scripts" / "bench")]

import fill_performance  # noqa: E402
import plot_attention  # noqa: E402
import scaling  # noqa: E402
import table  # noqa: E402

LIMITS = {"int8_ops_per_s": 2e12, "f32_flop_per_s": 1e11, "read_bytes_per_s": 3e10, "memory_read_bytes_per_s": 2e10}
CASE = {"prompt": 512, "generate": 128, "depth": 0, "isa": "avx2", "limits": LIMITS,
        "engines": [{"name": "headrace", "version": "headrace 1", "kv": "f16"},
                    {"name": "peer", "version": "peer 2", "kv": "u8"}],
        "notes": ["peer: no batches"],
        "rows": [{"work": "prefill", "amount": 512, "rates": {"headrace": [100, 300, 200], "peer": [50, 100, 40]},
                  "shares": [(0.5, None), (0.6, None), (0.4, None)]},
                 {"work": "decode", "amount": 8, "rates": {"headrace": [10, 20, 30]},
                  "shares": [(0.1, 0.8), (0.1, 0.9), (0.1, 0.7)]}]}
RESULT = {"cpu": "A CPU", "threads": 2, "rounds": 3, "models": [{"name": "small", "cases": [CASE]}]}
ROW = {"n": 512, "naive_s": 0.002, "naive_causal_s": 0.0015, "flash_s": 0.001, "naive_bytes": 8000000,
       "naive_causal_bytes": 4000000, "flash_bytes": 1000000, "naive_scratch_bytes": 1000000,
       "flash_scratch_bytes": 200000, "max_abs_diff": 1e-7, "bound": 1e-4, "naive_product_share": 0.7}
ATTENTION = {"isa": "avx2", "threads": 2, "l2_bytes": 1 << 20, "limits": {"f32_flop_per_s": 1e11},
             "rows": [ROW, dict(ROW, n=1024)]}


class Table(unittest.TestCase):
    def test_a_ratio_is_the_median_of_the_rounds_ratios(self):
        # 2, 3, 5: not 200 / 50.
        self.assertEqual(table.ratio_of([100, 300, 200], [50, 100, 40]), 3)

    def test_rates_are_medians_and_what_a_peer_cannot_do_is_a_dash(self):
        lines = table.rate_table(RESULT).splitlines()
        self.assertIn("| small | prefill 512 | 200.0 | 50 % int8 | 50.0 | 3.00x |", lines)
        self.assertIn("| small | decode, 8 streams | 20.0 | 80 % read, 10 % int8 | – | – |", lines)

    def test_versions_kv_types_limits_and_notes_stand_below(self):
        text = table.rate_table(RESULT)
        self.assertIn("peer 2: KV u8", text)
        self.assertIn("int8 2000 Gop/s", text)
        self.assertIn("small: peer: no batches", text)

    def test_seconds_to_the_first_token_are_compared_the_other_way_round(self):
        start = {"prompt": 64, "seconds": {"headrace": 2.0, "peer": 3.0}, "engines": CASE["engines"][1:], "notes": []}
        text = table.start_table(dict(RESULT, models=[{"name": "m", "cases": [], "start": start}]))
        self.assertIn("| m | 2.00 | 3.00 | 1.50x |", text)


class Page(unittest.TestCase):
    def test_a_machine_has_one_section_which_is_replaced(self):
        begin, text = fill_performance.section(ATTENTION, RESULT, "the table")
        page = f"head\n{fill_performance.END}\ntail\n"
        once = fill_performance.replaced(page, begin, text)
        self.assertEqual(fill_performance.replaced(once, begin, text), once)
        self.assertTrue(once.startswith("head\n<!-- machine: A CPU, avx2, 2 threads -->"))
        self.assertTrue(once.endswith(f"{fill_performance.END}\ntail\n"))

    def test_another_machine_is_added(self):
        page = fill_performance.END
        for cpu in ("one", "two"):
            page = fill_performance.replaced(page, *fill_performance.section(ATTENTION, dict(RESULT, cpu=cpu), "t"))
        page = fill_performance.replaced(page, *fill_performance.section(ATTENTION, dict(RESULT, cpu="one"), "new"))
        self.assertEqual(page.count("<!-- machine: "), 2)
        self.assertLess(page.index("new"), page.index("### two"))

    def test_the_attention_table_has_a_line_a_length(self):
        text = fill_performance.attention_table(ATTENTION)
        self.assertIn("| 512 | 2.00 | 1.50 | 1.00 | 2.00x | 8.0 | 1.0 | 8.0x |", text)
        self.assertIn("| 1024 |", text)


class Plot(unittest.TestCase):
    def test_is_well_formed_and_has_a_curve_for_each_form(self):
        tree = xml.etree.ElementTree.fromstring(plot_attention.draw(ATTENTION))
        curves = tree.findall("{http://www.w3.org/2000/svg}polyline")
        self.assertEqual(len(curves), 3 + 3 + 2)


class Scaling(unittest.TestCase):
    ARGS = argparse.Namespace(core_gops=1000, efficiency=0.5, barrier_ns=100)

    def test_one_core_has_no_barriers(self):
        args = argparse.Namespace(**{**vars(self.ARGS), "barrier_ns": 1e9})
        model = "7B shape Q4_K_M"
        self.assertEqual(scaling.step_seconds(model, 512, 1, args), scaling.step_seconds(model, 512, 1, self.ARGS))

    def test_a_decode_step_of_one_core_takes_as_long_as_its_bytes(self):
        model = "Qwen2.5-1.5B Q4_K_M"
        weights = sum(outputs * inputs for outputs, inputs, _ in scaling.products_of(model))
        seconds = scaling.step_seconds(model, 1, 1, self.ARGS)
        self.assertAlmostEqual(seconds, weights * 0.6 / 12e9)

    def test_the_smallest_model_stops_first(self):
        gain = {model: scaling.step_seconds(model, 1, 1, self.ARGS) / scaling.step_seconds(model, 1, 64, self.ARGS)
                for model in scaling.MODELS}
        self.assertLess(gain["SmolLM2-135M Q4_1"], gain["Qwen2.5-1.5B Q4_K_M"])
        self.assertLess(gain["Qwen2.5-1.5B Q4_K_M"], gain["7B shape Q4_K_M"])


class Help(unittest.TestCase):
    def test_is_shown_without_building_or_installing(self):
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder) / "env"
            for script in ("bench/peers/run", "scripts/bench/performance"):
                run = subprocess.run([ROOT / script, "--help"], env={"PATH": "/usr/bin:/bin", "HEADRACE_PEERS_ENV": str(made)},
                                     capture_output=True, text=True, timeout=60, check=True)
                self.assertIn("--quick", run.stdout)
                self.assertFalse(made.exists())


if __name__ == "__main__":
    unittest.main()
