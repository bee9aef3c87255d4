"""Rows of the matrix instructions (PTX ISA 9.7.15.4.15, .16, 9.7.16)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ptxmm.ptx.tables.form import SHARED_CTA, SM90, Form, Version, words

_COLLECTIVE = {"sync": ("sync",), "aligned": ("aligned",)}
_EIGHTS = range(8, 257, 8)
# The n of integer and single-bit products (the table of 9.7.16.2).
INTEGER_COLUMNS = frozenset({8, 16, 24, 32, *range(48, 257, 16)})
# For the types of A and B the k of a dense product (that of a sparse one is twice as large) and the types of D.
PRODUCTS: Mapping[str, tuple[int, tuple[str, ...]]] = MappingProxyType(
    {
        "f16": (16, words("f16 f32")),
        "bf16": (16, ("f32",)),
        "tf32": (8, ("f32",)),
        **dict.fromkeys(("e4m3", "e5m2"), (32, words("f16 f32"))),
        **dict.fromkeys(("s8", "u8"), (32, ("s32",))),
        "b1": (256, ("s32",)),
    }
)
# Types of A that go with another type of B.
MIXED = (frozenset({"e4m3", "e5m2"}), frozenset({"s8", "u8"}))

_SHAPES = tuple(f"m64n{n}k{k}" for k in (8, 16, 32, 256) for n in _EIGHTS if k != 256 or n in INTEGER_COLUMNS)
_SPARSE_SHAPES = tuple(f"m64n{n}k{k}" for k in (16, 32, 64) for n in _EIGHTS)
_DENSE = tuple(PRODUCTS)
_SPARSE = tuple(name for name in PRODUCTS if name != "b1")
_OPERATION = {"bitop": ("and",), "popc": ("popc",)}
_MATRIX = {
    **_COLLECTIVE,
    "shape": ("m8n8",),
    "num": words("x1 x2 x4"),
    "trans": ("trans",),
    "space": SHARED_CTA,
    "type": ("b16",),
}
_REQUIRED = words("sync aligned shape num type")
_PRODUCT_REQUIRED = words("sync aligned shape dtype atype btype")
# Shapes and types of matrices since PTX ISA 8.6.
LATER_MATRICES = words("m16n16 m8n16 m16n8 b8 b8x16 b6x16_p32 b4x16_p64")


def _product(opcode: str, shapes: tuple[str, ...], types: tuple[str, ...], slots: str, since: Version) -> Form:
    groups = {
        **_COLLECTIVE,
        "shape": shapes,
        "satfinite": ("satfinite",),
        "dtype": words("f16 f32 s32"),
        "atype": types,
        "btype": types,
    }
    if "b1" in types:
        groups |= _OPERATION
    return Form(opcode, "wgmma", groups, words(slots), since, _PRODUCT_REQUIRED)


FORMS = (
    Form("ldmatrix", "load_matrix", _MATRIX, words("d [a]"), Version((6, 5), 75), _REQUIRED, later=LATER_MATRICES),
    Form("stmatrix", "store_matrix", _MATRIX, words("[a] b"), Version((7, 8), 90), _REQUIRED, later=LATER_MATRICES),
    Form("wgmma.fence", "wgmma_fence", _COLLECTIVE, (), SM90, ("sync", "aligned")),
    Form("wgmma.commit_group", "async_commit", _COLLECTIVE, (), SM90, ("sync", "aligned")),
    Form("wgmma.wait_group", "async_wait", _COLLECTIVE, ("pending",), SM90, ("sync", "aligned")),
    _product("wgmma.mma_async", _SHAPES, _DENSE, "d a b-desc scale-d", SM90),
    _product("wgmma.mma_async.sp", _SPARSE_SHAPES, _SPARSE, "d a b-desc sp-meta sp-sel scale-d", Version((8, 2), 90)),
)
