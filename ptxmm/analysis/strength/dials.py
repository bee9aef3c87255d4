"""What can be turned at an instruction by hand: its order, its scope, and whether it is there."""

from __future__ import annotations

from msgspec import Struct

from ptxmm.analysis.instruction import written
from ptxmm.analysis.strength.forms import SCOPES, forms_of, orders_of, scopes_of, with_order
from ptxmm.cat.ir import Coverage
from ptxmm.errors import PtxmmError
from ptxmm.program.edit import edited
from ptxmm.program.identity import Site
from ptxmm.program.test import Test
from ptxmm.ptx import ops

NONE = "none"
"""The order of a fence that is taken away."""

_NEAR: tuple[ops.Scope, ...] = ("cta", "cluster")
_MBARRIER = (ops.MbarrierArrive, ops.MbarrierWait, ops.MbarrierTx)


class Dial(Struct, frozen=True):
    """The ``orders`` (``.sem``; ``none``: it is not there) and ``scopes`` that the instruction ``index`` of a thread
    may have, both from the weakest, and the positions at which it stands as written (``scope``: of a weak access, the
    narrowest that includes all threads). ``line`` is 1-based."""

    thread: str
    index: int
    line: int
    text: str
    orders: tuple[str, ...]
    scopes: tuple[str, ...]
    order: int
    scope: int


class Turn(Struct, frozen=True, forbid_unknown_fields=True):
    """An instruction as its dial names it, at another order and scope."""

    thread: str
    index: int
    order: str
    scope: str | None = None


def dials(test: Test, coverage: Coverage) -> list[Dial]:
    """The dials of the instructions of ``test`` under a model with this ``coverage``, in the order of the test."""
    return [found for site, op in test.instructions if (found := _dial(test, site, op, coverage)) is not None]


def turned(test: Test, turns: tuple[Turn, ...], coverage: Coverage) -> tuple[Test, dict[Site, ops.Op | None]]:
    """``test`` with its dials at ``turns``, and what stands at each instruction that changes (None: nothing).

    Raises ``PtxmmError`` (kind ``usage``) for a turn that no dial has.
    """
    threads = {thread.name: number for number, thread in enumerate(test.threads)}
    changed: dict[Site, ops.Op | None] = {}
    for turn in turns:
        site = Site(threads.get(turn.thread, -1), turn.index)
        there = site.thread >= 0 and 0 <= turn.index < len(test.threads[site.thread].body)
        found = _dial(test, site, test.at(site), coverage) if there else None
        if found is None or turn.order not in found.orders or (turn.scope or "") not in ("", *found.scopes):
            message = f"no instruction {turn.index} of {turn.thread} has the order {turn.order} {turn.scope or ''}"
            raise PtxmmError(message.rstrip(), kind="usage")
        changed[site] = _form(test.at(site), turn)
    edits = {site: () if op is None else (op,) for site, op in changed.items()}
    return edited(test, edits), changed


def _form(op: ops.Op, turn: Turn) -> ops.Op | None:
    if turn.order == NONE:
        return None
    if not hasattr(op, "sem"):
        return op
    weak = turn.order == "weak"
    scope = next((s for s in SCOPES if s == turn.scope and not weak), None if weak else getattr(op, "scope", None))
    return with_order(op, turn.order, scope)


def _dial(test: Test, site: Site, op: ops.Op, coverage: Coverage) -> Dial | None:
    """The dial of ``op``; None for an instruction that has one form."""
    if forms_of(test, (site.thread,), op, coverage, True) is None and not isinstance(op, ops.Atomic):
        return None
    place = test.threads[site.thread].name, site.instruction, op.source.span.line, written(op)
    orders = _orders(test, op)
    own = getattr(op, "sem", "present")
    scopes = _scopes(op, coverage)
    if isinstance(op, ops.Load | ops.Store) and op.volatile:
        own = "relaxed"
    if len(orders) * max(1, len(scopes)) < 2 or own not in orders:
        return None
    scope = getattr(op, "scope", None) or scopes_of(test, (site.thread,), coverage)[-1]
    return Dial(*place, orders, scopes, orders.index(own), scopes.index(scope) if scope in scopes else 0)


def _orders(test: Test, op: ops.Op) -> tuple[str, ...]:
    if isinstance(op, ops.ClusterBarrier):
        return "relaxed", "release"
    if isinstance(op, ops.ProxyFence | ops.MbarrierInitFence) or (isinstance(op, ops.Fence) and op.restrict):
        return NONE, getattr(op, "sem", "present")
    return tuple(sem or NONE for sem, _ in orders_of(test.isa, op))


def _scopes(op: ops.Op, coverage: Coverage) -> tuple[str, ...]:
    """All scopes of the model: also those between which the threads of the test make no difference."""
    if not hasattr(op, "scope"):
        return ()
    own = op.scope
    return tuple(s for s in (_NEAR if isinstance(op, _MBARRIER) else SCOPES) if s in coverage.scopes or s == own)
