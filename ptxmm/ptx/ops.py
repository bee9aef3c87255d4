"""Resolved instructions: what an instruction of PTX (or of the untyped dialect) does, every default filled in.

``ptxmm.ptx.isa`` makes these from the parsed text; both event layers read nothing else of an instruction.
Sources: PTX ISA 8.5 chapter 9, semantics table section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ptxmm.errors import Span


@dataclass(frozen=True, slots=True)
class Type:
    """A fundamental type of PTX 5.2: ``kind`` is one of ``b u s f bf pred``, ``bits`` its width (1 for predicates).

    ``bf16`` has kind ``bf``. Values of ``f`` and ``bf`` types are their bit patterns.
    """

    kind: str
    bits: int

    @property
    def name(self) -> str:
        """The spelling in PTX, without the dot."""
        return "pred" if self.kind == "pred" else f"{self.kind}{self.bits}"

    @property
    def bytes(self) -> int:
        """The size in bytes."""
        return self.bits // 8

    @property
    def signed(self) -> bool:
        """Whether values are ordered and printed as signed integers."""
        return self.kind == "s"


@dataclass(frozen=True, slots=True)
class Reg:
    """A register, by its name without ``%``."""

    name: str


@dataclass(frozen=True, slots=True)
class Imm:
    """An integer constant as written (may be negative; an operation takes it modulo 2**width)."""

    value: int


@dataclass(frozen=True, slots=True)
class Sym:
    """The address of a variable plus a constant byte offset; ``name`` is the key of a ``MemoryObject`` of the test."""

    name: str
    offset: int = 0


Operand = Reg | Imm | Sym


@dataclass(frozen=True, slots=True)
class Address:
    """The operand ``[base+offset]`` of a memory instruction; ``offset`` in bytes."""

    base: Operand
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Guard:
    """The guard predicate ``@p`` or ``@!p``."""

    register: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Where an instruction stands in the input and its text there."""

    span: Span
    text: str


Scope = Literal["cta", "cluster", "gpu", "sys"]
Proxy = Literal["generic", "surface", "texture", "constant"]


@dataclass(frozen=True, slots=True)
class Load:
    """``ld`` (and the dialect's ``tld suld cold``). ``sem``: weak, relaxed, acquire; ``scope`` is None iff weak.

    ``dst`` has a register for each element (``.v2 .v4 .v8``; one for a scalar), None for ``_``; ``type`` is that of an
    element. ``.volatile`` is relaxed.sys with ``volatile`` set (A23), ``.mmio`` relaxed.sys with ``mmio`` set (A24).
    ``nc``: ``ld.global.nc`` or ``ldu``, which the memory model does not cover (A41).
    """

    dst: tuple[Reg | None, ...]
    address: Address
    type: Type
    sem: str
    scope: Scope | None
    space: str | None
    source: Source
    guard: Guard | None = None
    proxy: Proxy = "generic"
    volatile: bool = False
    mmio: bool = False
    nc: bool = False


@dataclass(frozen=True, slots=True)
class Store:
    """``st`` (and the dialect's ``sust``). ``sem``: weak, relaxed, release; ``values``: one for each element; the rest
    as in ``Load``."""

    address: Address
    values: tuple[Operand, ...]
    type: Type
    sem: str
    scope: Scope | None
    space: str | None
    source: Source
    guard: Guard | None = None
    proxy: Proxy = "generic"
    volatile: bool = False
    mmio: bool = False


@dataclass(frozen=True, slots=True)
class Atomic:
    """``atom`` (``returns`` true) or ``red`` (``returns`` false, ``dst`` empty).

    ``op``: add sub inc dec and or xor min max exch cas. ``operands``: for each register element (one for a scalar) its
    operands: (value,), for cas (compare, new). ``dst``: a register, or None for ``_``, for each of them. ``type``: that
    of one atomic access, a scalar; ``packed``: how many of those one register holds (2 for ``f16x2`` and ``bf16x2``).
    ``sem``: relaxed, acquire, release, acq_rel. The proxy is ``surface`` for the dialect's ``suatom``/``sured``.
    """

    dst: tuple[Reg | None, ...]
    op: str
    address: Address
    operands: tuple[tuple[Operand, ...], ...]
    type: Type
    sem: str
    scope: Scope
    space: str | None
    returns: bool
    source: Source
    guard: Guard | None = None
    proxy: Proxy = "generic"
    packed: int = 1


@dataclass(frozen=True, slots=True)
class Element:
    """One scalar access of a memory instruction (PTX ISA 8.2.3, 8.2.4; semantics A13).

    ``offset``: bytes from the address of the instruction; ``type``: of the access; ``item``: which register of the
    vector it belongs to; ``shift``: its lowest bit in that register.
    """

    offset: int
    type: Type
    item: int
    shift: int


