"""The sets that an event belongs to by its instruction alone (PTX ISA 8.4 Table 19, 8.5, 8.6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from ptxmm.events.symbolic.event import Event
from ptxmm.events.symbolic.relations.scopes import scope_of
from ptxmm.program.identity import TENSORMAP
from ptxmm.program.test import Test
from ptxmm.ptx.ops import (
    Address,
    Addressless,
    AsyncStore,
    Atomic,
    BulkCopy,
    ClusterBarrier,
    CopyAsync,
    CopyAsyncArrive,
    Discard,
    Fence,
    GenericToAsyncFence,
    Load,
    MatrixAccess,
    MbarrierArrive,
    MbarrierInitFence,
    MbarrierOp,
    MbarrierTx,
    MbarrierWait,
    Multimem,
    ProxyFence,
    Store,
    StoreBulk,
    TensorCommit,
    TensorCopy,
    TensorFence,
    TensorLoad,
    TensormapCopyFence,
    TensormapFence,
    TensormapReplace,
    TensorProduct,
    TensorStore,
    Wgmma,
    WholeOnly,
    WmmaAccess,
)

PROXIES = {"generic": "GEN", "surface": "SUR", "texture": "TEX", "constant": "CON"}
FENCES = {"sc": ("FSC", "SC"), "acq_rel": ("FAR", "ACQ_REL"), "acquire": ("FA",), "release": ("FL",)}

TAGS = (
    "R", "W", "M", "IW", "F", "FSC", "FAR", "FA", "FL", "FRR", "FRA", "ASREL", "ASACQ", "TEN", "TCC", "TCM", "TCB",
    "TCA", "TCX", "PF", "PFR", "AF", "BA", "BW", "B", "CA", "CW", "MBA", "MBW", "MBI", "FMBI", "TMREL", "TMACQ",
    "ISS", "AW", "API", "EX", "STRONG", "REL", "ACQ", "NORET", "AMO", "GEN", "ASY", "STA", "TMP", "SUR", "TEX", "CON",
    "RLX", "ACQ_REL", "SC", "WEAK", "VOL", "MMIO", "ALIAS", "CTA", "CLUSTER", "GPU", "SYS", "HOST",
)  # fmt: skip


def tags_of(test: Test, event: Event) -> Iterable[str]:
    """The names of the sets that ``event`` is in (8.4, Table 19)."""
    if test.threads[event.thread].placement.host:
        yield "HOST"
    scope = scope_of(event)
    if scope is not None:
        yield "STRONG"
        yield scope.upper()
    match event.kind:
        case "R" | "W":
            yield from (event.kind, "M", *_access(event, scope))
        case "F" if isinstance(event.op, TensorFence):
            yield from ("F", "TCB" if event.op.kind == "before" else "TCA")
        case "F":
            yield from ("F", "GEN", *_fence(event))
        case "AF":
            yield from ("F", "AF", "ALIAS")
        case "PF":
            yield from ("F", "PF", *_proxy_fence(event))
        case "BA" | "BW":
            yield from (event.kind, "B")
        case "CA" | "CW" | "MBA" | "MBW" | "MBI":
            yield from (event.kind, "GEN", *_synchronizes(event))
        case "MBP" | "MBV":
            return  # operations on an mbarrier that order nothing: in ``MBX`` only
        case "GD":
            return  # griddepcontrol.launch_dependents, which ``trigger`` relates
        case "ISS" | "AW" | "API" | "EX":
            yield event.kind
        case _:
            raise AssertionError(event.kind)


def _fence(event: Event) -> Iterable[str]:
    op = event.op
    if isinstance(op, Fence):
        return FENCES[op.sem] if op.restrict is None else ({"release": "FRR", "acquire": "FRA"}[op.sem],)
    if isinstance(op, GenericToAsyncFence):
        return ({"release": "ASREL", "acquire": "ASACQ"}[op.sem],)
    if isinstance(op, MbarrierInitFence):
        return ("FMBI",)
    if isinstance(op, TensormapFence):
        return ("TMACQ",) if op.sem == "acquire" else ("TMREL",)
    assert isinstance(op, TensormapCopyFence)
    return ("TMREL",)


def _proxy_fence(event: Event) -> Iterable[str]:
    """The proxy of an explicit fence; the implicit ones of a copy are told by what they fence."""
    op = event.op
    if not isinstance(op, ProxyFence):
        return ("PFR",) if event.id.operand == 0 else ()
    return () if op.kind == "async" else (PROXIES[op.kind],)


def _synchronizes(event: Event) -> Iterable[str]:
    op = event.op
    if isinstance(op, ClusterBarrier | MbarrierArrive | MbarrierWait):
        releases, acquires = op.sem == "release", op.sem == "acquire"
        return (*(("REL",) if releases else ()), *(("ACQ",) if acquires else ()))
    if isinstance(op, TensorCommit):
        return ("REL", "TCX")
    return ("REL",) if event.kind == "MBA" and not isinstance(op, MbarrierTx) else ()


def _access(event: Event, scope: str | None) -> Iterable[str]:
    op = event.op
    if isinstance(op, Load | Store | Atomic):
        yield PROXIES[op.proxy]
        yield from _order(event, op)
        return
    if isinstance(op, Multimem):
        yield from ("GEN", *_multimem(event, op))
        return
    if isinstance(op, TensorLoad | TensorStore | TensorCopy | TensorProduct):
        yield from ("GEN", "TEN") if in_tensor_memory(event) else ("ASY",)
        if in_tensor_memory(event) and isinstance(op, TensorCopy | TensorProduct):
            yield "TCC" if isinstance(op, TensorCopy) else "TCM"
    elif isinstance(op, BulkCopy | Wgmma):
        yield "TMP" if event.id.operand == TENSORMAP else "ASY"
    elif isinstance(op, AsyncStore):
        yield from ("GEN", "STA")
    elif isinstance(
        op, StoreBulk | Discard | CopyAsync | TensormapReplace | TensormapCopyFence | MatrixAccess | WmmaAccess
    ):
        yield "GEN"
    elif isinstance(op, Addressless | MbarrierOp | CopyAsyncArrive | TensormapFence | TensorCommit | WholeOnly):
        raise AssertionError(f"{op} has no access")
    else:
        assert_never(op)
    if scope is None:
        yield "WEAK"
        return
    yield from ("AMO", "RLX")
    if event.kind == "R":
        yield "NORET"


def _multimem(event: Event, op: Multimem) -> Iterable[str]:
    """A read of ``multimem.red`` returns nothing; it carries the order of the operation as that of ``red`` does."""
    yield {"weak": "WEAK", "relaxed": "RLX", "acquire": "ACQ", "release": "REL"}[op.sem]
    if op.kind == "red":
        yield "AMO"
        if event.kind == "R":
            yield from ("NORET", "RLX")


def in_tensor_memory(event: Event) -> bool:
    """Whether an access of tcgen05 is to tensor memory, not to a matrix in shared memory."""
    op = event.op
    if event.kind == "W" or isinstance(op, TensorLoad):
        return isinstance(op, TensorLoad | TensorStore | TensorCopy | TensorProduct)
    return isinstance(op, TensorProduct) and isinstance(op.a, Address) and event.id.operand == 1


def _order(event: Event, op: Load | Store | Atomic) -> Iterable[str]:
    if isinstance(op, Atomic):
        yield "AMO"
        if event.kind == "R" and not op.returns:
            yield "NORET"
        releases, acquires = op.sem in ("release", "acq_rel"), op.sem in ("acquire", "acq_rel")
        if releases:
            yield "REL"
        if acquires and event.kind == "R":
            yield "ACQ"
        if not (acquires if event.kind == "R" else releases):
            yield "RLX"
        return
    if op.volatile:
        yield "VOL"
    if op.mmio:
        yield "MMIO"
    yield {"weak": "WEAK", "relaxed": "RLX", "acquire": "ACQ", "release": "REL"}[op.sem]
