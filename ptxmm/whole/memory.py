"""The memory of a whole launch: every variable once for the grid, each CTA or each thread that has one of its own.

All bytes lie in one array, the arena. A generic address tells the instance of a variable that it points into; between
instances there is a gap, so that what is just outside of a variable is in none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ptxmm.errors import PtxmmError
from ptxmm.formats.modules.objects import Object
from ptxmm.program.initial import number, real
from ptxmm.program.source import AddressOf, Constant, Initial, Real

Words: TypeAlias = NDArray[np.uint64]
Flags: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.int64]

_GAP = 4096
_WINDOW_START = 1024
_SHARED, _LOCAL, _CONST, _PARAM, _GLOBAL = 1 << 40, 1 << 44, 1 << 42, 1 << 43, 0x70 << 40
_CTA_BITS, _THREAD_BITS = 26, 24
_BASES = {"const": _CONST, "param": _PARAM, "global": 0}
MOST_BYTES = 1 << 30
_MOST_CTAS = (_CONST - _SHARED) >> _CTA_BITS


class Instance(Struct, frozen=True):
    """One copy of ``variable``: ``base``, its generic address; ``start``, its first byte in the arena; ``owner``: the
    CTA or the thread that has it, -1 for the grid."""

    variable: Object
    base: int
    start: int
    owner: int


class Memory:
    """The bytes of all variables, and which of them are known.

    ``instances`` are in ascending order of their addresses, and so of their places in the arena.
    """

    def __init__(self, variables: Mapping[str, Object], named: Collection[str], ctas: int, size: int) -> None:
        """``named``: the variables that the kernel names; of CTAs and threads, each of the ``ctas`` with ``size``
        threads, only those are made. Raises ``PtxmmError`` (kind ``unsupported``) where they are too large."""
        if ctas > _MOST_CTAS:
            raise PtxmmError(f"{ctas} CTAs; at most {_MOST_CTAS} are followed", kind="unsupported")
        self.symbols: dict[str, int] = {}
        self._size = size
        self.instances = sorted(self._placed(variables, named, ctas, ctas * size), key=lambda item: item.base)
        total = sum(_padded(item.variable.size) for item in self.instances)
        if total > MOST_BYTES:
            raise PtxmmError(f"the variables of this launch have {total} bytes", kind="unsupported")
        start = 0
        for at, item in enumerate(self.instances):
            self.instances[at] = Instance(item.variable, item.base, start, item.owner)
            start += _padded(item.variable.size)
        self.bytes = np.zeros(start, np.uint8)
        self.known = np.zeros(start, np.bool_)
        self._bases = np.array([item.base for item in self.instances], np.uint64)
        self._sizes = np.array([item.variable.size for item in self.instances], np.uint64)
        self.starts = np.array([item.start for item in self.instances], np.int64)
        self._owners = np.array([item.owner for item in self.instances], np.int64)
        self._shared = np.array([item.variable.space == "shared" for item in self.instances], np.bool_)
        for item in self.instances:
            self._initialise(item)

    def _placed(
        self, variables: Mapping[str, Object], named: Collection[str], ctas: int, threads: int
    ) -> Iterator[Instance]:
        """The instances of all variables; ``symbols`` gets the addresses in their state spaces."""
        ends = {"shared": _WINDOW_START, "local": _WINDOW_START, "global": _GLOBAL, "const": _GAP, "param": _GAP}
        for name, item in variables.items():
            if item.space not in ends or (item.space in ("shared", "local") and name not in named):
                continue
            step = max(256, item.aligned)
            self.symbols[name] = address = -(-ends[item.space] // step) * step
            ends[item.space] = address + item.size + _GAP
            for owner in range({"shared": ctas, "local": threads}.get(item.space, 1)):
                own = item.space in ("shared", "local")
                yield Instance(item, address + self.window(item.space, owner), 0, owner if own else -1)

    @staticmethod
    def window(space: str, owner: int = 0) -> int:
        """The generic address where the window of a state space begins, of the CTA or thread ``owner``."""
        if space == "shared":
            return _SHARED + (owner << _CTA_BITS)
        return _LOCAL + (owner << _THREAD_BITS) if space == "local" else _BASES[space]

    def windows(self, space: str, threads: Numbers) -> Words:
        """The same for each of ``threads``."""
        if space == "shared":
            return (_SHARED + (threads // self._size << _CTA_BITS)).astype(np.uint64)
        if space == "local":
            return (_LOCAL + (threads << _THREAD_BITS)).astype(np.uint64)
        return np.full(len(threads), _BASES[space], np.uint64)

    def inside(self, space: str, addresses: Words) -> Flags:
        """Which of the generic addresses lie in a state space."""
        first, last = {
            "shared": (_SHARED, _CONST),
            "local": (_LOCAL, _GLOBAL),
            "const": (_CONST, _PARAM),
            "param": (_PARAM, _LOCAL),
            "global": (_GLOBAL, 1 << 63),
        }[space]
        found: Flags = (addresses >= np.uint64(first)) & (addresses < np.uint64(last))
        return found

    def find(self, addresses: Words, size: int, threads: Numbers) -> tuple[Numbers, Numbers]:
        """For each generic address the instance (by number) that has ``size`` bytes there, and the place in the arena;
        -1 for both where none has that the thread may access."""
        at = np.searchsorted(self._bases, addresses, "right").astype(np.int64) - 1
        inside = at >= 0
        at = np.maximum(at, 0)
        offsets = addresses - self._bases[at]
        inside &= offsets + np.uint64(size) <= self._sizes[at]
        owners = self._owners[at]
        reader = np.where(self._shared[at], threads // self._size, threads)
        inside &= (owners < 0) | (owners == reader)
        places = self.starts[at] + offsets.astype(np.int64)
        return np.where(inside, at, -1), np.where(inside, places, -1)

    def load(self, places: Numbers, size: int) -> tuple[Words, Flags]:
        """The unsigned values of ``size`` bytes (8 at most) at ``places``, and which are known."""
        index = places[:, None] + np.arange(size)
        wide = np.zeros((len(places), 8), np.uint8)
        wide[:, :size] = self.bytes[index]
        return wide.view("<u8")[:, 0].astype(np.uint64), self.known[index].all(axis=1)

    def store(self, places: Numbers, size: int, values: Words, known: Flags) -> None:
        """Write ``size`` bytes (8 at most) of each value; of those at one place the last counts."""
        index = places[:, None] + np.arange(size)
        self.bytes[index] = np.ascontiguousarray(values.astype("<u8")).view(np.uint8).reshape(-1, 8)[:, :size]
        self.known[index] = known[:, None]

    def instance_of(self, places: Numbers) -> Numbers:
        """The instances (by number) that places in the arena belong to."""
        return np.searchsorted(self.starts, places, "right").astype(np.int64) - 1

    def _initialise(self, item: Instance) -> None:
        """What is there before the launch: 0 where nothing is said in ``.global`` and ``.const`` (PTX ISA 5.4.4)."""
        variable = item.variable
        end = item.start + variable.size
        if variable.initial is None:
            self.known[item.start : end] = variable.space in _BASES
            return
        self.known[item.start : end] = True
        width = variable.type.bytes
        for at, value in enumerate(variable.initial):
            place = item.start + at * width
            content = self._content(value, variable)
            if content is None:
                self.known[place : min(end, place + max(width, 8))] = False
            else:
                self.bytes[place : place + width] = np.frombuffer(content.to_bytes(width, "little"), np.uint8)

    def _content(self, value: Initial, variable: Object) -> int | None:
        """The unsigned number that an initial value is; None where there is none (tensor maps, mbarriers)."""
        match value:
            case Constant():
                return number(value, variable.type)
            case Real():
                return real(value, variable.type)
            case AddressOf(target) if target.name in self.symbols:
                item = next(i for i in self.instances if i.variable.name == target.name)
                window = self.window(item.variable.space) if value.generic else 0
                return self.symbols[target.name] + window + value.offset & (1 << variable.type.bits) - 1
        return None


def _padded(size: int) -> int:
    """Instances begin at multiples of 16 bytes of the arena, as aligned as any access."""
    return -(-max(size, 1) // 16) * 16