def elements(op: Load | Store | Atomic, split: bool = False) -> tuple[Element, ...]:
    """The scalar accesses of ``op``, in ascending order of address.

    ``split``: a 16-byte scalar is two accesses of 8 bytes (reading ``b128=split``).
    """
    packed = op.packed if isinstance(op, Atomic) else 1
    type_ = op.type
    if split and type_.bits == 128:
        packed, type_ = 2, Type("b", 64)
    count = len(op.operands) if isinstance(op, Atomic) else len(op.values) if isinstance(op, Store) else len(op.dst)
    return tuple(
        Element((item * packed + part) * type_.bytes, type_, item, part * type_.bits)
        for item in range(count)
        for part in range(packed)
    )


def access_bytes(op: Load | Store | Atomic) -> int:
    """The number of bytes that all scalar accesses of ``op`` take."""
    last = elements(op)[-1]
    return last.offset + last.type.bytes


@dataclass(frozen=True, slots=True)
class Fence:
    """``fence.sem.scope`` or ``membar`` (= fence.sc, A19). ``sem``: sc, acq_rel; acquire, release since PTX 8.6.

    ``restrict``: the state space of ``.sync_restrict`` (PTX 8.6), or None.
    """

    sem: str
    scope: Scope
    source: Source
    guard: Guard | None = None
    restrict: str | None = None


@dataclass(frozen=True, slots=True)
class ProxyFence:
    """``fence.proxy.KIND``: alias, async, or (dialect, nvlitmus) surface, texture, constant, generic.

    ``space``: the state space of ``fence.proxy.async`` (``global``, ``shared::cta``, ``shared::cluster``); None: all.
    """

    kind: str
    source: Source
    guard: Guard | None = None
    space: str | None = None


@dataclass(frozen=True, slots=True)
class TensormapFence:
    """``fence.proxy.tensormap::generic.release.scope`` or ``.acquire.scope [address], 128`` (9.7.14.4).

    ``sem``: release, acquire; ``address`` is None for a release.
    """

    sem: Literal["release", "acquire"]
    scope: Scope
    address: Address | None
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class MbarrierInitFence:
    """``fence.mbarrier_init.release.cluster`` (9.7.14.4)."""

    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Barrier:
    """``bar/barrier.sync`` and ``.arrive`` (``kind``).

    Typed PTX: ``barrier`` is the id 0..15, ``count`` the number of threads (a multiple of 32) or None for all;
    ``instance`` is None. Untyped dialect (semantics 1.7): ``instance`` is the constant I, ``barrier`` is B
    (default I), ``count`` is the quorum Q or None.
    """

    kind: Literal["sync", "arrive"]
    barrier: Operand
    count: Operand | None
    instance: int | None
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class BarrierReduction:
    """``bar/barrier.red.OP`` (9.7.14.1): as ``Barrier`` of kind sync, and ``dst`` gets the reduction of ``predicate``
    over the threads of the phase. ``op``: popc, and, or."""

    op: Literal["popc", "and", "or"]
    dst: Reg
    barrier: Operand
    count: Operand | None
    predicate: Reg
    negated: bool
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class WarpBarrier:
    """``bar.warp.sync mask`` (9.7.14.2): a barrier of the lanes in ``mask``."""

    mask: Operand
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class ClusterBarrier:
    """``barrier.cluster.arrive`` (``sem``: release, relaxed) or ``.wait`` (``sem``: acquire) (9.7.14.3)."""

    kind: Literal["arrive", "wait"]
    sem: Literal["release", "relaxed", "acquire"]
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class MbarrierInit:
    """``mbarrier.init [address], count`` (9.7.14.15.9); ``count`` None: ``mbarrier.inval``."""

    address: Address
    count: Operand | None
    source: Source
    guard: Guard | None = None
    space: str | None = None


@dataclass(frozen=True, slots=True)
class MbarrierArrive:
    """``mbarrier.arrive`` and ``arrive_drop`` (``drop``) (9.7.14.15.13, .14).

    ``count``: how many arrivals (None: 1). ``expect``: the bytes of ``.expect_tx``, expected before the arrival, or
    None. ``dst`` None: ``_`` or none. ``sem``: release; relaxed since PTX 8.6.
    """

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


@dataclass(frozen=True, slots=True)
class MbarrierTx:
    """``mbarrier.expect_tx`` and ``.complete_tx`` (9.7.14.15.11, .12): ``amount`` bytes; always relaxed."""

    kind: Literal["expect_tx", "complete_tx"]
    address: Address
    amount: Operand
    scope: Scope
    space: str | None
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class MbarrierWait:
    """``mbarrier.test_wait`` and ``try_wait`` (9.7.14.15.16): ``dst`` tells whether the phase is complete.

    The phase is that of the state ``state``, or given by ``parity`` (0 or 1); one of them is None. ``sem``: acquire;
    relaxed since PTX 8.6.
    """

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


