"""Rows of the untyped dialect: 64-bit signed throughout, locations without brackets, any order on any atomic."""

from __future__ import annotations

from collections.abc import Mapping

from ptxmm.ptx import ops
from ptxmm.ptx.qualified import Form, Maker
from ptxmm.ptx.tables.accesses import check_access
from ptxmm.ptx.tables.common import made
from ptxmm.ptx.tables.computation import alu, branch, compare_branch
from ptxmm.ptx.tables.form import SCOPES, STRONG_SPACES, V1, V6, Version, words
from ptxmm.ptx.tables.memory import ATOMIC_TYPES, atomic, load, store
from ptxmm.ptx.tables.synchronization import dialect_barrier

_ATOMICS = (*ATOMIC_TYPES, "sub")
_LOAD_ORDERS = "weak relaxed acquire volatile"
_STORE_ORDERS = "weak relaxed release volatile"
_ANY_ORDER = "relaxed acquire release acq_rel"


def _memory(opcode: str, make: Maker, orders: str, slots: str, proxy: str) -> Form:
    groups: dict[str, tuple[str, ...]] = {"sem": words(orders), "scope": SCOPES}
    if proxy == "generic":
        groups["space"] = STRONG_SPACES
    if make is atomic:
        groups["op"] = _ATOMICS
    required = ("op",) if make is atomic else ()
    rule = None if make is atomic else check_access
    return Form(opcode, make, groups, words(slots), V6, required, fixed={"proxy": proxy}, rule=rule)


def _alu(opcode: str, slots: str) -> Form:
    return Form(opcode, alu, {}, words(slots), V1)


def dialect_forms(typed: Mapping[str, Form]) -> tuple[Form, ...]:
    """The rows of the dialect; those that it shares with PTX are taken from ``typed``."""
    return (
        _memory("ld", load, _LOAD_ORDERS, "d a", "generic"),
        _memory("suld", load, _LOAD_ORDERS, "d a", "surface"),
        _memory("tld", load, _LOAD_ORDERS, "d a", "texture"),
        _memory("cold", load, _LOAD_ORDERS, "d a", "constant"),
        _memory("st", store, _STORE_ORDERS, "a b", "generic"),
        _memory("sust", store, _STORE_ORDERS, "a b", "surface"),
        _memory("atom", atomic, _ANY_ORDER, "d a b c?", "generic"),
        _memory("suatom", atomic, _ANY_ORDER, "d a b c?", "surface"),
        _memory("red", atomic, _ANY_ORDER, "a b c?", "generic"),
        _memory("sured", atomic, _ANY_ORDER, "a b c?", "surface"),
        typed["fence"],
        typed["membar"],
        Form("fence.proxy", made(ops.ProxyFence), {"kind": words("alias surface texture constant generic")}, (),
             Version((7, 5), 70), ("kind",)),
        Form("membar.proxy", made(ops.ProxyFence), {"kind": ("alias",)}, (), Version((7, 5), 60), ("kind",)),
        Form("bar", dialect_barrier, {"level": ("cta",), "kind": ("sync", "arrive")}, words("i b? q?"), V1,
             ("kind",), newer=typed["bar"].newer),
        *(_alu(opcode, "d a") for opcode in ("mov", "not", "neg", "abs")),
        *(_alu(opcode, "d a b") for opcode in words("add sub mul and or xor shl shr min max")),
        _alu("mad", "d a b c"),
        Form("goto", branch, {}, ("label",), V1),
        *(Form("b" + op, compare_branch, {}, words("a b label"), V1, fixed={"cmp": op})
          for op in ("eq", "ne", "lt", "le", "gt", "ge")),
        typed["ret"],
        typed["exit"],
    )  # fmt: skip
