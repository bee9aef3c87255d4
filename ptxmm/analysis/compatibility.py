"""Whether a model covers what a test uses: scopes, proxies and aliases."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmm.cat import Model, index
from ptxmm.cat.ir import Coverage
from ptxmm.errors import PtxmmError
from ptxmm.program.test import Test
from ptxmm.ptx.ops import FAMILIES, Atomic, Fence, Load, ProxyFence, Source, Store

_EVERYWHERE = ("CTA barrier", "warp", "matrix")
"""Families that every model has, or that are weak accesses to it."""


def check_compatible(test: Test, model: Model) -> None:
    """Raise ``PtxmmError`` (kind ``unsupported``) at the first thing in ``test`` that ``model`` says nothing about.

    A user's own model covers everything.
    """
    for kind, word, source in _uses(test):
        if _covers(model.coverage, kind, word):
            continue
        error = PtxmmError(
            f"{model.name} has no {_name(kind, word)}", kind="unsupported", file=test.file, hint=_mend(kind, word)
        )
        if source is not None:
            error.line, error.column = source.span.line, source.span.column
            error.width = max(1, source.span.end_column - source.span.column)
        raise error.place(test.file, test.text)


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
            for family, types in FAMILIES.items():
                if family not in _EVERYWHERE and isinstance(op, types):
                    yield "instructions", family, op.source
    if len({(t.placement.gpu, t.placement.grid) for t in test.threads}) > len({t.placement.gpu for t in test.threads}):
        yield "instructions", "grid", None
    for item in test.objects.values():
        if item.alias_of is not None:
            yield "proxy", "alias" if item.proxy == "generic" else item.proxy, None


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


def _mend(kind: str, word: str) -> str | None:
    able = [name for name, shipped in index().models.items() if _covers(shipped.coverage, kind, word)]
    return "use --model " + " or --model ".join(able) if able else None
