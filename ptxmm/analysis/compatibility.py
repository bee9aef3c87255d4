"""Whether a model covers what a test uses: scopes, proxies and aliases, and what its executions do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ptxmm.cat import Model, index, load
from ptxmm.cat.ir import Coverage
from ptxmm.engines.result import Search
from ptxmm.errors import PtxmmError
from ptxmm.program.shared.pointers import known_addresses
from ptxmm.program.test import Test
from ptxmm.ptx.ops import FAMILIES, Atomic, Fence, Load, Op, ProxyFence, Reg, Source, Store, Sym, elements

_EVERYWHERE = ("CTA barrier", "warp", "matrix", "registers")
"""Families that every model has, or that are weak accesses to it."""

MIXED_SIZES = "mixed-sizes"
"""The flag of a model for operations that overlap partially, which it does not cover."""


def check_compatible(test: Test, model: Model) -> None:
    """Raise ``PtxmmError`` (kind ``unsupported``) at the first thing in ``test`` that ``model`` says nothing about.

    A user's own model covers everything.
    """
    for kind, word, source in _uses(test):
        if _covers(model.coverage, kind, word):
            continue
        able = [name for name, shipped in index().models.items() if _covers(shipped.coverage, kind, word)]
        raise _error(test, f"{model.name} has no {_name(kind, word)}", able, source)


def check_covered(test: Test, model: Model, search: Search) -> None:
    """Raise ``PtxmmError`` (kind ``unsupported``) if ``search`` found an execution that does what ``model`` says
    nothing about, and none that leaves the program without meaning."""
    known = index()
    if search.undefined is not None or search.flags & known.undefined:
        return
    for flag, what in known.uncovered.items():
        if flag in search.flags:
            able = [name for name in known.models if all(axiom.name != flag for axiom in load(name).axioms)]
            source = _mixed(test, model) if flag == MIXED_SIZES else None
            raise _error(test, f"{model.name} does not cover {what}", able, source)


def _error(test: Test, message: str, able: list[str], source: Source | None) -> PtxmmError:
    """``able``: the models that could be asked instead."""
    hint = "use --model " + " or --model ".join(able) if able else None
    error = PtxmmError(message, kind="unsupported", file=test.file, hint=hint)
    if source is not None:
        error.at(source.span)
    return error.place(test.file, test.text)


def _mixed(test: Test, model: Model) -> Source | None:
    """The first instruction that accesses some bytes otherwise than one before it, where both name their variable."""
    split, whole = model.readings.get("b128") == "split", model.readings.get("vector") == "whole"
    seen: set[tuple[str, int, int]] = set()
    for thread in test.threads:
        known = known_addresses(thread, test.objects)
        for op in thread.body:
            if not isinstance(op, Load | Store | Atomic):
                continue
            base = op.address.base
            named = known.get(base.name) if isinstance(base, Reg) else base
            if not isinstance(named, Sym):
                continue
            key = test.objects[named.name].physical
            for part in elements(op, split, whole):
                begin, size = named.offset + op.address.offset + part.offset, part.type.bytes
                if any(k == key and (b, n) != (begin, size) and b < begin + size and begin < b + n for k, b, n in seen):
                    return op.source
                seen.add((key, begin, size))
    return None


def _uses(test: Test) -> Iterator[tuple[str, str, Source | None]]:
    """(``scope`` or ``proxy``, its name, where) of everything that a model may lack."""
    for thread in test.threads:
        for op in thread.body:
            if isinstance(op, Load | Store | Atomic | Fence) and op.scope is not None:
                yield "scope", op.scope, op.source
            if isinstance(op, Load | Store | Atomic) and op.proxy != "generic":
                yield "proxy", op.proxy, op.source
            if isinstance(op, ProxyFence):
                yield "proxy", op.kind, op.source
            for family in _families(type(op)):
                yield "instructions", family, op.source
    if len({(t.placement.gpu, t.placement.grid) for t in test.threads}) > len({t.placement.gpu for t in test.threads}):
        yield "instructions", "grid", None
    for item in test.objects.values():
        if item.alias_of is not None:
            yield "proxy", "alias" if item.proxy == "generic" else item.proxy, None


@lru_cache(maxsize=256)
def _families(kind: type[Op]) -> tuple[str, ...]:
    """The families of instructions, of those that a model may lack, that operations of this kind belong to."""
    return tuple(name for name, types in FAMILIES.items() if name not in _EVERYWHERE and issubclass(kind, types))


def _covers(coverage: Coverage, kind: str, word: str) -> bool:
    if word == "alias":
        return coverage.aliases
    if kind == "instructions":
        return coverage.instructions is None or word in coverage.instructions
    return word in (coverage.scopes if kind == "scope" else coverage.proxies)


def _name(kind: str, word: str) -> str:
    if kind == "scope":
        return f"scope .{word}"
    if kind == "instructions":
        return "order between grids" if word == "grid" else f"{word} instructions"
    return "virtual aliases of an address" if word == "alias" else f"{word} proxy"
