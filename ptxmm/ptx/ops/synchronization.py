"""Fences, barriers, mbarriers and grid control (PTX ISA 9.7.14.1 to .4, .13, .15)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal

from msgspec import Struct

from ptxmm.ptx.ops.basic import (
    CLUSTER,
    CTA,
    GLOBAL,
    PREDICATE,
    S64,
    TENSORMAP_BYTES,
    U32,
    Address,
    Guard,
    Operand,
    Reg,
    Rule,
    Scope,
    Source,
    Touch,
    Type,
    lies_in,
    mbarrier_touch,
)

RESTRICTED_SPACES: Mapping[str, str] = MappingProxyType({"release": "shared::cta", "acquire": "shared::cluster"})
"""The state space of ``.sync_restrict`` by memory order (9.7.13.4 of PTX ISA 9.0)."""


class Fence(Struct, frozen=True):
    """``fence.sem.scope`` or ``membar`` (= fence.sc, A19). ``sem``: sc, acq_rel; acquire, release since PTX 8.6.

    ``restrict``: the state space of ``.sync_restrict`` (PTX 8.6), or None.
    """

    opcode: ClassVar = "fence {sem} sync_restrict::{restrict} {scope}"
    roles: ClassVar = ""
    sem: str
    scope: Scope
    source: Source
    guard: Guard | None = None
    restrict: str | None = None


class ProxyFence(Struct, frozen=True):
    """``fence.proxy.KIND``: alias, async, or (dialect, nvlitmus) surface, texture, constant, generic.

    ``space``: the state space of ``fence.proxy.async`` (``global``, ``shared::cta``, ``shared::cluster``); None: all.
    """

    opcode: ClassVar = "fence.proxy {kind} {space}"
    roles: ClassVar = ""
    kind: str
    source: Source
    guard: Guard | None = None
    space: str | None = None


class TensormapFence(Struct, frozen=True):
    """``fence.proxy.tensormap::generic.release.scope`` or ``.acquire.scope [address], 128`` (9.7.14.4).

    ``sem``: release, acquire; ``address`` is None for a release.
    """

    opcode: ClassVar = "fence.proxy.tensormap::generic {sem} {scope}"
    sem: Literal["release", "acquire"]
    scope: Scope
    address: Address | None
    source: Source
    guard: Guard | None = None

    @property
    def roles(self) -> str:
        return "" if self.address is None else "[address] 128"

    @property
    def touches(self) -> tuple[Touch, ...]:
        if self.address is None:
            return ()
        rule = Rule(None, GLOBAL, "9.7.14.4")
        return (Touch(self.address, TENSORMAP_BYTES, 16, rule, "tensor map", "tensor map", "scalar"),)


class GenericToAsyncFence(Struct, frozen=True):
    """``fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster`` or ``.acquire.sync_restrict::shared::
    cluster.cluster`` (PTX 8.6): one way from the generic to the async proxy, for objects in that state space."""

    opcode: ClassVar = "fence.proxy.async::generic {sem} sync_restrict::{restrict} cluster"
    roles: ClassVar = ""
    sem: Literal["release", "acquire"]
    source: Source
    guard: Guard | None = None

    @property
    def restrict(self) -> str:
        """The state space of ``.sync_restrict``."""
        return RESTRICTED_SPACES[self.sem]


class MbarrierInitFence(Struct, frozen=True):
    """``fence.mbarrier_init.release.cluster`` (9.7.14.4)."""

    opcode: ClassVar = "fence.mbarrier_init.release.cluster"
    roles: ClassVar = ""
    source: Source
    guard: Guard | None = None


class Barrier(Struct, frozen=True):
    """``bar/barrier.sync`` and ``.arrive`` (``kind``).

    Typed PTX: ``barrier`` is the id 0..15, ``count`` the number of threads (a multiple of 32) or None for all;
    ``instance`` is None. Untyped dialect (A27): ``instance`` is the constant I, ``barrier`` is B
    (default I), ``count`` is the quorum Q or None. ``aligned``: all threads of the warp execute it together.
    """

    opcode: ClassVar = "barrier.cta {kind} {aligned}"
    roles: ClassVar = "barrier:number count:number"
    kind: Literal["sync", "arrive"]
    barrier: Operand
    count: Operand | None
    instance: int | None
    source: Source
    guard: Guard | None = None
    aligned: bool = False

    @property
    def number(self) -> Type:
        """The type of the operands."""
        return U32 if self.instance is None else S64


class BarrierReduction(Struct, frozen=True):
    """``bar/barrier.red.OP`` (9.7.14.1): as ``Barrier`` of kind sync, and ``dst`` gets the reduction of ``predicate``
    over the threads of the phase. ``op``: popc, and, or."""

    opcode: ClassVar = "barrier.cta.red {op} {aligned} {result}"
    roles: ClassVar = "=dst:result barrier:u32 count:u32 predicate:pred!negated"
    op: Literal["popc", "and", "or"]
    dst: Reg
    barrier: Operand
    count: Operand | None
    predicate: Reg
    negated: bool
    source: Source
    guard: Guard | None = None
    aligned: bool = False

    @property
    def result(self) -> Type:
        """The type of ``dst``."""
        return U32 if self.op == "popc" else PREDICATE


class WarpBarrier(Struct, frozen=True):
    """``bar.warp.sync mask`` (9.7.14.2): a barrier of the lanes in ``mask``."""

    opcode: ClassVar = "bar.warp.sync"
    roles: ClassVar = "mask:u32"
    mask: Operand
    source: Source
    guard: Guard | None = None


class ClusterBarrier(Struct, frozen=True):
    """``barrier.cluster.arrive`` (``sem``: release, relaxed) or ``.wait`` (``sem``: acquire) (9.7.14.3)."""

    opcode: ClassVar = "barrier.cluster {kind} {sem} {aligned}"
    roles: ClassVar = ""
    kind: Literal["arrive", "wait"]
    sem: Literal["release", "relaxed", "acquire"]
    source: Source
    guard: Guard | None = None
    aligned: bool = False


class MbarrierInit(Struct, frozen=True):
    """``mbarrier.init [address], count`` (9.7.14.15.9); ``count`` None: ``mbarrier.inval``."""

    roles: ClassVar = "[address] count:u32"
    address: Address
    count: Operand | None
    source: Source
    guard: Guard | None = None
    space: str | None = None

    @property
    def opcode(self) -> str:
        return f"mbarrier {'inval' if self.count is None else 'init'} {{space}} b64"

    @property
    def touches(self) -> tuple[Touch, ...]:
        section = "9.7.14.15.10" if self.count is None else "9.7.14.15.9"
        return (mbarrier_touch(self.address, Rule(self.space, CTA, section, writes=True)),)


class MbarrierArrive(Struct, frozen=True):
    """``mbarrier.arrive`` and ``arrive_drop`` (``drop``) (9.7.14.15.13, .14).

    ``count``: how many arrivals (None: 1). ``expect``: the bytes of ``.expect_tx``, expected before the arrival, or
    None. ``dst`` None: ``_`` or none. ``sem``: release; relaxed since PTX 8.6.
    """

    roles: ClassVar = "=dst:b64 [address] count:u32 expect:u32"
    dst: Reg | None
    address: Address
    count: Operand | None
    expect: Operand | None
    sem: Literal["release", "relaxed"]
    scope: Scope
    drop: bool
    no_complete: bool
    space: str | None
    source: Source
    guard: Guard | None = None

    @property
    def opcode(self) -> str:
        arrival = "expect_tx" if self.expect is not None else "noComplete" if self.no_complete else ""
        return f"mbarrier.arrive{'_drop' if self.drop else ''} {arrival} {{sem}} {{scope}} {{space}} b64"

    @property
    def touches(self) -> tuple[Touch, ...]:
        spaces = CTA if self.dst is not None or self.no_complete else lies_in(self.space, CLUSTER)
        rule = Rule(self.space, spaces, "9.7.14.15.14" if self.drop else "9.7.14.15.13", writes=True)
        return (mbarrier_touch(self.address, rule, self.space or "shared::cta"),)


class MbarrierTx(Struct, frozen=True):
    """``mbarrier.expect_tx`` and ``.complete_tx`` (9.7.14.15.11, .12): ``amount`` bytes; always relaxed."""

    opcode: ClassVar = "mbarrier {kind} relaxed {scope} {space} b64"
    roles: ClassVar = "[address] amount:u32"
    kind: Literal["expect_tx", "complete_tx"]
    address: Address
    amount: Operand
    scope: Scope
    space: str | None
    source: Source
    guard: Guard | None = None

    @property
    def touches(self) -> tuple[Touch, ...]:
        section = "9.7.14.15.11" if self.kind == "expect_tx" else "9.7.14.15.12"
        rule = Rule(self.space, lies_in(self.space, CLUSTER), section, writes=True)
        return (mbarrier_touch(self.address, rule, self.space or "shared::cta"),)


class MbarrierWait(Struct, frozen=True):
    """``mbarrier.test_wait`` and ``try_wait`` (9.7.14.15.16): ``dst`` tells whether the phase is complete.

    The phase is that of the state ``state``, or given by ``parity`` (0 or 1); one of them is None. ``sem``: acquire;
    relaxed since PTX 8.6.
    """

    roles: ClassVar = "=dst:pred [address] state:b64 parity:u32"
    kind: Literal["test_wait", "try_wait"]
    dst: Reg
    address: Address
    state: Operand | None
    parity: Operand | None
    sem: Literal["acquire", "relaxed"]
    scope: Scope
    source: Source
    guard: Guard | None = None
    space: str | None = None

    @property
    def opcode(self) -> str:
        return f"mbarrier {{kind}} {'' if self.parity is None else 'parity'} {{sem}} {{scope}} {{space}} b64"

    @property
    def touches(self) -> tuple[Touch, ...]:
        return (mbarrier_touch(self.address, Rule(self.space, CTA, "9.7.14.15.16")),)


class PendingCount(Struct, frozen=True):
    """``mbarrier.pending_count`` (9.7.14.15.17): the pending count in the opaque ``state``."""

    opcode: ClassVar = "mbarrier.pending_count.b64"
    roles: ClassVar = "=dst:u32 state:b64"
    dst: Reg
    state: Operand
    source: Source
    guard: Guard | None = None


class GridControl(Struct, frozen=True):
    """``griddepcontrol.wait`` and ``.launch_dependents`` (9.7.14.13)."""

    opcode: ClassVar = "griddepcontrol {kind}"
    roles: ClassVar = ""
    kind: Literal["wait", "launch_dependents"]
    source: Source
    guard: Guard | None = None

    def triggers(self, isa: tuple[int, int]) -> bool:
        """Whether fences before it synchronize with the start of the dependent grid (since PTX 9.2)."""
        return self.kind == "launch_dependents" and isa >= (9, 2)


class SetMaxRegisters(Struct, frozen=True):
    """``setmaxnreg.inc`` and ``.dec`` (9.7.19.5): nothing to memory, but the threads of a warp execute it together.

    ``count``: how many registers each thread of the warp may have.
    """

    opcode: ClassVar = "setmaxnreg {kind} sync.aligned.u32"
    roles: ClassVar = "#count"
    kind: Literal["inc", "dec"]
    count: int
    source: Source
    guard: Guard | None = None


MbarrierOp = MbarrierInit | MbarrierArrive | MbarrierTx | MbarrierWait
FenceOp = Fence | ProxyFence | GenericToAsyncFence | MbarrierInitFence
BarrierOp = Barrier | BarrierReduction | WarpBarrier | ClusterBarrier
