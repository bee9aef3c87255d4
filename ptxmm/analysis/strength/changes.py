"""Changes of a program, instruction by instruction, and what they cost."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.instruction import written
from ptxmm.analysis.strength.superposition import Superposition
from ptxmm.analysis.strength.units import names, units
from ptxmm.errors import PtxmmError
from ptxmm.program.edit import canonical
from ptxmm.program.identity import Site, Switch
from ptxmm.program.test import Test
from ptxmm.ptx.ops import AsyncWait, Fence, MbarrierInitFence, Op

_OPCODE = re.compile(r"(@\S+ )?(\S+)(.*?)(?: \(called .*)?")
"""An instruction on one line: its guard, its opcode and its operands, and where it was inlined."""


class ChangeEntry(Struct, frozen=True):
    """One instruction is put in the place of another (``replace``), inserted before or ``after`` it (``insert``), or
    taken away (``remove``). ``old`` and ``new``: the instruction before and afterwards."""

    kind: Literal["replace", "insert", "remove"]
    thread: str
    line: int
    column: int
    old: str | None
    new: str | None
    after: bool


class Change(ChangeEntry, frozen=True):
    """A change that can be made; only in a kernel is an instruction inserted ``after`` another.

    ``number`` (of the thread) and ``index`` (in the body; its length is the end of the thread) say where. In a kernel
    the other instructions of its unit change with it, and ``thread`` names all their threads; in a litmus test each has
    a change of its own. ``op`` is what ``new`` is the text of. Of several insertions in one place the first in a list
    comes first.
    """

    number: int
    index: int
    op: Op | None


class Costs(Struct, frozen=True):
    """What each step towards a stronger program costs (at least 1).

    ``strong``: a weak access becomes ``.relaxed``; ``acquire`` and ``release``: an access or an arrival gets that
    order; ``fence``: a ``fence.acq_rel`` is added, ``sc``: a fence becomes ``fence.sc``; ``cluster gpu sys``: a scope
    becomes that wide; ``proxy``: a ``fence.proxy`` is added, ``mbarrier_init``: a ``fence.mbarrier_init``;
    ``barrier_warp``, ``barrier_cta`` and ``barrier_cluster``: a ``bar.warp.sync``, ``bar.sync`` or ``barrier.cluster``
    is added to the threads; ``wait``: a wait for asynchronous operations is added or waits for more; ``move``: a wait
    or a commit comes earlier.
    """

    strong: int = 1
    acquire: int = 2
    release: int = 2
    fence: int = 4
    sc: int = 6
    cluster: int = 1
    gpu: int = 1
    sys: int = 2
    proxy: int = 4
    mbarrier_init: int = 2
    barrier_warp: int = 3
    barrier_cta: int = 8
    barrier_cluster: int = 12
    wait: int = 4
    move: int = 3

    def of(self, everything: Superposition, switch: Switch) -> int:
        """The cost of one switch."""
        step = everything.step(switch).removeprefix("scope ")
        op = everything.forms[switch.site].strongest
        if step == "fence" and not isinstance(op, Fence):
            return self.mbarrier_init if isinstance(op, MbarrierInitFence) else self.proxy
        return int(getattr(self, step))


def costs(items: Iterable[str]) -> Costs:
    """The default costs with those of ``items`` (``NAME=N``) in their place. Raises ``PtxmmError`` (kind ``usage``)."""
    names = Costs.__struct_fields__
    chosen: dict[str, int] = {}
    for item in items:
        name, sign, value = item.partition("=")
        if not sign or name not in names or not re.fullmatch("[0-9]{1,7}", value) or not 1 <= int(value) <= 10**6:
            message = f"--cost {item}: expected NAME=N with N from 1 to 1000000"
            raise PtxmmError(message, kind="usage", hint=f"names: {', '.join(names)}")
        chosen[name] = int(value)
    return replace(Costs(), **chosen)


def insertion(test: Test, site: Site, op: Op, *, after: bool = False) -> Change:
    """``op`` before (or ``after``) the instruction at a site, or at the end of its thread."""
    return replace(_change("insert", test, site, None, op), after=after)


def removal(test: Test, site: Site) -> Change:
    """The instruction at a site is taken away."""
    return _change("remove", test, site, test.at(site), None)


def replacement(test: Test, site: Site, op: Op) -> Change:
    """``op`` in the place of the instruction at a site."""
    return _change("replace", test, site, test.at(site), op)


def _change(
    kind: Literal["replace", "insert", "remove"], test: Test, site: Site, old: Op | None, new: Op | None
) -> Change:
    thread, index = site
    body = test.threads[thread].body
    near = min(index, len(body) - 1)
    span = body[near].source.span
    before = None if old is None else written(old)
    after = None if new is None else canonical(test, new) if old is None else stated(test, old, new)
    alone = test.claims is None or index == len(body)
    name = names(test, (thread,) if alone else units(test).threads(site))
    return Change(kind, name, span.line, span.column, before, after, False, thread, index, new)


def stated(test: Test, old: Op, new: Op) -> str:
    """The text of ``new``, which stands in the place of ``old``: in a kernel with its operands as they are written,
    if these stay."""
    text = canonical(test, new)
    if test.claims is None or isinstance(new, AsyncWait):  # it waits for more: that is an operand
        return text
    return restated(written(old), text)


def restated(old: str, new: str) -> str:
    """The opcode of ``new`` with the operands of ``old``, which are written in another way but are the same."""
    was, now = _OPCODE.fullmatch(old), _OPCODE.fullmatch(new)
    if was is None or now is None or bool(was[3]) is not bool(now[3]):
        return new
    return f"{was[1] or ''}{now[2]}{was[3]}"
