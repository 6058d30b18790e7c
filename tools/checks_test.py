"""Tests of the checks in this folder: python3 -m unittest discover -s tools -p '*_test.py'"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_isa_objects
import check_layering
import tidy

TOOLS = pathlib.Path(__file__).parent
LAYERS = """
[modules]
low = []
high = ["low"]
app = ["*"]
[bans]
"immintrin.h" = ["low"]
"""


class Layering(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.write("layers.toml", LAYERS)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def errors(self):
        return check_layering.check(self.root / "src", self.root / "layers.toml")

    def test_what_the_table_allows_passes(self):
        self.write("src/low/a.h", '#include <vector>\n#include "low/b.h"\n')
        self.write("src/high/a.cc", '#include "low/a.h"\n#include "gtest/gtest.h"\n')
        self.write("src/app/a.cc", '#include "high/a.h"\n#include "low/a.h"\n')
        self.assertEqual(self.errors(), [])

    def test_an_include_upwards_is_an_error_with_its_place(self):
        self.write("src/low/a.h", '#pragma once\n#include "high/a.h"\n')
        self.assertEqual(self.errors(), [f"{self.root}/src/low/a.h:2: low may not include high"])

    def test_the_program_fails_on_an_include_upwards(self):
        self.write("src/low/a.h", '#include "high/a.h"\n')
        run = subprocess.run([sys.executable, TOOLS / "check_layering.py", self.root / "src", self.root / "layers.toml"],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("low may not include high", run.stdout)

    def test_a_private_header_is_an_error(self):
        self.write("src/high/a.cc", '#include "low/internal/a.h"\n')
        self.assertEqual(self.errors(), [f'{self.root}/src/high/a.cc:1: "low/internal/a.h" is private to low'])

    def test_an_include_not_from_src_is_an_error(self):
        self.write("src/high/a.cc", '#include "a.h"\n#include "../low/a.h"\n')
        self.assertEqual(len(self.errors()), 2)

    def test_a_banned_header_is_an_error_outside_its_module(self):
        self.write("src/low/a.cc", "#include <immintrin.h>\n")
        self.write("src/high/a.cc", "#include <immintrin.h>\n")
        self.assertEqual(self.errors(), [f"{self.root}/src/high/a.cc:1: <immintrin.h> is allowed only in low"])

    def test_an_unknown_module_is_an_error(self):
        self.write("src/other/a.cc", "")
        self.assertEqual(self.errors(), [f"{self.root}/src/other/a.cc:1: module 'other' is not in the table of layers"])

    def test_a_cycle_in_the_table_is_an_error(self):
        self.write("layers.toml", '[modules]\na = ["b"]\nb = ["c"]\nc = ["a"]\n')
        self.assertEqual(self.errors(), ["layers: a cycle: a -> b -> c -> a"])


class IsaObjects(unittest.TestCase):
    def test_weak_symbols_are_found(self):
        output = ("0000000000000000 T headrace::gemm()\n"
                  "0000000000000000 W std::vector<float>::size() const\n"
                  "0000000000000000 V typeinfo for X\n"
                  "0000000000000000 V DW.ref.__gxx_personality_v0\n")
        self.assertEqual(check_isa_objects.weak_symbols(output), ["std::vector<float>::size() const", "typeinfo for X"])

    def test_no_objects_is_an_error(self):
        self.assertEqual(check_isa_objects.main([]), 1)


class Tidy(unittest.TestCase):
    def test_deps_are_read_from_ninja(self):
        output = ("src/a.cc.o: #deps 2, deps mtime 1 (VALID)\n    /r/src/a.cc\n    /r/src/a.h\n\n"
                  "src/b.cc.o: #deps 1, deps mtime 1 (VALID)\n    /r/src/b.cc\n\n")
        self.assertEqual(tidy.parse_deps(output),
                         {"src/a.cc.o": ["/r/src/a.cc", "/r/src/a.h"], "src/b.cc.o": ["/r/src/b.cc"]})

    def test_precompiled_headers_are_not_for_clang_tidy(self):
        command = "c++ -I/r/src -O2 -Winvalid-pch -include /r/build/x.dir/cmake_pch.hxx -MD -o a.o -c /r/src/a.cc"
        self.assertEqual(tidy.without_precompiled(command), "c++ -I/r/src -O2 -MD -o a.o -c /r/src/a.cc")

    def test_a_finding_in_a_header_is_told_once(self):
        seen = set()
        header = "/r/src/a.h:1:2: error: bad [x]\n  code\n  ^"
        own = "/r/src/b.cc:3:4: error: worse [y]\n  code"
        self.assertEqual(tidy.new_findings(header, seen), [header])
        self.assertEqual(tidy.new_findings(header + "\n" + own, seen), [own])


if __name__ == "__main__":
    unittest.main()
