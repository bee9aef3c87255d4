"""Which conditions of morally strong operations (PTX ISA 8.7) two operations do not meet, in words."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ptxmm.analysis.execution import location
from ptxmm.analysis.instruction import instruction
from ptxmm.engines.explicit.witness import Rebuilt
from ptxmm.program.test import Test

PROXIES = {"GEN": "generic", "ASY": "async", "TMP": "tensormap", "SUR": "surface", "TEX": "texture", "CON": "constant"}


class Condition(Struct, frozen=True):
    """A condition of morally strong operations that fails. ``name``: order, scope, proxy or overlap; ``section``: of
    the PTX ISA."""

    name: str
    section: str
    text: str


def conditions(test: Test, rebuilt: Rebuilt, a: int, b: int) -> Iterator[Condition]:
    """The conditions of morally strong operations (8.7) that ``a`` and ``b`` do not meet."""
    algebra, order = rebuilt.layout.algebra, _base(rebuilt, "po")
    if not (algebra.has(order, a, b) or algebra.has(order, b, a)):
        yield from _not_strong(test, rebuilt, a, b)
    names = [_name(test, rebuilt, e) for e in (a, b)]
    if not _holds(rebuilt, "same-proxy", a, b):
        one, two = (proxy_of(rebuilt, e) for e in (a, b))
        if one != two:
            yield Condition("proxy", "8.7 (2)", f"{names[0]} uses the {one} proxy, {names[1]} the {two} proxy")
        else:
            yield Condition("proxy", "8.7 (2)", f"{names[0]} and {names[1]} use different {one} proxies")
    accesses = all(rebuilt.layout.events[e].cell is not None for e in (a, b))
    if accesses and not _holds(rebuilt, "complete", a, b):
        yield Condition("overlap", "8.7 (3)", _overlap(test, rebuilt, a, b))


def _not_strong(test: Test, rebuilt: Rebuilt, a: int, b: int) -> Iterator[Condition]:
    """What keeps accesses that program order does not relate from being strong in scopes that include the other."""
    layout = rebuilt.layout
    strong, inscope = _base(rebuilt, "STRONG"), _base(rebuilt, "inscope")
    weak = [_name(test, rebuilt, e) for e in (a, b) if not strong >> e & 1]
    if weak:
        text = " and ".join(weak) + (" are weak" if len(weak) > 1 else " is weak")
        yield Condition("order", "8.7 (1)", f"{text}, and program order does not relate them")
    for x, y in ((a, b), (b, a)):
        scope = rebuilt.scope(x)
        if scope is not None and strong >> x & 1 and not layout.algebra.has(inscope, x, y):
            name, thread = _name(test, rebuilt, x), test.threads[layout.events[y].id.thread].name
            yield Condition("scope", "8.7 (1)", f"the scope .{scope} of {name} does not include {thread}")


def _overlap(test: Test, rebuilt: Rebuilt, a: int, b: int) -> str:
    """How accesses overlap that do not do so completely."""
    one, two = (rebuilt.layout.events[e] for e in (a, b))
    assert one.cell is not None and two.cell is not None
    if one.cell != two.cell:
        return f"they overlap, but not completely: {_bytes(*one.cell)} and {_bytes(*two.cell)}"
    virtual = " and ".join(location(test, *e.place) if e.place is not None else "?" for e in (one, two))
    return f"they access the same bytes through different virtual addresses, {virtual}"


def _holds(rebuilt: Rebuilt, name: str, a: int, b: int) -> bool:
    """Whether the relation that the model calls ``name`` relates ``a`` and ``b``; True if it has none of this name."""
    if name not in rebuilt.evaluator.model.definitions:
        return True
    return rebuilt.layout.algebra.has(rebuilt.evaluator.value(name), a, b)


def _base(rebuilt: Rebuilt, name: str) -> int:
    value = rebuilt.base(name)
    assert value is not None
    return value


def proxy_of(rebuilt: Rebuilt, number: int) -> str:
    """The proxy that an operation uses (8.6)."""
    return next((word for tag, word in PROXIES.items() if _base(rebuilt, tag) >> number & 1), "generic")


def _name(test: Test, rebuilt: Rebuilt, number: int) -> str:
    return instruction(test, *rebuilt.layout.events[number].id.site).place


def _bytes(key: str, offset: int, size: int) -> str:
    last = offset + size - 1
    return f"byte {offset} of {key}" if size == 1 else f"bytes {offset} to {last} of {key}"
