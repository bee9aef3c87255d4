"""Rows of tcgen05 (PTX ISA 8.6, sm_100a; 9.7.16 of PTX ISA 9.0): what is modelled of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ptxmm.ptx.tables.form import Form, Version, words

SM100 = Version((8, 6), 100)
# The bytes that a lane gets.
COPY_SHAPES: Mapping[str, int] = MappingProxyType({"128x256b": 32, "4x256b": 32, "128x128b": 16})

_COLLECTIVE = {"sync": ("sync",), "aligned": ("aligned",)}
_GROUP = {"group": ("cta_group::1",)}
_ACCESS = {
    **_COLLECTIVE, "shape": ("32x32b",), "num": words("x1 x2 x4 x8 x16 x32 x64 x128"), "type": ("b32",),
}  # fmt: skip
_ACCESS_REQUIRED = words("sync aligned shape num type")
_SHAPES = "16x64b 16x128b 16x256b 16x32bx2"
LATER_TENSORS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "tcgen05.ld": words(f"{_SHAPES} pack::16b red min max abs NaN u32 s32 f32"),
        "tcgen05.st": words(f"{_SHAPES} unpack::16b"),
        "tcgen05.cp": words(
            "cta_group::2 64x128b 32x128b warpx2::02_13 warpx2::01_23 warpx4 b8x16 b6x16_p32 b4x16_p64"
        ),
        "tcgen05.mma": words(
            "cta_group::2 sp ws block_scale scale_vec::1X scale_vec::2X scale_vec::4X kind::mxf8f6f4 kind::mxf4 "
            "kind::mxf4nvf4 ashift collector::a::fill collector::a::use collector::a::lastuse collector::a::discard"
        ),
        "tcgen05.commit": words("cta_group::2 multicast::cluster"),
    }
)


def _form(opcode: str, kind: str, groups: Mapping[str, tuple[str, ...]], slots: str, required: str) -> Form:
    return Form(opcode, kind, groups, words(slots), SM100, words(required), later=LATER_TENSORS.get(opcode, ()))


FORMS = (
    *(
        Form(f"tcgen05.fence::{kind}_thread_sync", "tensor_fence", {}, (), SM100, fixed={"kind": kind})
        for kind in ("before", "after")
    ),
    *(
        Form(f"tcgen05.wait::{kind}", "tensor_wait", _COLLECTIVE, (), SM100, ("sync", "aligned"), fixed={"kind": kind})
        for kind in ("ld", "st")
    ),
    Form("tcgen05.ld", "tensor_load", _ACCESS, words("r [taddr]"), SM100, _ACCESS_REQUIRED,
         later=LATER_TENSORS["tcgen05.ld"]),
    Form("tcgen05.st", "tensor_store", _ACCESS, words("[taddr] r"), SM100, _ACCESS_REQUIRED,
         later=LATER_TENSORS["tcgen05.st"]),
    _form("tcgen05.cp", "tensor_copy", {**_GROUP, "shape": tuple(COPY_SHAPES)}, "[taddr] s-desc", "group shape"),
    _form("tcgen05.mma", "tensor_product",
          {**_GROUP, "kind": words("kind::f16 kind::tf32 kind::f8f6f4 kind::i8")},
          "[d-tmem] a b-desc idesc enable-input-d", "group kind"),
    _form("tcgen05.commit", "tensor_commit",
          {**_GROUP, "arrival": ("mbarrier::arrive::one",), "space": ("shared::cluster",), "type": ("b64",)},
          "[mbar]", "group arrival type"),
)  # fmt: skip
