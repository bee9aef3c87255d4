"""Registers that some path of a thread reads before it writes them: no instruction gives them a value (PTX ISA 5.1.1).

Each is given what a private variable without an initial value holds, read when the thread begins: so it is a constant
of which nothing is known, with all that the analyses do about such constants (``program.unspecified.unknown``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import Span
from ptxmm.formats.modules.flow import live_registers
from ptxmm.formats.modules.objects import Object
from ptxmm.formats.text import at
from ptxmm.program.graph import graph_of
from ptxmm.program.symbols import symbols
from ptxmm.ptx import ops
from ptxmm.ptx.isa import PREDICATE, names_read, names_written

_WIDTHS = (8, 16, 32, 64)
_State = dict[str, ops.Guard | None]
"""The registers that may not have been written: None, or a guard that would show by being true that they have."""


class Unwritten(Struct, frozen=True):
    """A thread with a value for what it reads before it writes it. ``variables``: where these values are from, by the
    register; ``registers``: those that were added."""

    body: tuple[ops.Op, ...]
    variables: dict[str, Object]
    registers: dict[str, ops.Type]


def with_unwritten(
    body: tuple[ops.Op, ...], registers: Mapping[str, ops.Type], observed: Collection[str], taken: Collection[str]
) -> Unwritten:
    """``body`` with the registers that some path may read before it writes them read from variables of their own.

    ``observed`` registers are read at the end; ``taken``: the names of variables. Raises ``PtxmmError``.
    """
    found = _read_early(body, observed)
    if not found:
        return Unwritten(body, {}, {})
    variables: dict[str, Object] = {}
    added: dict[str, ops.Type] = {}
    first: list[ops.Op] = []
    for name, source in found.items():
        type_ = registers[name]
        bits = 32 if type_ == PREDICATE else type_.bits
        if bits not in _WIDTHS:
            message = f"%{shown(name)} may be read before it is written, which is not supported for {bits} bits"
            raise at(message, source.span, kind="unsupported")
        variable = "uninit_" + re.sub(r"\W", "_", name)
        while variable in taken or variable in {item.name for item in variables.values()}:
            variable += "_"
        here = ops.Source(source.span, f"%{shown(name)} before it is written")
        word = ops.Type("b", bits)
        variables[name] = Object(variable, "local", word, None, None, None, Span(1, 1, 2))
        into = f"{name} unwritten" if type_ == PREDICATE else name
        first.append(ops.Load((ops.Reg(into),), ops.Address(ops.Sym(variable), 0), word, "weak", None, "local", here))
        if type_ == PREDICATE:
            added[into] = word
            first.append(ops.SetPredicate("ne", word, ops.Reg(name), None, ops.Reg(into), ops.Imm(0), here))
    moved = [replace(op, target=op.target + len(first)) if isinstance(op, ops.Branch) else op for op in body]
    return Unwritten((*first, *moved), variables, added)


def written_first(bodies: Sequence[Sequence[ops.Op]], item: Object) -> bool:
    """Whether every thread writes what it reads of the private variable ``item`` before it reads it, on every path, and
    does nothing else with its address: then it does not matter what the variable holds at first."""
    return all(_writes_first(body, item.name) for body in bodies if any(item.name in symbols(op) for op in body))


def _writes_first(body: Sequence[ops.Op], name: str) -> bool:
    after = graph_of(body).after
    entry = {0: 0}  # the bytes that have been written, as bits
    waiting = [0]
    while waiting:
        pc = waiting.pop()
        if pc == len(body):
            continue
        op, written = body[pc], entry[pc]
        if name in symbols(op):
            if (
                not isinstance(op, ops.Load | ops.Store)
                or symbols(op) != [name]
                or not isinstance(op.address.base, ops.Sym)
            ):
                return False
            start = op.address.base.offset + op.address.offset
            if start < 0:
                return False
            touched = ((1 << ops.access_bytes(op)) - 1) << start
            if isinstance(op, ops.Load) and touched & ~written:
                return False
            if isinstance(op, ops.Store) and op.guard is None:
                written |= touched
        for follower in after[pc]:
            new = written & entry[follower] if follower in entry else written
            if new != entry.get(follower):
                entry[follower] = new
                waiting.append(follower)
    return True


def shown(name: str) -> str:
    """The register as the module calls it: without the number of a call that is inlined."""
    return re.sub(r"\$[0-9]+$", "", name)


def _read_early(body: Sequence[ops.Op], observed: Collection[str]) -> dict[str, ops.Source]:
    """The registers that some path may read before it writes them, each with the first instruction that does."""
    end = len(body)
    start: _State = dict.fromkeys(sorted(live_registers(body, observed)[0]))
    if not start:
        return {}
    after = graph_of(body).after
    entry: dict[int, _State] = {0: start}
    waiting = [0]
    while waiting:
        pc = waiting.pop()
        if pc == end:
            continue
        out = _left(body[pc], entry[pc])
        for follower in after[pc]:
            state = _along(body[pc], follower, end, pc, out)
            old = entry.get(follower)
            new = state if old is None else _joined(old, state)
            if new != old:
                entry[follower] = new
                waiting.append(follower)
    found: dict[str, ops.Source] = {}
    for pc in sorted(entry):
        read = sorted(observed) if pc == end else names_read(body[pc])
        for name in read:
            guard = None if pc == end else body[pc].guard
            if name in entry[pc] and (entry[pc][name] is None or entry[pc][name] != guard):
                source = body[pc].source if pc < end else body[-1].source if body else ops.Source(Span(1, 1, 2), "")
                found.setdefault(name, source)
    return found


def _left(op: ops.Op, state: _State) -> _State:
    """The state after ``op``, where it goes on."""
    written = set(names_written(op))
    out: _State = {}
    for name, known in state.items():
        if name in written:
            if op.guard is None or known == _opposite(op.guard):
                continue
            known = op.guard
        out[name] = None if known is not None and known.register in written else known
    return out


def _along(op: ops.Op, follower: int, end: int, pc: int, state: _State) -> _State:
    """``state`` on the way from ``op`` to ``follower``, which shows whether its guard holds."""
    if not isinstance(op, ops.Branch | ops.Exit) or op.guard is None:
        return state
    away = op.target if isinstance(op, ops.Branch) else end
    if away == pc + 1:
        return state
    holds = op.guard if follower == away else _opposite(op.guard)
    return {name: None if known == _opposite(holds) else known for name, known in state.items() if known != holds}


def _joined(one: _State, other: _State) -> _State:
    found: _State = {}
    for name in one.keys() | other.keys():
        sides = [state[name] for state in (one, other) if name in state]
        found[name] = sides[0] if all(side == sides[0] for side in sides) else None
    return found


def _opposite(guard: ops.Guard) -> ops.Guard:
    return ops.Guard(guard.register, not guard.negated)