@dataclass(frozen=True, slots=True)
class PendingCount:
    """``mbarrier.pending_count`` (9.7.14.15.17): the pending count in the opaque ``state``."""

    dst: Reg
    state: Operand
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class CopyAsync:
    """``cp.async`` (9.7.10.24.3), non-bulk: ``size`` bytes (4, 8, 16) from global to shared memory of the CTA.

    ``source_size``: only so many bytes are read, the rest written as zeros (None: all); ``ignore``: a predicate under
    which nothing is read and zeros are written, or None; ``ignore_negated``.
    """

    dst: Address
    src: Address
    size: int
    source_size: Operand | None
    ignore: Reg | None
    ignore_negated: bool
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class CopyAsyncArrive:
    """``cp.async.mbarrier.arrive{.noinc}`` (9.7.14.15.15): arrives once all earlier cp.async of the thread are done.

    Without ``noinc`` the pending count is incremented by 1 when it is executed.
    """

    address: Address
    noinc: bool
    source: Source
    guard: Guard | None = None
    space: str | None = None


@dataclass(frozen=True, slots=True)
class AsyncCommit:
    """``commit_group`` of the given kind of asynchronous operation: a new group of those not yet in one."""

    kind: Literal["cp.async", "bulk", "wgmma"]
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class AsyncWait:
    """``wait_group`` and ``wait_all``: until at most ``pending`` of the latest groups are not complete.

    ``pending`` None: ``cp.async.wait_all``, which waits for operations without a group too. ``read``: only until the
    sources have been read (``cp.async.bulk.wait_group.read``).
    """

    kind: Literal["cp.async", "bulk", "wgmma"]
    pending: int | None
    read: bool
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class BulkCopy:
    """``cp.async.bulk``, ``cp.reduce.async.bulk`` and their ``.tensor`` forms (9.7.10.24.6 to .10).

    ``dst_space``, ``src_space``: ``global``, ``shared::cta``, ``shared::cluster``. ``size``: bytes; None for a tensor
    copy: the box of the tensor map. ``mbarrier``: where ``complete_tx::bytes`` goes, or None: it joins a bulk group.
    ``mask``: the CTAs of the cluster of ``.multicast::cluster`` (dst and mbarrier at the same offsets in each), or
    None. ``reduction``: the operation of ``cp.reduce``, on elements of ``type``; None: a copy. ``tensormap``: the
    address of the tensor map that stands for the global side of a ``.tensor`` copy, with ``coordinates``; else None.
    The address on the global side of a tensor copy is None. ``load_mode``: tile, im2col or im2col_no_offs, with the
    ``offsets`` of im2col.
    """

    dst: Address | None
    dst_space: str
    src: Address | None
    src_space: str
    size: Operand | None
    mbarrier: Address | None
    mask: Operand | None
    reduction: str | None
    type: Type | None
    tensormap: Address | None
    coordinates: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None
    load_mode: str = "tile"
    offsets: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class AsyncStore:
    """``st.async`` (``reduction`` None) and ``red.async`` (9.7.10.12, 9.7.14.7): a weak store, or a relaxed reduction
    at cluster scope, of ``values`` to shared memory of the cluster, then complete_tx of its bytes on ``mbarrier``."""

    address: Address
    values: tuple[Operand, ...]
    type: Type
    mbarrier: Address
    reduction: str | None
    source: Source
    guard: Guard | None = None
    space: str | None = None


@dataclass(frozen=True, slots=True)
class TensormapReplace:
    """``tensormap.replace.tile.FIELD`` (9.7.10.25): a weak read and write of the 128 bytes of the tensor map.

    ``field``: global_address rank box_dim ...; ``ordinal``: which dimension, or None.
    """

    field: str
    address: Address
    ordinal: int | None
    value: Operand
    type: Type
    space: str | None
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class TensormapCopyFence:
    """``tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned`` (9.7.14.16): copies
    128 bytes, then is the release fence of the tensormap proxy."""

    dst: Address
    src: Address
    scope: Scope
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class GridControl:
    """``griddepcontrol.wait`` and ``.launch_dependents`` (9.7.14.13)."""

    kind: Literal["wait", "launch_dependents"]
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Nothing:
    """An instruction without effect on memory: ``prefetch``, ``applypriority``, ``createpolicy``, ``nanosleep``, ....

    ``dst``: a register it writes with a value of no meaning here (0), such as a cache policy; or None.
    """

    dst: Reg | None
    type: Type | None
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Discard:
    """``discard.global.L2 [a], 128`` (9.7.10.16): a weak write of an undetermined value."""

    address: Address
    size: int
    source: Source
    guard: Guard | None = None
    space: str | None = None


