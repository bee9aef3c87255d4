"""Asynchronous copies, their groups, and tensor maps (PTX ISA 9.7.10.24, .25, 9.7.14.15.15, .16)."""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

from msgspec import Struct

from ptxmm.ptx.ops.basic import (
    CTA,
    GLOBAL,
    TENSORMAP_BYTES,
    Address,
    Guard,
    Imm,
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
from ptxmm.ptx.tables.form import COMPLETE_TX

BULK_ALIGNMENT = 16
_GROUPS = {"cp.async": "cp.async", "bulk": "cp.async.bulk", "wgmma": "wgmma"}


class Place(NamedTuple):
    """The operand ``[map, {c0, c1}]`` of a tensor copy: the address of the tensor map, and the coordinates."""

    map: Address
    coordinates: tuple[Operand, ...]

    @property
    def base(self) -> Operand:
        """That of the address."""
        return self.map.base


class CopyAsync(Struct, frozen=True):
    """``cp.async`` (9.7.10.24.3), non-bulk: ``size`` bytes (4, 8, 16) from global to shared memory of the CTA.

    ``source_size``: only so many bytes are read, the rest written as zeros (None: all); ``ignore``: a predicate under
    which nothing is read and zeros are written, or None; ``ignore_negated``.
    """

    roles: ClassVar = "[dst] [src] #size source_size:u32 ignore:pred!ignore_negated"
    dst: Address
    src: Address
    size: int
    source_size: Operand | None
    ignore: Reg | None
    ignore_negated: bool
    source: Source
    guard: Guard | None = None

    @property
    def opcode(self) -> str:
        return f"cp.async.{'cg' if self.size == 16 else 'ca'}.shared.global"

    @property
    def touches(self) -> tuple[Touch, ...]:
        to, frm = Rule("shared::cta", CTA, "9.7.10.24.3", writes=True), Rule("global", GLOBAL, "9.7.10.24.3")
        return (
            Touch(self.dst, self.size, self.size, to, "destination", "destination", "copy"),
            Touch(self.src, self.size, self.size, frm, "source", "source", "copy"),
        )


class CopyAsyncArrive(Struct, frozen=True):
    """``cp.async.mbarrier.arrive{.noinc}`` (9.7.14.15.15): arrives once all earlier cp.async of the thread are done.

    Without ``noinc`` the pending count is incremented by 1 when it is executed.
    """

    opcode: ClassVar = "cp.async.mbarrier.arrive {noinc} {space} b64"
    roles: ClassVar = "[address]"
    address: Address
    noinc: bool
    source: Source
    guard: Guard | None = None
    space: str | None = None

    @property
    def touches(self) -> tuple[Touch, ...]:
        return (mbarrier_touch(self.address, Rule(self.space, CTA, "9.7.14.15.15", writes=True)),)


class AsyncCommit(Struct, frozen=True):
    """``commit_group`` of the given kind of asynchronous operation: a new group of those not yet in one."""

    roles: ClassVar = ""
    kind: Literal["cp.async", "bulk", "wgmma"]
    source: Source
    guard: Guard | None = None

    @property
    def opcode(self) -> str:
        return f"{_GROUPS[self.kind]}.commit_group{'.sync.aligned' if self.kind == 'wgmma' else ''}"


class AsyncWait(Struct, frozen=True):
    """``wait_group`` and ``wait_all``: until at most ``pending`` of the latest groups are not complete.

    ``pending`` None: ``cp.async.wait_all``, which makes a group of those without one first. ``read``: only until the
    sources have been read (``cp.async.bulk.wait_group.read``).
    """

    roles: ClassVar = "#pending"
    kind: Literal["cp.async", "bulk", "wgmma"]
    pending: int | None
    read: bool
    source: Source
    guard: Guard | None = None

    @property
    def opcode(self) -> str:
        if self.pending is None:
            return f"{_GROUPS[self.kind]}.wait_all"
        return f"{_GROUPS[self.kind]}.wait_group {'sync.aligned' if self.kind == 'wgmma' else '{read}'}"


class BulkCopy(Struct, frozen=True):
    """``cp.async.bulk``, ``cp.reduce.async.bulk`` and their ``.tensor`` forms (9.7.10.24.6 to .10).

    ``dst_space``, ``src_space``: ``global``, ``shared::cta``, ``shared::cluster``. ``size``: bytes; None for a tensor
    copy: the box of the tensor map. ``mbarrier``: where ``complete_tx::bytes`` goes, or None: it joins a bulk group.
    ``mask``: the CTAs of the cluster of ``.multicast::cluster`` (dst and mbarrier at the same offsets in each), or
    None. ``reduction``: the operation of ``cp.reduce``, on elements of ``type``; None: a copy. ``tensormap``: the
    address of the tensor map that stands for the global side of a ``.tensor`` copy, with ``coordinates``; else None.
    The address on the global side of a tensor copy is None. ``load_mode``: tile, im2col or im2col_no_offs, with the
    ``offsets`` of im2col. ``byte_mask``: which of every 16 bytes are copied (``.cp_mask``), None: all.
    """

    roles: ClassVar = "[to] [frm] size:u32 [mbarrier] (coordinates:s32) offsets:u16* mask:u16 byte_mask:u16"
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
    byte_mask: Operand | None = None

    @property
    def opcode(self) -> str:
        first = "cp.async.bulk" if self.reduction is None else "cp.reduce.async.bulk"
        multicast = "" if self.mask is None else "multicast::cluster"
        last = f"{'bulk_group' if self.mbarrier is None else COMPLETE_TX} {multicast}"
        last += "" if self.byte_mask is None else " cp_mask"
        if self.tensormap is not None:
            return f"{first}.tensor {{coordinates}}d {{dst_space}} {{src_space}} {{reduction}} {{load_mode}} {last}"
        half = (
            self.reduction == "add" and self.type is not None and self.type.kind in ("f", "bf") and self.type.bits == 16
        )
        return f"{first} {{dst_space}} {{src_space}} {last} {{reduction}} {'noftz' if half else ''} {{type}}"

    @property
    def to(self) -> Address | Place:
        """The destination as it is written."""
        return self.dst or self._tensor

    @property
    def frm(self) -> Address | Place:
        """The source as it is written."""
        return self.src or self._tensor

    @property
    def _tensor(self) -> Place:
        assert self.tensormap is not None
        return Place(self.tensormap, self.coordinates)

    @property
    def partial(self) -> bool:
        """Whether not all of its bytes are copied."""
        return self.byte_mask is not None

    def parts(self, size: int) -> list[tuple[int, int]]:
        """Which of ``size`` bytes are copied, as (start, length); all where only the execution knows."""
        return copied(self.byte_mask.value if isinstance(self.byte_mask, Imm) else 0xFFFF, size)

    @property
    def _section(self) -> str:
        return f"9.7.10.24.{6 + (self.reduction is not None) + 3 * (self.tensormap is not None)}"

    @property
    def described(self) -> Rule:
        return Rule("global", GLOBAL, self._section, writes=self.dst is None)

    @property
    def touches(self) -> tuple[Touch, ...]:
        size = self.size.value if isinstance(self.size, Imm) else None
        section, found = self._section, []
        moves = self.reduction is None
        if self.tensormap is not None:
            rule = Rule(None, ("global", "const", "param"), section)
            what = "tensor map"
            found.append(Touch(self.tensormap, TENSORMAP_BYTES, BULK_ALIGNMENT, rule, what, "tensor map", "scalar"))
        if self.dst is not None:
            away = (self.src_space, self.dst_space) == ("shared::cta", "shared::cluster")
            rule = Rule(self.dst_space, lies_in(self.dst_space), section, writes=True, away=away)
            found.append(Touch(self.dst, size, BULK_ALIGNMENT, rule, "destination", "destination", reads=not moves))
        if self.src is not None:
            rule = Rule(self.src_space, lies_in(self.src_space), section)
            found.append(Touch(self.src, size, BULK_ALIGNMENT, rule, "source", "source"))
        if self.mbarrier is not None:
            # The destination may be in another CTA, and the mbarrier with it (9.7.10.24.6).
            rule = Rule(self.dst_space, lies_in(self.dst_space), section, writes=True)
            found.append(mbarrier_touch(self.mbarrier, rule, "shared::cluster"))
        return tuple(found)


def copied(mask: int, size: int) -> list[tuple[int, int]]:
    """The parts of ``size`` bytes, as (start, length), that are copied under a byte mask: bit i is that of byte i of
    every 16 (9.7.9.25.4.1 of PTX ISA 9.0). Of the others it is said that they are not copied, not that they are not
    read: a copy reads all of its source."""
    if mask & 0xFFFF == 0xFFFF:
        return [(0, size)]
    found: list[tuple[int, int]] = []
    for start in range(size):
        if mask >> start % 16 & 1:
            if found and sum(found[-1]) == start:
                found[-1] = (found[-1][0], found[-1][1] + 1)
            else:
                found.append((start, 1))
    return found


class TensormapReplace(Struct, frozen=True):
    """``tensormap.replace.tile.FIELD`` (9.7.10.25): a weak read and write of the 128 bytes of the tensor map.

    ``field``: global_address rank box_dim ...; ``ordinal``: which dimension, or None.
    """

    opcode: ClassVar = "tensormap.replace.tile {field} {space} b1024 {type}"
    roles: ClassVar = "[address] #ordinal value:type"
    field: str
    address: Address
    ordinal: int | None
    value: Operand
    type: Type
    space: str | None
    source: Source
    guard: Guard | None = None

    @property
    def touches(self) -> tuple[Touch, ...]:
        rule = Rule(self.space, lies_in(self.space, ("global", *CTA)), "9.7.10.25", writes=True)
        return (Touch(self.address, TENSORMAP_BYTES, BULK_ALIGNMENT, rule, "tensor map", division="scalar"),)


class TensormapCopyFence(Struct, frozen=True):
    """``tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned`` (9.7.14.16): copies
    128 bytes, then is the release fence of the tensormap proxy."""

    opcode: ClassVar = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release {scope} sync.aligned"
    roles: ClassVar = "[dst] [src] 128"
    dst: Address
    src: Address
    scope: Scope
    source: Source
    guard: Guard | None = None

    @property
    def touches(self) -> tuple[Touch, ...]:
        size = TENSORMAP_BYTES
        to, frm = Rule("global", GLOBAL, "9.7.14.16", writes=True), Rule("shared::cta", CTA, "9.7.14.16")
        return (
            Touch(self.dst, size, size, to, "destination", "destination", "scalar"),
            Touch(self.src, size, size, frm, "source", "source", "scalar"),
        )


Copying = CopyAsync | CopyAsyncArrive | BulkCopy | TensormapReplace | TensormapCopyFence
GroupOp = AsyncCommit | AsyncWait
