#!/usr/bin/env python3
"""Writes src/chat/unicode_tables.cc: Python's view of Unicode, as its string methods see it.

Usage: scripts/make_unicode_tables.py > src/chat/unicode_tables.cc
"""
import sys
import unicodedata

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def ranges(predicate):
    out = []
    for c in CODE_POINTS:
        if not predicate(chr(c)):
            continue
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def case_runs(convert):
    """Runs (first, last, stride, delta) of single-character mappings, and the longer mappings apart."""
    runs, special = [], []
    for c in CODE_POINTS:
        to = convert(chr(c))
        if to == chr(c):
            continue
        if len(to) > 1:
            special.append((c, to))
            continue
        delta = ord(to) - c
        if runs and runs[-1][3] == delta:
            first, last, stride, _ = runs[-1]
            step = c - last
            if step in (1, 2) and (first == last or stride == step):
                runs[-1] = (first, c, step, delta)
                continue
        runs.append((c, c, 1, delta))
    return runs, special


def emit(kind, name, rows, render):
    print(f"const {kind} {name}[] = {{")
    line = "   "
    for row in rows:
        item = f" {render(row)},"
        if len(line) + len(item) > 98:
            print(line)
            line = "   "
        line += item
    print(line)
    print("};")
    print(f"const std::size_t {name}Size = {len(rows)};\n")


def main():
    print(f"// Made by scripts/make_unicode_tables.py from Unicode {unicodedata.unidata_version}. Do not edit.")
    print('#include "chat/unicode_tables.h"\n')
    print("// clang-format off")
    print("namespace headrace::jinja {\n")
    for name, predicate in [
        ("kAlpha", str.isalpha), ("kDecimal", str.isdecimal), ("kDigit", str.isdigit), ("kNumeric", str.isnumeric),
        ("kSpace", str.isspace), ("kPrintable", str.isprintable), ("kUpper", str.isupper), ("kLower", str.islower),
        ("kTitle", lambda s: unicodedata.category(s) == "Lt"),
    ]:
        emit("CodeRange", name, ranges(predicate), lambda r: f"{{0x{r[0]:x},0x{r[1]:x}}}")
    for name, convert in [("kToUpper", str.upper), ("kToLower", str.lower), ("kToTitle", str.title)]:
        runs, special = case_runs(convert)
        emit("CaseRun", name, runs, lambda r: f"{{0x{r[0]:x},0x{r[1]:x},{r[2]},{r[3]}}}")
        rendered = lambda s: f'{{0x{s[0]:x},"{"".join(chr(92) + f"{b:03o}" for b in s[1].encode())}"}}'
        emit("CaseSpecial", name + "Special", special, rendered)
    print("}  // namespace headrace::jinja")


if __name__ == "__main__":
    sys.exit(main())
