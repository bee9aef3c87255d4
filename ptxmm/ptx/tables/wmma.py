"""Rows of ``wmma``, and what its matrices are (PTX ISA 9.7.15.3)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from ptxmm.ptx.tables.form import SHARED_CTA, Form, Version, words

_MULTIPLICANDS = words("f16 bf16 tf32 f64 s8 u8 s4 u4 b1")
_ACCUMULATORS = words("f16 f32 f64 s32")
LARGE = words("m16n16k16 m8n32k16 m32n8k16")
SHAPES = (*LARGE, "m16n16k8", "m8n8k4", "m8n8k32", "m8n8k128")


class Kind(Struct, frozen=True):
    """A type of the matrices A and B: the shapes it has, its size in bits, and the types of C and D."""

    shapes: tuple[str, ...]
    bits: int
    accumulators: tuple[str, ...]


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "f16": Kind(LARGE, 16, words("f16 f32")),
        "bf16": Kind(LARGE, 16, ("f32",)),
        "tf32": Kind(("m16n16k8",), 32, ("f32",)),
        "f64": Kind(("m8n8k4",), 64, ("f64",)),
        **dict.fromkeys(("s8", "u8"), Kind(LARGE, 8, ("s32",))),
        **dict.fromkeys(("s4", "u4"), Kind(("m8n8k32",), 4, ("s32",))),
        "b1": Kind(("m8n8k128",), 1, ("s32",)),
    }
)

_COLLECTIVE: Mapping[str, tuple[str, ...]] = {"sync": ("sync",), "aligned": ("aligned",)}
_LAYOUTS = ("row", "col")
_PLACE = {"layout": _LAYOUTS, "shape": SHAPES, "space": ("global", *SHARED_CTA)}
_REQUIRED = words("sync aligned matrix layout shape element")
_V60 = Version((6, 0), 70)

FORMS = (
    Form(
        "wmma.load",
        "wmma_load",
        {
            **_COLLECTIVE,
            "matrix": words("a b c"),
            **_PLACE,
            "element": tuple(dict.fromkeys(_MULTIPLICANDS + _ACCUMULATORS)),
        },
        words("r [p] stride?"),
        _V60,
        _REQUIRED,
    ),
    Form(
        "wmma.store",
        "wmma_store",
        {**_COLLECTIVE, "matrix": ("d",), **_PLACE, "element": _ACCUMULATORS},
        words("[p] r stride?"),
        _V60,
        _REQUIRED,
    ),
    Form(
        "wmma.mma",
        "wmma",
        {
            "bitop": words("xor and"),
            "popc": ("popc",),
            **_COLLECTIVE,
            "alayout": _LAYOUTS,
            "blayout": _LAYOUTS,
            "shape": SHAPES,
            "round": words("rn rz rm rp"),
            "dtype": _ACCUMULATORS,
            "atype": tuple(dict.fromkeys(_MULTIPLICANDS + _ACCUMULATORS)),
            "btype": _MULTIPLICANDS,
            "ctype": _ACCUMULATORS,
            "satfinite": ("satfinite",),
        },
        words("d a b c"),
        _V60,
        words("sync aligned alayout blayout shape dtype atype"),
    ),
)

_FLOATS = ("bf16", "tf32", "f64")
# As ``versions.SINCE``: (opcodes, qualifiers, version).
SINCE: tuple[tuple[tuple[str, ...], tuple[str, ...], Version], ...] = (
    *(((op,), (shape,), Version((6, 1), 70)) for op in words("wmma.load wmma.store wmma.mma") for shape in LARGE[1:]),
    *(((op,), (t,), Version((6, 3), 72)) for op in words("wmma.load wmma.store wmma.mma") for t in ("s8", "u8", "s32")),
    *(((op,), (shape,), Version((6, 3), 75)) for op in words("wmma.load wmma.store wmma.mma") for shape in SHAPES[-2:]),
    *(((op,), (t,), Version((7, 0), 80)) for op in words("wmma.load wmma.store wmma.mma") for t in _FLOATS),
    *(((op,), ("m16n16k8",), Version((7, 0), 80)) for op in words("wmma.load wmma.store wmma.mma")),
    *(((op,), ("m8n8k4",), Version((7, 0), 80)) for op in words("wmma.load wmma.store wmma.mma")),
    (("wmma.mma",), ("and",), Version((7, 1), 80)),
)
