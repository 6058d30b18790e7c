#!/usr/bin/env python3
"""Draws `headrace bench attention --json` as an SVG file: time, bytes moved and scratch over the length, both axes
logarithmic. Needs nothing but Python.

Usage: plot_attention.py RESULT.json OUT.svg
"""
import json
import math
import pathlib
import sys

WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 240, 64, 40, 84
COLOURS = {"naive": "#b4442c", "naive, masked part left out": "#d9a441", "flash": "#1f5fa8"}
PANELS = [  # title, unit, {series: key}, divisor
    ("time", "ms", {"naive": "naive_s", "naive, masked part left out": "naive_causal_s", "flash": "flash_s"}, 1e-3),
    ("bytes moved (counted)", "MB",
     {"naive": "naive_bytes", "naive, masked part left out": "naive_causal_bytes", "flash": "flash_bytes"}, 1e6),
    ("scratch (peak resident)", "MB", {"naive": "naive_scratch_bytes", "flash": "flash_scratch_bytes"}, 1e6),
]


def text(x, y, words, anchor="middle", size=11):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#333">{words}</text>'


def line(x1, y1, x2, y2, colour):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def number(value):
    return f"{value:g}" if value < 1e5 else f"{value:.0e}"


def panel(rows, spec, left):
    title, unit, series, divisor = spec
    points = {name: [(row["n"], max(row[key] / divisor, 1e-3)) for row in rows] for name, key in series.items()}
    values = [value for curve in points.values() for _, value in curve]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)
    first, last = math.log2(rows[0]["n"]), math.log2(rows[-1]["n"])

    def x_of(n):
        return left + WIDTH * (math.log2(n) - first) / max(last - first, 1e-9)

    def y_of(value):
        return TOP + HEIGHT * (1 - (math.log10(value) - low) / max(high - low, 1))

    out = [text(left + WIDTH / 2, TOP - 14, f"{title}, {unit}", size=13)]
    for power in range(low, high + 1):
        y = y_of(10.0 ** power)
        out += [line(left, y, left + WIDTH, y, "#ddd"), text(left - 6, y + 4, number(10.0 ** power), "end")]
    for row in rows:
        x = x_of(row["n"])
        out += [line(x, TOP, x, TOP + HEIGHT, "#eee"), text(x, TOP + HEIGHT + 16, row["n"], size=9)]
    for name, curve in points.items():
        path = " ".join(f"{x_of(n):.1f},{y_of(value):.1f}" for n, value in curve)
        out.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>')
        out += [f'<circle cx="{x_of(n):.1f}" cy="{y_of(value):.1f}" r="2.5" fill="{COLOURS[name]}"/>' for n, value in curve]
    return out


def draw(result):
    rows = result["rows"]
    total = LEFT + len(PANELS) * WIDTH + (len(PANELS) - 1) * GAP + 24
    height = TOP + HEIGHT + 60
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{height}" font-family="sans-serif">',
           f'<rect width="{total}" height="{height}" fill="white"/>']
    for i, spec in enumerate(PANELS):
        out += panel(rows, spec, LEFT + i * (WIDTH + GAP))
    for (name, colour), x in zip(COLOURS.items(), (LEFT, LEFT + 110, LEFT + 340)):
        out += [line(x, height - 16, x + 24, height - 16, colour), text(x + 30, height - 12, name, "start")]
    words = f"{result['isa']}, {result['threads']} threads, cache {result['l2_bytes'] >> 10} KiB; prompt tokens from left to right"
    return "\n".join(out + [text(total - 24, height - 12, words, "end"), "</svg>"]) + "\n"


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    pathlib.Path(sys.argv[2]).write_text(draw(json.loads(pathlib.Path(sys.argv[1]).read_text())))


if __name__ == "__main__":
    main()
