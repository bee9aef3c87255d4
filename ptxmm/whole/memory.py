"""The memory of a whole launch: every variable once for the grid, each CTA or each thread that has one of its own.

All bytes lie in one array, the arena. A generic address tells the instance of a variable that it points into; between
instances there is a gap, so that what is just outside of a variable is in none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from ptxmm.errors import PtxmmError, Span
from ptxmm.formats.modules.objects import Object
from ptxmm.program.initial import completed, number, real
from ptxmm.program.shared.tensors import element_type, encode
from ptxmm.program.source import AddressOf, Constant, Initial, Real, TensorMapValue
from ptxmm.ptx.ops import TENSORMAP_BYTES
from ptxmm.ptx.ops.basic import B32
from ptxmm.whole.arrays import Flags, Numbers, Words
from ptxmm.whole.layouts import ROOMS, starts

_CONST, _PARAM, _SHARED, _LOCAL, _GLOBAL = 1 << 38, 1 << 39, 1 << 40, 1 << 42, 1 << 45
_TENSOR, _TENSOR_BITS = 1 << 62, 20
_CTA_BITS, _THREAD_BITS = 26, 24
_BASES = {"const": _CONST, "param": _PARAM, "global": 0}
TENSOR_LANES, TENSOR_COLUMNS = 128, 512
"""The lanes and columns of the tensor memory of a CTA (PTX ISA 9.0, 9.7.16.1)."""
TENSOR = Object(
    "tensor memory", "tmem", B32, TENSOR_LANES * TENSOR_COLUMNS, initial=None, alignment=None, span=Span(1, 1, 1)
)
"""The tensor memory of a CTA, lane by lane, which no generic address names."""
MOST_BYTES = 1 << 30
MOST_CTAS = (_LOCAL - _SHARED) >> _CTA_BITS


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

    def __init__(
        self,
        variables: Mapping[str, Object],
        named: Mapping[str, Sequence[int]],
        places: Sequence[tuple[int, int]],
        size: int,
        layout: int = 0,
    ) -> None:
        """``named``: the variables that instructions name, each with the CTAs in which
        they do; of CTAs and threads only those are made. ``places``: for each
        CTA its cluster and its rank there; each has ``size`` threads. ``layout``: where the variables lie, as of
        ``layouts.starts``. Raises ``PtxmmError`` (kind ``unsupported``) where they are too large."""
        ctas = len(places)
        self.symbols: dict[str, int] = {}
        self._clusters, self._ranks = np.array(places, np.int64).T
        self._ctas = np.full((self._clusters.max() + 1, self._ranks.max() + 1), -1, np.int64)
        self._ctas[self._clusters, self._ranks] = np.arange(ctas)
        self.cta = np.arange(ctas * size) // size
        """The CTA of each thread."""
        self.turned = bool(layout % 2)
        self.instances = sorted(self._placed(variables, named, size, layout), key=lambda item: item.base)
        total = sum(_padded(item.variable.size) for item in self.instances)
        if total > MOST_BYTES:
            raise PtxmmError(f"the variables of this launch have {total} bytes", kind="unsupported")
        start = 0
        for at, item in enumerate(self.instances):
            self.instances[at] = Instance(item.variable, item.base, start, item.owner)
            start += _padded(item.variable.size)
        self.bytes = np.zeros(start, np.uint8)
        self.known = np.zeros(start, np.bool_)
        self.opaque = np.zeros(start, np.bool_)
        """Which bytes are those of tensor maps whose content is known, which is no number to anybody."""
        self.open = np.zeros(start, np.bool_)
        """Bytes that nothing is known of, whatever is written there."""
        self._bases = np.array([item.base for item in self.instances], np.uint64)
        sizes = [0 if item.variable is TENSOR else item.variable.size for item in self.instances]
        self._sizes = np.array(sizes, np.uint64)
        self.starts = np.array([item.start for item in self.instances], np.int64)
        self._owners = np.array([item.owner for item in self.instances], np.int64)
        self._shared = np.array([item.variable.space == "shared" for item in self.instances], np.bool_)
        for item in self.instances:
            self._initialise(item)

    def _placed(
        self, variables: Mapping[str, Object], named: Mapping[str, Sequence[int]], size: int, layout: int
    ) -> Iterator[Instance]:
        """The instances of all variables; ``symbols`` gets the addresses in their state spaces."""
        for space in ROOMS:
            own = space in ("shared", "local")
            here = {n: item for n, item in variables.items() if item.space == space and (n in named or not own)}
            addresses = starts(space, [(item.size, item.aligned) for item in here.values()], layout)
            each = size if space == "local" else 1
            for (name, item), address in zip(here.items(), addresses, strict=True):
                self.symbols[name] = address
                owners = (owner for cta in named.get(name, ()) for owner in range(each * cta, each * (cta + 1)))
                for owner in owners if own else (0,):
                    yield Instance(item, address + self.window(space, owner), 0, owner if own else -1)
        for cta in named.get(TENSOR.name, ()) if variables.get(TENSOR.name) is TENSOR else ():
            yield Instance(TENSOR, _TENSOR + (cta << _TENSOR_BITS), 0, cta)

    @staticmethod
    def window(space: str, owner: int = 0) -> int:
        """The generic address where the window of a state space begins, of the CTA or thread ``owner``."""
        if space == "shared":
            return _SHARED + (owner << _CTA_BITS)
        return _LOCAL + (owner << _THREAD_BITS) if space == "local" else _BASES[space]

    def windows(self, space: str, threads: Numbers) -> Words:
        """The same for each of ``threads``."""
        if space == "shared":
            return _window(self.cta[threads])
        if space == "local":
            return (_LOCAL + (threads << _THREAD_BITS)).astype(np.uint64)
        return np.full(len(threads), _BASES[space], np.uint64)

    def generic(self, addresses: Words, space: str, threads: Numbers) -> tuple[Words, Flags]:
        """The generic addresses of those in a state space, and which of them a thread may use there: an address in
        ``.shared::cluster`` says the rank of a CTA above the bits of a window, 0 for the own one, else 1 more."""
        name = space.partition("::")[0]
        if name != "shared":
            return addresses + self.windows(name, threads), np.ones(len(addresses), np.bool_)
        ranks = (addresses >> np.uint64(_CTA_BITS)).astype(np.int64)
        if space != "shared::cluster":
            return addresses + self.windows(name, threads), ranks == 0
        valid: Flags = ranks <= self._ctas.shape[1]
        own = self.cta[threads]
        named = self._ctas[self._clusters[own], np.where(valid, ranks - 1, 0)]
        inside = addresses & np.uint64((1 << _CTA_BITS) - 1)
        return inside + _window(np.where(ranks == 0, own, named)), valid

    def special(self, addresses: Words, space: str, threads: Numbers) -> Words:
        """The addresses in a state space of generic ones."""
        name = space.partition("::")[0]
        if space != "shared::cluster":
            return addresses - self.windows(name, threads)
        ctas = self._cta_of(addresses)
        above = np.where(ctas == self.cta[threads], 0, self._ranks[ctas] + 1)
        return (addresses & np.uint64((1 << _CTA_BITS) - 1)) | (above << _CTA_BITS).astype(np.uint64)

    def located(self, cta: int) -> tuple[int, int]:
        """The cluster of a CTA, and its rank there."""
        return int(self._clusters[cta]), int(self._ranks[cta])

    def pointed(self, address: int) -> Instance | None:
        """What has a generic address in it, or ends there."""
        at = int(np.searchsorted(self._bases, np.uint64(address), "right")) - 1
        return self.instances[at] if at >= 0 and address - int(self._bases[at]) <= int(self._sizes[at]) else None

    def mapped(self, addresses: Words, ranks: Words, threads: Numbers) -> tuple[Words, Flags]:
        """The generic addresses of the same shared memory in the CTAs of the cluster with these ``ranks``, and which of
        these there are."""
        valid: Flags = ranks < np.uint64(self._ctas.shape[1])
        number = np.where(valid, ranks, np.uint64(0)).astype(np.int64)
        ctas = self._ctas[self._clusters[self.cta[threads]], number]
        return (addresses & np.uint64((1 << _CTA_BITS) - 1)) + _window(ctas), valid

    def ranks(self, addresses: Words) -> Words:
        """The ranks of the CTAs whose shared memory the generic addresses are in."""
        found: Words = self._ranks[self._cta_of(addresses)].astype(np.uint64)
        return found

    def _cta_of(self, addresses: Words) -> Numbers:
        found = (addresses.astype(np.int64) - _SHARED) >> _CTA_BITS
        ctas: Numbers = np.clip(found, 0, len(self._ranks) - 1)
        return ctas

    def inside(self, space: str, addresses: Words, threads: Numbers) -> Flags:
        """Which of the generic addresses lie in a state space."""
        name = space.partition("::")[0]
        first, last = {
            "const": (_CONST, _PARAM),
            "param": (_PARAM, _SHARED),
            "shared": (_SHARED, _LOCAL),
            "local": (_LOCAL, _GLOBAL),
            "global": (_GLOBAL, 1 << 63),
        }[name]
        found: Flags = (addresses >= np.uint64(first)) & (addresses < np.uint64(last))
        if name == "shared":
            owner, own = self._cta_of(addresses), self.cta[threads]
            near = self._clusters[owner] == self._clusters[own] if space == "shared::cluster" else owner == own
            found &= near
        return found

    def find(self, addresses: Words, size: int, threads: Numbers) -> tuple[Numbers, Numbers]:
        """For each generic address the instance (by number) that has ``size`` bytes there, and the place in the arena;
        -1 for both where none has that the thread may access."""
        at = np.searchsorted(self._bases, addresses, "right").astype(np.int64) - 1
        inside = at >= 0
        at = np.maximum(at, 0)
        offsets = addresses - self._bases[at]
        inside &= offsets + np.uint64(size) <= self._sizes[at]
        owners, own = self._owners[at], self.cta[threads]
        near = self._clusters[np.where(self._shared[at], owners, 0)] == self._clusters[own]
        inside &= (owners < 0) | np.where(self._shared[at], near, owners == threads)
        places = self.starts[at] + offsets.astype(np.int64)
        return np.where(inside, at, -1), np.where(inside, places, -1)

    def load(self, places: Numbers, size: int) -> tuple[Words, Flags]:
        """The unsigned values of ``size`` bytes (8 at most) at ``places``, and which are known."""
        index = places[:, None] + np.arange(size)
        wide = np.zeros((len(places), 8), np.uint8)
        wide[:, :size] = self.bytes[index]
        return wide.view("<u8")[:, 0].astype(np.uint64), self.known[index].all(axis=1)

    def word(self, place: int, size: int) -> int | None:
        """The unsigned value of ``size`` bytes at a place, of any number; None if it is not known."""
        span = slice(place, place + size)
        return int.from_bytes(self.bytes[span].tobytes(), "little") if self.known[span].all() else None

    def store(self, places: Numbers, size: int, values: Words, known: Flags) -> None:
        """Write ``size`` bytes (8 at most) of each value; of those at one place the last counts."""
        index = places[:, None] + np.arange(size)
        self.bytes[index] = np.ascontiguousarray(values.astype("<u8")).view(np.uint8).reshape(-1, 8)[:, :size]
        self.known[index] = known[:, None] & ~self.open[index]
        self.opaque[index] = False

    def move(self, to: Numbers, frm: Numbers, size: int, hidden: Flags) -> None:
        """Write ``size`` bytes from each place to another one; what is ``hidden`` is not known there."""
        there, here = (places[:, None] + np.arange(size) for places in (to, frm))
        self.bytes[there] = self.bytes[here]
        unsure = hidden[here] | self.open[here] | self.open[there]
        self.known[there] = self.known[here] & ~unsure
        self.opaque[there] = self.opaque[here] & ~unsure

    def lose(self, places: Numbers, size: int) -> None:
        """Nothing is known of ``size`` bytes at each place."""
        index = places[:, None] + np.arange(size)
        self.known[index] = self.opaque[index] = False

    def clear(self, places: Numbers, size: int) -> None:
        """Write zeros to ``size`` bytes at each place."""
        index = places[:, None] + np.arange(size)
        self.bytes[index], self.known[index] = 0, True

    def remote(self, places: Numbers, ctas: Numbers) -> Numbers:
        """The CTAs whose shared memory has ``places`` in the arena, where they are others than ``ctas``; else -1."""
        at = self.instance_of(places)
        return np.where(self._shared[at] & (self._owners[at] != ctas), self._owners[at], -1)

    def name(self, place: int) -> str:
        """What a place in the arena is called: the variable, and the byte of it."""
        instance = self.instances[int(self.instance_of(np.array([place]))[0])]
        if instance.variable is TENSOR:
            lane, column = divmod((place - instance.start) // B32.bytes, TENSOR_COLUMNS)
            return f"{TENSOR.name}, lane {lane}, column {column}"
        return f"{instance.variable.name}, byte {place - instance.start}"

    def tensor(self, cta: int) -> int:
        """Where in the arena the tensor memory of a CTA begins."""
        return next(item.start for item in self.instances if item.variable is TENSOR and item.owner == cta)

    def is_shared(self, places: Numbers) -> Flags:
        """Which places in the arena are shared memory."""
        found: Flags = self._shared[self.instance_of(places)]
        return found

    def owner_of(self, place: int) -> int:
        """The CTA or thread that has a place in the arena, -1 for the grid."""
        return int(self._owners[self.instance_of(np.array([place]))[0]])

    def instance_of(self, places: Numbers) -> Numbers:
        """The instances (by number) that places in the arena belong to."""
        return np.searchsorted(self.starts, places, "right").astype(np.int64) - 1

    def _initialise(self, item: Instance) -> None:
        """What is there before the launch."""
        variable = item.variable
        end = item.start + variable.size
        if variable.initial is None:
            return
        self.known[item.start : end] = True
        width, maps = variable.type.bytes, []
        for at, value in enumerate(variable.initial):
            place = item.start + at * width
            content = self._content(value, variable)
            if isinstance(value, TensorMapValue):
                maps.append((place, value))
            elif content is None:
                self.known[place : min(end, place + max(width, 8))] = False
            else:
                self.bytes[place : place + width] = np.frombuffer(content.to_bytes(width, "little"), np.uint8)
        for place, value in maps:
            described, wide = self._described(value), slice(place, min(end, place + TENSORMAP_BYTES))
            self.known[wide] = False
            if described is not None:
                self.bytes[wide] = np.frombuffer(described, np.uint8)
                self.opaque[wide] = True

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

    def _described(self, value: TensorMapValue) -> bytes | None:
        """The bytes of a tensor map; None where its tensor is no variable, or its fields have no such values."""
        target = next((item.variable for item in self.instances if item.variable.name == value.target.name), None)
        if target is None or element_type(value.type) is None:
            return None
        try:
            return encode(self.symbols[target.name], completed(value, target.name, target.size))
        except OverflowError:
            return None


def _window(ctas: Numbers) -> Words:
    """Where the shared memory of CTAs begins."""
    return (_SHARED + (ctas << _CTA_BITS)).astype(np.uint64)


def _padded(size: int) -> int:
    """Instances begin at multiples of 16 bytes of the arena, as aligned as any access."""
    return -(-max(size, 1) // 16) * 16
