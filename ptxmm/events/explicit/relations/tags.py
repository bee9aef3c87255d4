"""The base sets that an event is in (PTX ISA 8.4, 8.6; docs/cat.md)."""

from __future__ import annotations

from typing import assert_never

from ptxmm.events.explicit.trace import Event
from ptxmm.program.identity import TENSORMAP
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

SETS = (
    "R", "W", "M", "F", "IW", "B", "BA", "BW", "GEN", "SUR", "TEX", "CON", "ALIAS", "PF", "AF", "FSC", "FAR", "SC",
    "ACQ_REL", "STRONG", "REL", "ACQ", "RLX", "WEAK", "AMO", "NORET", "CTA", "CLUSTER", "GPU", "SYS", "HOST",
    "ASY", "TMP", "CA", "CW", "MBA", "MBW", "MBI", "MBX", "FMBI", "TMREL", "TMACQ", "ISS", "VOL", "MMIO", "FA",
    "FL", "STA", "AW", "API", "EX", "PFR", "FRR", "FRA", "ASREL", "ASACQ", "TEN", "TCC", "TCM", "TCB", "TCA", "TCX",
)  # fmt: skip

_PROXY = {"generic": "GEN", "surface": "SUR", "texture": "TEX", "constant": "CON"}
_FENCES = {
    "sc": ("FSC", "SC"),
    "acq_rel": ("FAR", "ACQ_REL"),
    "acquire": ("FA",),
    "release": ("FL",),
}
_RESTRICTED = {"acquire": ("FRA",), "release": ("FRR",)}

OPAQUE = ("MBP", "MBV", "GD")
"""Operations on mbarriers that order nothing: waits that return false, and invalidations. They are in ``MBX`` alone.
And ``griddepcontrol.launch_dependents``, which is in no set."""


def scope_of(event: Event) -> str | None:
    """The scope of an event, None if it has none (weak operations, barriers, proxy fences)."""
    op = event.op
    if event.kind in OPAQUE:
        return None
    if isinstance(op, Load | Store | Atomic | Multimem | Fence | MbarrierTx | MbarrierArrive | MbarrierWait):
        return op.scope
    if isinstance(op, TensormapFence):
        return op.scope
    if isinstance(op, TensormapCopyFence):
        return op.scope if event.kind == "F" else None
    if isinstance(op, ClusterBarrier | MbarrierInitFence | GenericToAsyncFence):
        return "cluster"
    if event.kind == "MBA":
        return "cta" if isinstance(op, CopyAsyncArrive) else "cluster"
    if event.cell is not None and isinstance(op, BulkCopy) and _reduces(event):
        return "gpu"
    if event.cell is not None and isinstance(op, AsyncStore) and op.reduction is not None:
        return "cluster"
    return None


def _reduces(event: Event) -> bool:
    """Whether ``event`` is half of an element of a bulk reduction: an access of its destination."""
    op = event.op
    return isinstance(op, BulkCopy) and op.reduction is not None and 0 < event.id.operand < TENSORMAP


def tags(event: Event) -> tuple[str, ...]:
    """The names of the sets that ``event`` is in; ``HOST`` and ``MBX`` depend on the test."""
    scope = scope_of(event)
    own = _own(event)
    return own if scope is None else (*own, scope.upper())


def _own(event: Event) -> tuple[str, ...]:
    kind, op = event.kind, event.op
    if kind in OPAQUE:
        return ()
    if kind in ("BA", "BW"):
        return (kind, "B")
    if kind in ("ISS", "AW", "API", "EX"):
        return (kind,)
    if kind == "PF":
        return ("F", "PF", "PFR") if event.id.operand == 0 else ("F", "PF")
    if kind == "MBI":
        return ("MBI", "GEN")
    if op is None:
        return ("W", "M", "IW")
    if isinstance(op, TensorFence):
        return ("F", "TCB" if op.kind == "before" else "TCA")
    if kind == "F":
        return _fence(event)
    if kind in ("R", "W"):
        return _access(event)
    return _synchronization(event)


def _fence(event: Event) -> tuple[str, ...]:
    op = event.op
    if isinstance(op, Fence):
        return ("F", "GEN", "STRONG", *(_FENCES if op.restrict is None else _RESTRICTED)[op.sem])
    if isinstance(op, GenericToAsyncFence):
        return ("F", "GEN", "STRONG", "ASREL" if op.sem == "release" else "ASACQ")
    if isinstance(op, TensormapFence | TensormapCopyFence):
        acquires = isinstance(op, TensormapFence) and op.sem == "acquire"
        return ("F", "GEN", "STRONG", "TMACQ" if acquires else "TMREL")
    if isinstance(op, MbarrierInitFence):
        return ("F", "GEN", "STRONG", "FMBI")
    assert isinstance(op, ProxyFence)
    if op.kind == "alias":
        return ("F", "AF", "ALIAS")
    return ("F", "PF", _PROXY[op.kind]) if op.kind in ("surface", "texture", "constant") else ("F", "PF")


