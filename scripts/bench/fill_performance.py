#!/usr/bin/env python3
"""Writes one machine's figures into docs/performance.md, in place of what stood there for the same machine.

Usage: fill_performance.py DOCUMENT ATTENTION.json PEERS_FOLDER
"""
import json
import pathlib
import sys

END = "<!-- end of the figures -->"


def attention_table(result):
    lines = [f"Flash attention against the naive form (2 heads of 64, KV f16, {result['isa']}, {result['threads']} threads, "
             f"second-level cache {result['l2_bytes'] >> 10} KiB, float peak "
             f"{result['limits']['f32_flop_per_s'] / 1e9:.0f} Gflop/s):", "",
             "| tokens | naive ms | its masked part left out | flash ms | faster | naive MB moved | flash MB moved | fewer "
             "| naive scratch MB | flash scratch MB | difference | bound | products, of the peak |",
             "|" + "---|" * 13]
    for row in result["rows"]:
        lines.append(
            f"| {row['n']} | {row['naive_s'] * 1e3:.2f} | {row['naive_causal_s'] * 1e3:.2f} | {row['flash_s'] * 1e3:.2f} "
            f"| {row['naive_s'] / row['flash_s']:.2f}x | {row['naive_bytes'] / 1e6:.1f} | {row['flash_bytes'] / 1e6:.1f} "
            f"| {row['naive_bytes'] / row['flash_bytes']:.1f}x | {row['naive_scratch_bytes'] / 1e6:.1f} "
            f"| {row['flash_scratch_bytes'] / 1e6:.1f} | {row['max_abs_diff']:.1e} | {row['bound']:.1e} "
            f"| {row['naive_product_share'] * 100:.0f} % |")
    return "\n".join(lines)


def section(attention, peers, table):
    key = f"{peers['cpu']}, {attention['isa']}, {peers['threads']} threads"
    begin = f"<!-- machine: {key} -->"
    return begin, f"{begin}\n### {key}\n\n{table.strip()}\n\n{attention_table(attention)}\n"


def replaced(document, begin, text):
    """The document with this machine's section, new or in place of the old one."""
    assert END in document, f"the document has no line {END}"
    if begin in document:
        start = document.index(begin)
        later = [document.find(mark, start + 1) for mark in ("<!-- machine: ", END)]
        stop = min(place for place in later if place >= 0)
        return document[:start] + text + "\n" + document[stop:]
    return document.replace(END, text + "\n" + END)


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    document = pathlib.Path(sys.argv[1])
    attention = json.loads(pathlib.Path(sys.argv[2]).read_text())
    folder = pathlib.Path(sys.argv[3])
    begin, text = section(attention, json.loads((folder / "result.json").read_text()), (folder / "table.md").read_text())
    document.write_text(replaced(document.read_text(), begin, text))


if __name__ == "__main__":
    main()