@dataclass(frozen=True, slots=True)
class Mapa:
    """``mapa`` (9.7.10.22): the address in CTA ``rank`` of the cluster of the shared variable at ``value``.

    ``space``: ``shared::cluster`` or None (generic); a litmus thread's addresses are the same in both (A26).
    """

    dst: Reg
    type: Type
    value: Operand
    rank: Operand
    space: str | None
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class CtaRank:
    """``getctarank`` (9.7.10.23): the rank in its cluster of the CTA that the shared address ``value`` lies in."""

    dst: Reg
    type: Type
    value: Operand
    source: Source
    guard: Guard | None = None
    space: str | None = None


@dataclass(frozen=True, slots=True)
class IsSpace:
    """``isspacep.SPACE`` (9.7.10.18): whether the generic address ``value`` lies in ``space``."""

    dst: Reg
    space: str
    value: Operand
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class WarpExchange:
    """Lanes of a warp give each other values, without memory ordering (9.7.10.6, 9.7.14.9 to .12, .14).

    ``op``: shfl.up shfl.down shfl.bfly shfl.idx vote.all vote.any vote.uni vote.ballot match.any match.all redux.OP
    activemask elect. ``dst`` and ``predicate`` (the ``|p``) are what it writes; ``operands`` as in the text, membermask
    last (none for activemask); ``negated``: the source predicate of a vote is ``!p``. ``type`` is that in the text
    (of the source); pred for elect, which has none.
    """

    op: str
    type: Type
    dst: Reg | None
    predicate: Reg | None
    operands: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Pack:
    """``mov`` to a scalar of ``type`` from a vector of ``sources``, the lowest bits first (9.7.10.4)."""

    dst: Reg
    type: Type
    sources: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Unpack:
    """``mov`` from a scalar of ``type`` to a vector, the lowest bits first (9.7.10.4); None for ``_``."""

    dst: tuple[Reg | None, ...]
    type: Type
    value: Operand
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Alu:
    """Integer arithmetic and logic: ``dst = op(sources)`` in ``type``.

    ``op``: mov add sub mul.lo mul.hi mul.wide mad.lo mad.hi mad.wide and or xor not neg abs shl shr min max.
    ``wide`` forms take sources of ``type`` and give twice the width. Shift amounts are u32; a shift by the width or
    more gives 0 (or the sign for ``shr`` of a signed type). Predicates have type pred and the values 0 and 1.
    """

    op: str
    type: Type
    dst: Reg
    sources: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Convert:
    """``cvt.to.from`` between integer types (``saturate`` for ``.sat``)."""

    dst: Reg
    value: Operand
    to: Type
    frm: Type
    saturate: bool
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class SetPredicate:
    """``setp.cmp{.boolop}.type dst|complement, a, b{, {!}c}``; ``cmp``: eq ne lt le gt ge (signedness from the type;
    lo ls hi hs are resolved to an unsigned type)."""

    cmp: str
    type: Type
    dst: Reg
    complement: Reg | None
    a: Operand
    b: Operand
    source: Source
    guard: Guard | None = None
    boolop: str | None = None
    c: Reg | None = None
    c_negated: bool = False


@dataclass(frozen=True, slots=True)
class Select:
    """``selp.type dst, a, b, p``: a if p else b."""

    type: Type
    dst: Reg
    a: Operand
    b: Operand
    predicate: Reg
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Compare:
    """The comparison of the dialect's ``beq bne blt ble bgt bge``."""

    cmp: str
    type: Type
    a: Operand
    b: Operand


@dataclass(frozen=True, slots=True)
class Branch:
    """A jump to the instruction with index ``target`` of the thread's body (``len(body)`` is the end).

    It is taken iff the guard holds and, in the dialect, ``condition`` does; without either it always is.
    """

    target: int
    condition: Compare | None
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Exit:
    """``ret`` or ``exit``: the thread ends."""

    source: Source
    guard: Guard | None = None


Op = (
    Load | Store | Atomic | Fence | ProxyFence | TensormapFence | MbarrierInitFence | Barrier | BarrierReduction
    | WarpBarrier | ClusterBarrier | MbarrierInit | MbarrierArrive | MbarrierTx | MbarrierWait | PendingCount
    | CopyAsync | CopyAsyncArrive | AsyncCommit | AsyncWait | BulkCopy | AsyncStore | TensormapReplace
    | TensormapCopyFence | GridControl | Nothing | Discard | Mapa | CtaRank | IsSpace | WarpExchange | Pack | Unpack
    | Alu | Convert | SetPredicate | Select | Branch | Exit
)  # fmt: skip
