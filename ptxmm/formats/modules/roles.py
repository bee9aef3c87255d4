"""Threads that stand for the roles of a launch that is too large: some of each kind that execute the same instructions.

They can only refute a claim. That they do has to be true of the whole launch: so what they do must not depend on what
others have written, and nobody may wait for a number of threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec.structs import replace

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
    for cta, thread in _candidates(grid):
        residue, timed = special.specialized(cta, thread, frozenset())
        if residue.origin not in roles:
            residues.append(residue)
        # A clock may decide anything.
        roles.setdefault((*residue.origin, -1) if timed else residue.origin, []).append((cta, thread))
    chosen = _chosen(list(roles.values()))
    many, shown = grid.ctas * grid.size, _selection(chosen)
    # Others may wait for threads that are not chosen, and what is the same value for all need not be so for some.
    others = len(launch.grids) > 1 or bool(launch.host) or kernel.same_value is not None
    if others or any(-1 in role for role in roles) or not all(map(_alone, residues)):
        message = f"{many} threads run; at most {MAX_THREADS} are supported, and what one does depends on others"
        hint = f"choose some, for each role as in threads = {shown}; or `ptxmm check --whole`, which executes all"
        raise launch.error(grid.spans["block"], message, hint=hint)
    note = (
        f"of {many} threads, more than {MAX_THREADS}, some of each of {len(roles)} roles run, and of the others "
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


def _chosen(roles: Sequence[Sequence[_Thread]]) -> tuple[_Thread, ...]:
    """Of each role its first thread, then one of another warp, of another CTA, and of the same warp, while there is
    room."""
    found = [members[0] for members in roles]
    for differs in (_other_warp, _other_cta, _other_lane):
        for members in roles:
            more = next((thread for thread in members if differs(members[0], thread)), None)
            if more is not None and len(found) < _MOST:
                found.append(more)
    return tuple(sorted(set(found)))


def _other_warp(one: _Thread, other: _Thread) -> bool:
    return one[0] == other[0] and one[1] // WARP_SIZE != other[1] // WARP_SIZE


def _other_cta(one: _Thread, other: _Thread) -> bool:
    return one[0] != other[0]


def _other_lane(one: _Thread, other: _Thread) -> bool:
    return one != other and one[0] == other[0] and one[1] // WARP_SIZE == other[1] // WARP_SIZE


def _selection(threads: Sequence[_Thread]) -> str:
    """``threads`` as a launch writes them."""
    inside = {cta: ",".join(str(thread) for _, thread in own) for cta, own in groupby(threads, lambda item: item[0])}
    parts = [
        f'"cta {",".join(str(cta) for cta in inside if inside[cta] == text)} thread {text}"'
        for text in dict.fromkeys(inside.values())
    ]
    return parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"


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
