"""Threads that stand for the roles of a launch that is too large: some of each kind that execute the same instructions.

They can only refute a claim. That they do has to be true of the whole launch: so what they do must not depend on what
others have written, and nobody may wait for a number of threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, islice
from math import prod

from msgspec import Struct
from msgspec.structs import astuple, replace

from ptxmm.formats.modules.flow import matters
from ptxmm.formats.modules.grids import Grid
from ptxmm.formats.modules.kernel import Kernel
from ptxmm.formats.modules.lower import Code
from ptxmm.formats.modules.objects import Object
from ptxmm.formats.modules.specialize import Residue
from ptxmm.formats.modules.threads import Specializing
from ptxmm.formats.threads import MAX_THREADS
from ptxmm.program.placement import WARP_SIZE
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_read, names_written

_MOST = 12
"""So many threads are chosen at most, or one of each role if these are more."""
_NAMED = 100
_FOLLOWED = (ops.Load, ops.Store, ops.Atomic, ops.Fence, ops.Barrier, ops.Branch, ops.Exit)
_Thread = tuple[int, int]


def represented(kernel: Kernel, code: Code, variables: dict[str, Object]) -> tuple[Kernel, str]:
    """``kernel``, of whose grid no threads were chosen and all are too many, with some of each role, and what that
    means. ``code``: what counts of its instructions; ``variables``: all that there are.

    Raises ``PtxmmError`` (kind ``format``) where these could be wrong about the others, and names them.
    """
    launch, grid = kernel.launch, kernel.grid
    special = Specializing(kernel, code, variables)
    roles: dict[tuple[int, ...], list[_Thread]] = {}
    residues: list[Residue] = []
    looked = 0
    for cta, thread in sorted({*_candidates(grid), *_named(grid, code)}):
        residue, timed = special.specialized(cta, thread, frozenset())
        if residue.origin not in roles:
            residues.append(residue)
        looked += 1
        # A clock may decide anything.
        roles.setdefault((*residue.origin, -1) if timed else residue.origin, []).append((cta, thread))
    chosen = _chosen(list(roles.values()))
    many = grid.ctas * grid.size
    if any(isinstance(op, ops.WarpExchange | ops.WarpBarrier) for residue in residues for op in residue.body):
        chosen = _with_lanes_before(chosen)
    shown = _selection(chosen)
    # Others may wait for threads that are not chosen, and what is the same value for all need not be so for some.
    others = len(launch.grids) > 1 or bool(launch.host) or kernel.same_value is not None
    if others or any(-1 in role for role in roles) or not all(map(_alone, residues)):
        message = f"{many} threads run; at most {MAX_THREADS} are supported, and what one does depends on others"
        hint = f"`ptxmm check --whole` executes all; or choose some, for each role as in threads = {shown}"
        hint = hint if len(chosen) <= MAX_THREADS else hint.partition(";")[0]
        raise launch.error(grid.spans["block"], message, hint=hint)
    had = "the one role that these have" if len(roles) == 1 else f"each of the {len(roles)} roles that these have"
    note = (
        f"of {many} threads, more than {MAX_THREADS}, {looked} were looked at, and some of {had} run: of the others "
        f"nothing is known; threads = {shown} claims it of these, `ptxmm check --whole` executes all"
    )
    return replace(kernel, grid=replace(grid, threads=chosen)), note


def _candidates(grid: Grid) -> Iterable[_Thread]:
    """The threads whose roles are looked at: first and last of each warp, all of the first and the last warp, and the
    first of each warp in the second, the middle and the last CTA."""
    first = {*range(0, grid.size, WARP_SIZE), *range(WARP_SIZE - 1, grid.size, WARP_SIZE), grid.size - 1}
    inside = {*first, *range(min(WARP_SIZE, grid.size)), *range((grid.size - 1) // WARP_SIZE * WARP_SIZE, grid.size)}
    others = sorted({1, grid.ctas // 2, grid.ctas - 1} & set(range(1, grid.ctas)))
    yield from ((0, thread) for thread in sorted(inside))
    yield from ((cta, thread) for cta in others for thread in sorted({*range(0, grid.size, WARP_SIZE), grid.size - 1}))


def _named(grid: Grid, code: Code) -> Iterable[_Thread]:
    """Threads that a constant of ``code`` may single out, ``_NAMED`` at most: those of whom it is the number in the CTA
    or in the launch, or that of the CTA, counted in threads, warps or one dimension. First those of constants that are
    compared with, then those of the numbers beside these, then of all other constants."""
    compared = [item for op in code.body if isinstance(op, ops.SetPredicate) for item in _constants(op)]
    beside = [item + step for item in compared for step in (-1, 1)]
    known = set(_candidates(grid))
    found: dict[_Thread, None] = {}
    for number in dict.fromkeys((*compared, *beside, *(item for op in code.body for item in _constants(op)))):
        found[divmod(number, grid.size)] = None
        found.update(((0, number * step), None) for step in (1, WARP_SIZE, grid.block[0], prod(grid.block[:2])))
        found.update(((number * step, 0), None) for step in (1, grid.grid[0], prod(grid.grid[:2])))
    inside = (it for it in found if 0 <= it[0] < grid.ctas and 0 <= it[1] < grid.size and it not in known)
    return islice(inside, _NAMED)


def _constants(item: object) -> Iterable[int]:
    """The sizes of the integer constants in ``item``, an operation or a part of one."""
    if isinstance(item, ops.Imm):
        yield abs(item.value)
    elif isinstance(item, Struct | tuple):
        for part in item if isinstance(item, tuple) else astuple(item):
            yield from _constants(part)


def _chosen(roles: Sequence[Sequence[_Thread]]) -> tuple[_Thread, ...]:
    """Of each role its first thread, then one of another warp, of another CTA, the last of the CTA, one of the same
    warp, the last of it and the last of all, while there is room."""
    found = dict.fromkeys(members[0] for members in roles)
    for number, differs in enumerate((_other_warp, _other_cta, _same_cta, _other_lane, _other_lane, _any)):
        for members in roles:
            order = members if number in (0, 1, 3) else members[::-1]
            more = next((thread for thread in order if differs(members[0], thread)), None)
            if more is not None and len(found) < _MOST:
                found[more] = None
    return tuple(sorted(found))


def _other_warp(one: _Thread, other: _Thread) -> bool:
    return one[0] == other[0] and one[1] // WARP_SIZE != other[1] // WARP_SIZE


def _other_cta(one: _Thread, other: _Thread) -> bool:
    return one[0] != other[0]


def _same_cta(one: _Thread, other: _Thread) -> bool:
    return one[0] == other[0]


def _other_lane(one: _Thread, other: _Thread) -> bool:
    return one != other and one[0] == other[0] and one[1] // WARP_SIZE == other[1] // WARP_SIZE


def _any(one: _Thread, other: _Thread) -> bool:
    return True


def _with_lanes_before(threads: Sequence[_Thread]) -> tuple[_Thread, ...]:
    """``threads`` with the lanes of their warps that come before them, as instructions of a warp ask for."""
    each = ((cta, lane) for cta, last in threads for lane in range(last // WARP_SIZE * WARP_SIZE, last + 1))
    return tuple(sorted(set(each)))


def _selection(threads: Sequence[_Thread]) -> str:
    """``threads`` as a launch writes them."""
    inside = {cta: _ranges([thread for _, thread in own]) for cta, own in groupby(threads, lambda item: item[0])}
    parts = [
        f'"cta {_ranges([cta for cta in inside if inside[cta] == text])} thread {text}"'
        for text in dict.fromkeys(inside.values())
    ]
    return parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"


def _ranges(numbers: Sequence[int]) -> str:
    """``0-3,7`` for ascending ``numbers``."""
    runs = [[item for _, item in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ",".join(",".join(map(str, run)) if len(run) < 3 else f"{run[0]}-{run[-1]}" for run in runs)


def _alone(residue: Residue) -> bool:
    """Whether the launch decides what a thread executes and accesses, and whom it waits for."""
    loaded: set[str] = set()
    for op in residue.body:
        if matters(op) and not isinstance(op, _FOLLOWED):
            return False
        if op.guard is not None or getattr(op, "condition", None) is not None:
            return False
        if isinstance(op, ops.Barrier) and (op.count is not None or op.kind != "sync"):
            return False
        read = set(names_read(op))
        if any(_by(touch, loaded) for touch in ops.touched(op)):
            return False
        if isinstance(op, ops.Load | ops.Atomic) or read & loaded or isinstance(op, ops.Nothing):
            loaded |= set(names_written(op))
        else:
            loaded -= set(names_written(op))
    return True


def _by(touch: ops.Touch, registers: set[str]) -> bool:
    """Whether one of ``registers`` decides where an access is."""
    return isinstance(touch.address.base, ops.Reg) and touch.address.base.name in registers
