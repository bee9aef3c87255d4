"""Values that threads give each other, for the reference: barriers with a reduction, and exchanges of a warp.

A result stands as ``("given", (thread, step, which))`` in the expressions of its thread until a run of the barriers has
shown who meets (``reference_simulation``); then it is an expression over the operands of all that met, and what depends
on it depends on the reads in those operands (PTX ISA 8.5, 9.7.10.6, 9.7.14.1, 9.7.14.9 to 9.7.14.12, 9.7.14.14).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ptxmm.program.test import Test
from ptxmm.ptx import ops
from ptxmm.ptx.ops import Type
from tests.reference_events import Path, Run, Step
from tests.reference_expressions import Expr, Leaf, apply, call, const, is_const, mask, reads, substitute

if TYPE_CHECKING:
    from tests.reference_threads import Walker

U32 = Type("u", 32)
PRED = Type("pred", 1)
LANES = 32


def lanes(test: Test) -> list[tuple[object, int, bool]]:
    """For each thread its warp, its lane there, and whether the warp has a name. Lanes are numbered in the order of the
    threads; a thread without a named warp is lane 0 of its own (A27, A29)."""
    found: list[tuple[object, int, bool]] = []
    for t, thread in enumerate(test.threads):
        p = thread.placement
        named = p.warp is not None and not p.host
        warp: object = (p.gpu, p.grid, p.cluster, p.cta, p.warp) if named and p.cta is not None else ("own", t, p.warp)
        found.append((warp, sum(other == warp for other, _, _ in found), named))
    return found


# ---- instructions that all threads of a warp execute together -------------------------------------------------------

ALIGNED = (
    ops.Wgmma, ops.WgmmaFence, ops.TensorLoad, ops.TensorStore, ops.TensorWait, ops.Wmma, ops.WmmaLoad, ops.WmmaStore,
    ops.TensormapCopyFence, ops.SetMaxRegisters,
)  # fmt: skip
RUNTIME = ("source", "guard", "negated", "scale_negated", "aligned")
"""What is no qualifier and no constant of an instruction."""


def shared(test: Test) -> list[bool]:
    """For each thread whether another one of its named warp is in the test."""
    everyone = lanes(test)
    warps = [warp for warp, _, _ in everyone]
    return [named and warps.count(warp) > 1 for warp, _, named in everyone]


def gathers(op: ops.Op) -> bool:
    """Whether an instruction that is no barrier is ``.sync.aligned`` (PTX ISA 9.7.14.16, 9.7.15, 9.7.16)."""
    return isinstance(op, ALIGNED) or (isinstance(op, ops.AsyncCommit | ops.AsyncWait) and op.kind == "wgmma")


def qualifiers(op: ops.Op) -> tuple[object, ...]:
    """What an instruction is, without its registers and addresses."""
    given = {name: getattr(op, name) for name in op.__struct_fields__ if name not in RUNTIME}
    plain = (str, int, bool, type(None), Type, tuple, ops.Tile)
    kept = {name: value for name, value in given.items() if isinstance(value, plain)}
    registers = {n: len(v) for n, v in kept.items() if isinstance(v, tuple) and any(isinstance(r, ops.Reg) for r in v)}
    return type(op).__name__, *sorted(((n, repr(registers.get(n, v))) for n, v in kept.items()))


# ---- the instructions of one thread ----------------------------------------------------------------------------------


def exchange(walker: Walker, run: Run, op: ops.WarpExchange, taken: Expr) -> Iterator[Run]:
    """An exchange: once for each lane that a shuffle may take its value from."""
    everyone = lanes(walker.test)
    warp, own, named = everyone[walker.index]
    shown = sum(1 << lane for other, lane, _ in everyone if other == warp)
    if op.op == "activemask":
        yield finish(walker, run, op, taken, const(shown if named else mask(-1, LANES)), const(0))
        return
    members = walker.operand(run, op.operands[-1], U32)
    if not is_const(members):
        raise NotImplementedError(op)
    if not members[1] >> own & 1:
        return  # undefined: the executing thread is not in the membermask
    step = Step(walker.index, "exchange", op, args=(members,))
    name = (walker.index, len(run.steps))
    if op.op == "elect":
        for leader in range(LANES):
            if leader != own and not (shown & members[1]) >> leader & 1:
                continue
            fork = replace(run, steps=(*run.steps, replace(step, source=leader)))
            yield finish(walker, fork, op, taken, const(leader), const(int(leader == own)))
        return
    if op.op.startswith("vote."):
        operand = walker.operand(run, op.operands[0], PRED)
        operand = walker.apply("not", PRED, operand) if op.negated else operand
    else:
        operand = walker.operand(run, op.operands[0], op.type)
    if not op.op.startswith("shfl."):
        fork = replace(run, steps=(*run.steps, replace(step, gives=operand)))
        yield finish(walker, fork, op, taken, ("given", (*name, 0)), ("given", (*name, 1)))
        return
    b, c = (walker.operand(run, o, U32) for o in op.operands[1:3])
    choice = call(chosen, const(MODES.index(op.op)), const(own), b, c)
    for source in range(LANES):
        if not (shown & members[1]) >> source & 1:
            continue  # undefined: the lane is not there, or takes no part
        for in_range in (False, True) if source == own else (True,):
            here = walker.apply("eq", U32, choice, const(source << 1 | in_range))
            if is_const(here) and not here[1]:
                continue
            fork = run if is_const(here) else replace(run, constraints=(*run.constraints, (here, True)))
            fork = replace(fork, steps=(*run.steps, replace(step, gives=operand, source=source)))
            value: Expr = operand if source == own else ("given", (*name, 0))
            # which lane it is depends on the operands b and c
            which = reads(b) | reads(c)
            results = ((value, 32), (const(int(in_range)), 1))
            value, flag = (("joined", v, which, ("shfl", name, bits)) if which else v for v, bits in results)
            yield finish(walker, fork, op, taken, value, flag)


def elected(test: Test, steps: Iterable[Step]) -> bool:
    """Whether every warp elects the same lane for the same mask every time, one whose code has an election with that
    mask (9.7.14.14), whether or not it comes to it in this execution."""
    place = lanes(test)
    leaders: dict[tuple[object, int], set[int]] = {}
    for step in steps:
        if isinstance(step.op, ops.WarpExchange) and step.op.op == "elect":
            assert step.args[0] is not None and is_const(step.args[0])
            leaders.setdefault((place[step.thread][0], step.args[0][1]), set()).add(step.source)
    return all(len(chosen) == 1 and chosen <= voters(test, *key) for key, chosen in leaders.items())


def voters(test: Test, warp: object, members: int) -> set[int]:
    """The lanes of a warp whose code has an election with this mask, or with one in a register."""
    found = set()
    for (other, lane, _), thread in zip(lanes(test), test.threads, strict=True):
        for op in thread.body:
            if other == warp and isinstance(op, ops.WarpExchange) and op.op == "elect":
                given = op.operands[-1]
                if not isinstance(given, ops.Imm) or mask(given.value, 32) == members:
                    found.add(lane)
    return found


MODES = ("shfl.up", "shfl.down", "shfl.bfly", "shfl.idx")


def chosen(mode: int, lane: int, b: int, c: int) -> int:
    """The source lane of a shuffle and, in the lowest bit, whether it is in range (9.7.10.6, Semantics)."""
    bval, cval, segmask = b & 31, c & 31, c >> 8 & 31
    max_lane = (lane & segmask) | (cval & ~segmask)
    min_lane = lane & segmask
    match MODES[mode]:
        case "shfl.up":
            j = lane - bval
            pval = j >= max_lane
        case "shfl.down":
            j = lane + bval
            pval = j <= max_lane
        case "shfl.bfly":
            j = lane ^ bval
            pval = j <= max_lane
        case _:
            j = min_lane | (bval & ~segmask)
            pval = j <= max_lane
    return (j if pval else lane) << 1 | pval


def finish(walker: Walker, run: Run, op: ops.WarpExchange, taken: Expr, value: Expr, flag: Expr) -> Run:
    """The run after an exchange that gives ``value`` and the predicate ``flag``."""
    kind = PRED if op.op.startswith("vote.") and op.op != "vote.ballot" else U32
    registers = walker.assign(run, op.dst, value, kind, taken)
    registers = walker.assign(replace(run, registers=registers), op.predicate, flag, PRED, taken)
    return replace(run, pc=run.pc + 1, registers=registers)


# ---- what is given ---------------------------------------------------------------------------------------------------

Given = Mapping[Leaf, Expr]


def results(members: Mapping[int, tuple[int, Step]], place: Mapping[int, tuple[object, int, bool]]) -> Given | None:
    """What the members of a phase get: by thread the number of its step and the step. None if that has no meaning."""
    found: dict[Leaf, Expr] = {}
    if any(isinstance(step.op, ops.BarrierReduction) for _, step in members.values()):
        operands = [step.gives or const(0) for _, step in members.values()]
        for t, (number, step) in members.items():
            assert isinstance(step.op, ops.BarrierReduction)
            # a thread is one lane of a named warp, or a whole warp whose threads all have its predicate
            weights = [const(1 if place[u][2] else LANES) for u in members]
            match step.op.op:
                case "popc":
                    value = call(weighed, const(len(operands)), *weights, *operands)
                case "and":
                    value = call(all_true, *operands)
                case _:
                    value = call(any_true, *operands)
            found[t, number, 0] = value
        return found
    by_lane = {place[t][1]: step for t, (_, step) in members.items()}
    for t, (number, step) in members.items():
        op = step.op
        assert isinstance(op, ops.WarpExchange)
        if op.op == "elect":
            continue
        if op.op.startswith("shfl."):
            if step.source not in by_lane:
                return None  # undefined: the lane has exited
            found[t, number, 0] = by_lane[step.source].gives or const(0)
            continue
        operands = [by_lane[lane].gives or const(0) for lane in sorted(by_lane)]
        bits = [const(1 << lane) for lane in sorted(by_lane)]
        count = const(len(operands))
        match op.op.partition(".")[::2]:
            case ("vote", "all"):
                found[t, number, 0] = call(all_true, *operands)
            case ("vote", "any"):
                found[t, number, 0] = call(any_true, *operands)
            case ("vote", "uni"):
                found[t, number, 0] = call(all_equal, *operands)
            case ("vote", "ballot"):
                found[t, number, 0] = call(weighed, count, *bits, *operands)
            case ("match", "any"):
                own = step.gives or const(0)
                found[t, number, 0] = call(matching, own, count, *bits, *operands)
            case ("match", "all"):
                found[t, number, 0] = call(matching_all, count, *bits, *operands)
                found[t, number, 1] = call(all_equal, *operands)
            case ("redux", name):
                total = operands[0]
                for operand in operands[1:]:
                    total = apply(name, op.type, total, operand, sem=False)
                found[t, number, 0] = total
            case _:
                raise NotImplementedError(op)
    return found


def all_true(*values: int) -> int:
    return int(all(values))


def any_true(*values: int) -> int:
    return int(any(values))


def all_equal(*values: int) -> int:
    return int(len(set(values)) <= 1)


def weighed(count: int, *rest: int) -> int:
    """The sum of the first ``count`` numbers whose partner among the others is not 0."""
    return sum(weight for weight, value in zip(rest[:count], rest[count:], strict=True) if value)


def matching(own: int, count: int, *rest: int) -> int:
    """The lanes that have the value ``own``."""
    return sum(bit for bit, value in zip(rest[:count], rest[count:], strict=True) if value == own)


def matching_all(count: int, *rest: int) -> int:
    """All lanes if they have the same value, else none."""
    return sum(rest[:count]) if all_equal(*rest[count:]) else 0


def resolved(path: Path, given: Given) -> Path:
    """The path with what its thread was given in place."""

    def known(leaves: frozenset[Leaf]) -> frozenset[Leaf]:
        return frozenset().union(*(reads(given[leaf]) if leaf in given else {leaf} for leaf in leaves))

    events = tuple(
        replace(
            e,
            value=None if e.value is None else substitute(e.value, given),
            addr=known(e.addr),
            data=known(e.data),
            ctrl=known(e.ctrl),
            left=known(e.left),
        )
        for e in path.events
    )
    constraints = tuple((substitute(e, given), truth) for e, truth in path.constraints)
    registers = {name: substitute(e, given) for name, e in path.registers.items()}
    return replace(path, events=events, constraints=constraints, registers=registers, left=known(path.left))