def _access(event: Event) -> tuple[str, ...]:
    kind, op = event.kind, event.op
    if isinstance(op, Load | Store):
        return _load_or_store(kind, op)
    if isinstance(op, Atomic):
        return (kind, "M", _PROXY[op.proxy], "STRONG", "AMO", *_atomic_order(kind, op))
    if isinstance(op, Multimem):
        return (kind, "M", "GEN", *_multimem(kind, op))
    if isinstance(op, TensorLoad | TensorStore | TensorCopy | TensorProduct):
        return (kind, "M", *_tensor(event), "WEAK")
    if isinstance(op, BulkCopy):
        if event.id.operand == TENSORMAP:
            return (kind, "M", "TMP", "WEAK")
        return (kind, "M", "ASY", *(_reduction(kind) if _reduces(event) else ("WEAK",)))
    if isinstance(op, Wgmma):
        return (kind, "M", "ASY", "WEAK")
    if isinstance(op, AsyncStore):
        return (kind, "M", "GEN", "STA", *(_reduction(kind) if op.reduction is not None else ("WEAK",)))
    if isinstance(
        op, StoreBulk | Discard | CopyAsync | TensormapReplace | TensormapCopyFence | MatrixAccess | WmmaAccess
    ):
        return (kind, "M", "GEN", "WEAK")
    if isinstance(op, Addressless | MbarrierOp | CopyAsyncArrive | TensormapFence | TensorCommit | WholeOnly | None):
        raise AssertionError(f"{op} has no access")
    assert_never(op)


def _tensor(event: Event) -> tuple[str, ...]:
    """Whether an access is to tensor memory, and of which instruction, or to shared memory in the async proxy."""
    op = event.op
    if isinstance(op, TensorCopy):
        return ("GEN", "TEN", "TCC") if event.kind == "W" else ("ASY",)
    if isinstance(op, TensorProduct):
        inside = event.kind == "W" or (isinstance(op.a, Address) and event.id.operand == 1)
        return ("GEN", "TEN", "TCM") if inside else ("ASY",)
    return ("GEN", "TEN")


def _reduction(kind: str) -> tuple[str, ...]:
    return ("STRONG", "RLX", "AMO", "NORET") if kind == "R" else ("STRONG", "RLX", "AMO")


def _load_or_store(kind: str, op: Load | Store) -> tuple[str, ...]:
    found = (kind, "M", _PROXY[op.proxy])
    if op.scope is None:
        return (*found, "WEAK")
    order = {"acquire": "ACQ", "release": "REL"}.get(op.sem, "RLX")
    return (*found, "STRONG", order, *("VOL",) * op.volatile, *("MMIO",) * op.mmio)


def _multimem(kind: str, op: Multimem) -> tuple[str, ...]:
    """Loads and stores are as ``ld`` and ``st``, reductions as ``red``."""
    if op.scope is None:
        return ("WEAK",)
    order = {"acquire": "ACQ", "release": "REL"}.get(op.sem, "RLX")
    if op.kind != "red":
        return ("STRONG", order)
    orders = ("REL", "RLX") if order == "REL" and kind == "R" else (order,)
    return ("STRONG", "AMO", *orders, *("NORET",) * (kind == "R"))


def _atomic_order(kind: str, op: Atomic) -> tuple[str, ...]:
    """A read acquires, a write releases; the read of a release also heads a release pattern (A14)."""
    acquires = kind == "R" and op.sem in ("acquire", "acq_rel")
    releases = op.sem in ("release", "acq_rel")
    relaxed = not acquires and not (releases and kind == "W") and op.sem != "acq_rel"
    unreturned = kind == "R" and not op.returns
    return ("ACQ",) * acquires + ("REL",) * releases + ("RLX",) * relaxed + ("NORET",) * unreturned


def _synchronization(event: Event) -> tuple[str, ...]:
    """Events of cluster barriers and mbarriers."""
    kind, op = event.kind, event.op
    found = (kind, "GEN", "STRONG")
    if isinstance(op, ClusterBarrier | MbarrierArrive | MbarrierWait):
        order = {"release": ("REL",), "acquire": ("ACQ",)}.get(op.sem, ())
        return (*found, *order)
    # An asynchronous completion releases; expect_tx and complete_tx of a thread are relaxed.
    if isinstance(op, TensorCommit):
        return (*found, "REL", "TCX")
    return found if isinstance(op, MbarrierTx) else (*found, "REL")
