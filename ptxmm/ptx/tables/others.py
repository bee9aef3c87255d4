"""Rows of instructions that exchange values between lanes, and of hints to the hardware (PTX ISA 9.7.10.6, .14 to .17,
9.7.14.9 to .14, 9.7.19)."""

from __future__ import annotations

from ptxmm.ptx.tables.form import Form, Version, words

_SYNC = {"sync": ("sync",)}
_V6 = Version((6, 0), 30)
_VOTES = {**dict.fromkeys(("all", "any", "uni"), ("pred",)), "ballot": ("b32",)}
_REDUCTIONS = {**dict.fromkeys(("add", "min", "max"), ("u32", "s32")), **dict.fromkeys(("and", "or", "xor"), ("b32",))}
_PRIORITIES = words("L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged")
_POLICY = {
    "primary": _PRIORITIES,
    "secondary": words("L2::evict_first L2::evict_unchanged"),
    "type": ("b64",),
}
_V74 = Version((7, 4), 80)

FORMS = (
    Form("shfl", "shfl", {**_SYNC, "op": words("up down bfly idx"), "type": ("b32",)}, words("d|p a b c mask"), _V6,
         ("sync", "op", "type")),
    Form("vote", "vote", {**_SYNC, "op": tuple(_VOTES), "type": ("pred", "b32")}, words("d vote mask"), _V6,
         ("sync", "op", "type"), ("op", _VOTES)),
    Form("match", "match", {"op": words("any all"), **_SYNC, "type": words("b32 b64")}, words("d|p a mask"),
         Version((6, 0), 70), ("op", "sync", "type")),
    Form("activemask", "activemask", {"type": ("b32",)}, ("d",), Version((6, 2), 30), ("type",)),
    Form("redux", "redux", {**_SYNC, "op": tuple(_REDUCTIONS), "type": words("u32 s32 b32")}, words("d a mask"),
         Version((7, 0), 80), ("sync", "op", "type"), ("op", _REDUCTIONS), words("f32 abs NaN")),
    Form("elect", "elect", _SYNC, words("d|p mask"), Version((8, 0), 90), ("sync",)),
    Form("discard", "discard", {"space": ("global",), "level": ("L2",)}, words("[a] size"), _V74, ("level",)),
    Form("prefetch", "prefetch",
         {"space": words("global local const param"),
          "level": words("L1 L2 L2::evict_last L2::evict_normal tensormap")},
         ("[a]",), Version((2, 0), 20), ("level",)),
    Form("prefetchu", "prefetch", {"level": ("L1",)}, ("[a]",), Version((2, 0), 20), ("level",)),
    Form("applypriority", "apply_priority", {"space": ("global",), "level": ("L2::evict_normal",)}, words("[a] size"),
         _V74, ("level",)),
    Form("createpolicy.range", "policy_range", {"space": ("global",), **_POLICY},
         words("policyreg [a] primary total"), _V74, ("primary", "type")),
    Form("createpolicy.fractional", "policy_fraction", _POLICY, words("policyreg fraction?"), _V74,
         ("primary", "type")),
    Form("createpolicy.cvt", "policy_convert", {"level": ("L2",), "type": ("b64",)}, words("policyreg property"),
         _V74, ("level", "type")),
    Form("nanosleep", "nanosleep", {"type": ("u32",)}, ("time",), Version((6, 3), 70), ("type",)),
)  # fmt: skip
