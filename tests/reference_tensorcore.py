"""tcgen05 in the reference: tensor memory, what works on it, and what orders that (9.7.16 of PTX ISA 9.0).

Products are not computed: the column of D gets that of A, if A is in tensor memory, else the first bytes of B.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ptxmm.ptx import ops
from ptxmm.ptx.ops import Type
from tests.reference_accesses import placed
from tests.reference_events import Event, Later, Run, Step
from tests.reference_expressions import Expr, joined_bytes, reads
from tests.reference_relations import Pairs, closure, seq

if TYPE_CHECKING:
    from ptxmm.program.test import MemoryObject
    from tests.reference_frame import Frame
    from tests.reference_simulation import Meeting
    from tests.reference_threads import Walker

B32 = Type("b", 32)
B64 = Type("b", 64)
COLUMN = 4
TensorOp = (
    ops.TensorFence | ops.TensorWait | ops.TensorLoad | ops.TensorStore | ops.TensorCopy | ops.TensorProduct
    | ops.TensorCommit
)  # fmt: skip
NAMES = {ops.TensorLoad: "ld", ops.TensorStore: "st", ops.TensorCopy: "cp", ops.TensorProduct: "mma"}


# ---- events ----------------------------------------------------------------------------------------------------------


def perform(walker: Walker, run: Run, op: TensorOp, taken: Expr, common: Event) -> Iterator[Run]:
    if isinstance(op, ops.TensorFence):
        yield done(run, replace(common, kind="TCB" if op.kind == "before" else "TCA"))
        return
    if isinstance(op, ops.TensorWait):
        yield done(run, replace(common, kind="AW", fences=f"tcgen05.{op.kind}"))
        return
    issued = replace(common, kind="ISS", fences="tcgen05")
    n = len(run.events)
    if isinstance(op, ops.TensorCommit):
        for fork, item, offset, where in walker.places(run, op.address, 8, 8):
            place = (item.physical, offset)
            arrival = replace(
                common, kind="MBA", scope="cluster", proxy="GEN", rel=True, sync=False, place=place, addr=reads(where)
            )
            step = Step(walker.index, "issue", op, later=(Later(n + 1, place, None),))
            made = (issued, replace(arrival, fences="tcgen05.commit"))
            yield replace(done(fork, *made), steps=(*run.steps, step))
        return
    inside = replace(common, proxy="GEN", sync=False, fences=f"tcgen05.{NAMES[type(op)]}")
    shared = replace(common, proxy="ASY", sync=False, fences="tcgen05 matrix")
    match op:
        case ops.TensorLoad(dst, address):
            item, offset = column(walker, run, address)
            new = [replace(placed(inside, item, offset + COLUMN * i, COLUMN), kind="R") for i in range(len(dst))]
            registers = run.registers
            for i, register in enumerate(dst):
                value: Expr = ("read", (walker.index, n + 1 + i))
                registers = walker.assign(replace(run, registers=registers), register, value, B32, taken)
            yield replace(done(run, issued, *new), registers=registers)
        case ops.TensorStore(address, values):
            item, offset = column(walker, run, address)
            new = []
            for i, operand in enumerate(values):
                value = joined_bytes((walker.operand(run, operand, B32), 0, COLUMN))
                event = placed(inside, item, offset + COLUMN * i, COLUMN)
                new.append(replace(event, kind="W", value=value, data=reads(value)))
            yield done(run, issued, *new)
        case ops.TensorCopy(dst, src, size):
            item, offset = column(walker, run, dst)
            for fork, found in matrices(walker, run, [src], size, shared):
                new = [event for _, event in found]
                content = joined_bytes(*(whole(walker, n + 1 + i, e) for i, e in enumerate(new)))
                columns = []
                for at in range(0, size, COLUMN):
                    value = joined_bytes((content, at, COLUMN))
                    event = placed(inside, item, offset + at, COLUMN)
                    columns.append(replace(event, kind="W", value=value, data=reads(value)))
                fence = replace(shared, kind="PF", fences="ASY", after="writes")
                yield done(fork, issued, *new, *columns, fence)
        case ops.TensorProduct(dst, a, b, descriptor, kind=kind):
            item, offset = column(walker, run, dst)
            _, bits = walker.operand(run, descriptor, B32)
            inside = replace(inside, product=(item.key, offset, kind, (bits >> 17) & 63, (bits >> 24) & 31))
            sources = [b] if isinstance(a, ops.Address) else [b, a]
            for fork, found in matrices(walker, run, sources, None, shared):
                new = [event for _, event in found]
                pieces = [whole(walker, n + 1 + i, e) for i, (k, e) in enumerate(found) if k == 0]
                value = joined_bytes((joined_bytes(*pieces), 0, COLUMN))
                if isinstance(a, ops.Address):
                    of, at = column(walker, run, a)
                    value = ("read", (walker.index, n + 1 + len(new)))
                    new.append(replace(placed(inside, of, at, COLUMN), kind="R"))
                write = replace(placed(inside, item, offset, COLUMN), kind="W", value=value, data=reads(value))
                fence = replace(shared, kind="PF", fences="ASY", after="writes")
                yield done(fork, issued, *new, write, fence)


def done(run: Run, *events: Event) -> Run:
    return replace(run, pc=run.pc + 1, events=(*run.events, *events))


def column(walker: Walker, run: Run, address: ops.Address) -> tuple[MemoryObject, int]:
    """The variable in tensor memory and the byte in it; the instruction names both."""
    assert isinstance(address.base, ops.Sym)
    return walker.test.objects[address.base.name], address.base.offset + address.offset


def whole(walker: Walker, number: int, event: Event) -> tuple[Expr, int, int]:
    assert event.cell is not None
    return ("read", (walker.index, number)), 0, event.cell[2]


Found = tuple[tuple[int, Event], ...]


def matrices(
    walker: Walker, run: Run, sources: list[ops.Operand], size: int | None, common: Event, found: Found = ()
) -> Iterator[tuple[Run, Found]]:
    """Reads of each matrix, of ``size`` bytes or to the end of its object."""
    k = len({k for k, _ in found})
    if k == len(sources):
        yield run, found
        return
    address = walker.operand(run, sources[k], B64)
    for fork, item, offset, _ in walker.at(run, address, size or 1, 16, "matrix"):
        new = tuple(
            (k, placed(replace(common, kind="R", addr=reads(address)), item, at, length))
            for at, length in walker.chunks.of(item.key, offset, size or item.size - offset)
        )
        yield from matrices(walker, fork, sources, size, common, (*found, *new))


# ---- relations -------------------------------------------------------------------------------------------------------


def of(x: Frame, *names: str) -> set[int]:
    """The asynchronous events of some instructions."""
    return {e for e in x.E - x.IW if not x.events[e].sync and x.events[e].fences in {f"tcgen05.{n}" for n in names}}


def waits(x: Frame) -> set[int]:
    """The waits after which what follows is ordered as after a fence (9.7.16.6.3, if read so)."""
    return x.MBW & x.ACQ if x.model != "sc" and x.readings["tcgen05-wait"] == "acquire" else set()


def order(x: Frame) -> None:
    """Add what orders the asynchronous operations of tcgen05 to the relations of a frame."""
    ev = x.events
    tensor = of(x, "ld", "st", "cp", "mma")
    matrix = {e for e in x.R if ev[e].fences == "tcgen05 matrix"}
    commits = of(x, "commit")

    def earlier(a: int, b: int) -> bool:
        return ev[a].thread == ev[b].thread and ev[a].step < ev[b].step

    x.issue = {(a, b) for a, b in x.issue if b not in tensor | matrix}
    x.issue |= {(f, e) for f in x.TCA for e in tensor | matrix if earlier(f, e)}
    resuming = waits(x)
    x.issue |= {(w, e) for w in resuming for e in tensor | matrix if earlier(w, e)}
    proxies = {f for f in x.PF if ev[f].sync and ev[f].fences == "ASY"}
    x.issue |= {(f, e) for f in proxies for e in matrix if earlier(f, e)}
    performed = of(x, "cp", "mma") | {
        e for e in x.E - x.IW if not ev[e].sync and any(ev[m].thread == ev[e].thread and ev[m].step == ev[e].step
                                                         for m in of(x, "cp", "mma"))
    }  # fmt: skip
    x.aord |= {(e, c) for e in performed for c in commits if earlier(e, c)}
    own = {w for w in x.AW if (ev[w].fences or "").startswith("tcgen05.")}
    tracked = {(e, w) for w in own for e in tensor if ev[e].fences == ev[w].fences and earlier(e, w)}
    x.acomp |= tracked
    later = performed | tensor | commits
    x.aord |= {(e, b) for e, w in tracked for b in later if earlier(w, b)}


def preserved(x: Frame, step: Pairs, obs: Pairs, met: Meeting) -> Pairs:
    """What is ordered for tensor memory only: by what threads hand over between fences, and by pipelines."""
    tensor = of(x, "ld", "st", "cp", "mma")
    if not tensor:
        return set()
    handed = {(w, r) for w, r in obs if w in x.STRONG and r in x.start}
    handed |= {(a, w) for a, w in met.cluphase if w in x.ACQ}
    arrivals = x.ms & met.mbphase
    before = {(f, e) for f, e in x.po if f in x.TCB}
    after = {(e, f) for e, f in x.po if f in x.TCA} | {(w, w) for w in waits(x)}
    sync = seq(before, handed | arrivals, after) | seq({(a, w) for a, w in arrivals if a in of(x, "commit")}, after)
    own = closure(step | sync)
    found = {(a, b) for a, b in seq(own, x.issue) if a in tensor and b in tensor}
    return (found | pipelines(x, own)) & x.vovl


def pipelines(x: Frame, handed: Pairs) -> Pairs:
    """Copies and products before a product, in one thread or where ``handed`` leads from a fence after the one to a
    fence before the other (9.7.16.6.2)."""
    ev, found = x.events, set()
    for a in of(x, "cp", "mma"):
        for b in of(x, "mma"):
            if "mma" in str(ev[a].fences) and ev[a].product != ev[b].product:
                continue
            same = ev[a].thread == ev[b].thread and ev[a].step < ev[b].step
            fences = {f for f in x.TCB if ev[f].thread == ev[a].thread and ev[f].step > ev[a].step}
            others = {f for f in x.TCA | waits(x) if ev[f].thread == ev[b].thread and ev[f].step < ev[b].step}
            if same or any(f in fences and g in others for f, g in handed):
                found.add((a, b))
    return found
