#!/usr/bin/env python3
"""Writes tests/data/quant/<TYPE>.bin: blocks of each GGUF type and the floats they mean.

The floats are computed by the `gguf` Python package, an implementation independent of ours, so that
the test beside src/quant compares bits. Run from anywhere: make_quant_vectors.py [OUT_DIR].
Needs: numpy, gguf. The output is the same on every run.

Layout of a file, little-endian: "HRQV", u32 number of values n, u32 number of bytes b, b bytes of
blocks, n floats.
"""
import pathlib
import struct
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

# Where the halves (scales, minima) of a block stand, in bytes from its start.
HALVES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}
# Zero, minus zero, the smallest and largest subnormal, the smallest normal, one, the largest, and negatives.
SPECIAL_HALVES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF]


def blocks_of(name: str, rng: np.random.Generator) -> np.ndarray:
    """[num_blocks, block_bytes]: random codes under ordinary scales, then under special ones, then extreme codes."""
    _, num_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    num_special = len(SPECIAL_HALVES)
    num_blocks = 6 + num_special + 2
    blocks = rng.integers(0, 256, size=(num_blocks, num_bytes), dtype=np.uint8)
    for at in HALVES[name]:
        halves = (rng.standard_normal(num_blocks) * 0.02).astype(np.float16)
        halves[6:6 + num_special] = np.array(SPECIAL_HALVES, dtype=np.uint16).view(np.float16)
        blocks[:, at:at + 2] = halves.view(np.uint8).reshape(num_blocks, 2)
    body = np.ones(num_bytes, dtype=bool)
    for at in HALVES[name]:
        body[at:at + 2] = False
    blocks[-2, body] = 0x00  # every code and integer scale at its lowest bits
    blocks[-1, body] = 0xFF  # and all bits set
    return blocks


def write(path: pathlib.Path, data: bytes, values: np.ndarray) -> None:
    values = np.ascontiguousarray(values, dtype=np.float32).ravel()
    assert np.isfinite(values).all()
    path.write_bytes(b"HRQV" + struct.pack("<II", values.size, len(data)) + data + values.tobytes())


def main() -> None:
    default = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "quant"
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20240229)

    floats = np.concatenate([rng.standard_normal(60), [0.0, -0.0, 1e-45, 3.4028235e38]]).astype(np.float32)
    write(out / "F32.bin", floats.tobytes(), floats)
    halves = np.concatenate([rng.standard_normal(54).astype(np.float16).view(np.uint16),
                             np.array(SPECIAL_HALVES, dtype=np.uint16)])
    write(out / "F16.bin", halves.tobytes(), quants.dequantize(halves.view(np.uint8), GGMLQuantizationType.F16))
    brain = (floats.view(np.uint32) >> 16).astype(np.uint16)
    write(out / "BF16.bin", brain.tobytes(), quants.dequantize(brain.view(np.uint8), GGMLQuantizationType.BF16))

    for name in HALVES:
        blocks = blocks_of(name, rng)
        row = blocks.reshape(1, -1)
        write(out / f"{name}.bin", row.tobytes(), quants.dequantize(row, GGMLQuantizationType[name]))


if __name__ == "__main__":
    main()
