"""Tensor maps: what a tensor copy takes from the 128 bytes of one (PTX ISA 5.5, 9.7.10.24.9, 9.7.10.25).

A tensor map is opaque. Here its fields lie one after the other in an arrangement of ptxmm's own, each in whole bytes:
``tensormap.replace`` changes some of the bytes, and a copy that reads stale ones does what they say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from types import MappingProxyType

from msgspec import Struct

from ptxmm.program.test import TensorMap
from ptxmm.ptx import ops
from ptxmm.ptx.ops import Type

TENSORMAP_BYTES = ops.TENSORMAP_BYTES
MAX_RANK = 5
MAX_BOX = 256
"""The largest size of a box in one dimension (cuTensorMapEncodeTiled of the CUDA driver API)."""
MAX_STEP = 8
STRIDE_UNIT = 16
"""Strides are multiples of 16 bytes, and so is the size of a box (5.5.3.1)."""
_MAX_BYTES = 1 << 20

FIELDS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "global_address": (0, 8),
        "rank": (8, 4),
        "elemtype": (12, 1),
        "interleave_layout": (13, 1),
        "swizzle_mode": (14, 1),
        "fill_mode": (15, 1),
        "box_dim": (16, 4),
        "global_dim": (36, 4),
        "global_stride": (56, 8),
        "element_stride": (88, 4),
    }
)
"""Where each field begins, in bytes, and how many it has; the ones with an ordinal have one such part for each."""

ELEMENT_TYPES: Mapping[int, Type] = MappingProxyType(
    {
        0: Type("u", 8),
        1: Type("u", 16),
        2: Type("u", 32),
        3: Type("s", 32),
        4: Type("u", 64),
        5: Type("s", 64),
        6: Type("f", 16),
        7: Type("f", 32),
        9: Type("f", 64),
        10: Type("bf", 16),
    }
)
"""Table 32 of 9.7.10.25, without the types that change values on their way: ``.f32.ftz``, ``.tf32``, ``.tf32.ftz``."""

_CODES = {type_: code for code, type_ in ELEMENT_TYPES.items()}
REDUCIBLE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "add": ("u32", "s32", "u64", "f32", "f16", "bf16"),
        "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
        "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
        "inc": ("u32",),
        "dec": ("u32",),
        "and": ("u32", "s32", "u64", "s64"),
        "or": ("u32", "s32", "u64", "s64"),
        "xor": ("u32", "s32", "u64", "s64"),
    }
)
"""The element types of each reduction (9.7.10.24.10); a tensor of .b32 or .b64 is one of integers."""


class Tensor(Struct, frozen=True):
    """What a tensor map says: the global address, the type of an element, for each dimension, innermost first, the size
    of the box, that of the tensor and the traversal stride, and for each but the innermost the stride in bytes."""

    address: int
    type: Type
    box: tuple[int, ...]
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """How many elements of the box are accessed in each dimension (5.5.3.2)."""
        return tuple(-(-size // step) for size, step in zip(self.box, self.steps, strict=True))

    @property
    def size(self) -> int:
        """The bytes of the box in shared memory."""
        return prod(self.counts) * self.type.bytes


def element_type(type_: Type) -> Type | None:
    """The type of a tensor's elements that ``type_`` is, with integers for untyped bits; None if there is none."""
    found = Type("u", type_.bits) if type_.kind == "b" else type_
    return found if found in _CODES else None


def field_place(field: str, ordinal: int | None) -> tuple[int, int]:
    """The first byte of a field of a tensor map, and how many it has."""
    first, size = FIELDS[field]
    return first + size * (ordinal or 0), size


def field_start(byte: int) -> int:
    """Where the field begins that a byte of a tensor map is in.

    A copy takes each field as one write left it: half of a field would be no value of an opaque object.
    """
    first, size = max(place for place in FIELDS.values() if place[0] <= byte)
    return first + (byte - first) // size * size


def field_borders(points: Iterable[int], base: int) -> set[int]:
    """The bytes ``points`` of an object, with the start of its field for each that is inside of the tensor map at byte
    ``base``; there may be other maps, and other data, in the object."""
    inside = range(base, base + TENSORMAP_BYTES)
    return {base + field_start(point - base) if point in inside else point for point in points}


def encode(address: int, made: TensorMap) -> bytes:
    """The bytes of a tensor map at first."""
    content = bytearray(TENSORMAP_BYTES)

    def put(field: str, values: Sequence[int]) -> None:
        for ordinal, value in enumerate(values):
            first, size = field_place(field, ordinal)
            content[first : first + size] = value.to_bytes(size, "little")

    type_ = element_type(made.type)
    assert type_ is not None
    put("global_address", [address])
    put("rank", [len(made.box) - 1])
    put("elemtype", [_CODES[type_]])
    put("box_dim", made.box)
    put("global_dim", made.dims)
    put("global_stride", made.strides)
    put("element_stride", made.steps)
    return bytes(content)


def decode(content: int, rank: int, reduction: str | None) -> Tensor | str:
    """What a copy of ``rank`` dimensions, perhaps with a ``reduction``, finds in a tensor map, or in words why it has
    no meaning."""

    def get(field: str, ordinal: int = 0) -> int:
        first, size = field_place(field, ordinal)
        return content >> 8 * first & ((1 << 8 * size) - 1)

    found = get("rank") + 1
    type_ = ELEMENT_TYPES.get(get("elemtype"))
    if found != rank:
        return f"a tensor copy of {rank} dimensions by a tensor map of {found}"
    if type_ is None or any(get(field) for field in ("interleave_layout", "swizzle_mode", "fill_mode")):
        return "a tensor copy by what is no tensor map"
    tensor = Tensor(
        get("global_address"),
        type_,
        tuple(get("box_dim", i) for i in range(rank)),
        tuple(get("global_dim", i) for i in range(rank)),
        tuple(get("global_stride", i) for i in range(rank - 1)),
        tuple(get("element_stride", i) for i in range(rank)),
    )
    wrong = problem(tensor.type, tensor.box, tensor.dims, tensor.strides, tensor.steps)
    if wrong is not None:
        return f"a tensor copy by a tensor map in which {wrong}"
    if tensor.address % STRIDE_UNIT:
        return "a tensor copy by a tensor map whose global address is no multiple of 16"
    if reduction is not None and type_.name not in REDUCIBLE[reduction]:
        return f"a reduction .{reduction} of elements of type .{type_.name}"
    return tensor


def problem(
    type_: Type, box: Sequence[int], dims: Sequence[int], strides: Sequence[int], steps: Sequence[int]
) -> str | None:
    """In words what is wrong with the fields of a tensor map, or None (5.5.3; limits of cuTensorMapEncodeTiled)."""
    if not all(0 < size <= MAX_BOX for size in box):
        return f"a box has 1 to {MAX_BOX} elements in each dimension"
    if not all(0 < size < 1 << 32 for size in dims):
        return "a tensor has at least one element in each dimension"
    if not all(stride % STRIDE_UNIT == 0 and 0 <= stride < 1 << 40 for stride in strides):
        return f"a stride is a multiple of {STRIDE_UNIT} bytes"
    if not all(0 < step <= MAX_STEP for step in steps):
        return f"a traversal stride is 1 to {MAX_STEP}"
    if steps[0] != 1:
        return "the traversal stride of dimension 0 is 1"
    count = prod(-(-size // step) for size, step in zip(box, steps, strict=True))
    size = count * type_.bytes
    if size % STRIDE_UNIT:
        return f"a box has a multiple of {STRIDE_UNIT} bytes, and {count} elements of .{type_.name} have {size}"
    if size > _MAX_BYTES:
        return f"a box has at most {_MAX_BYTES} bytes"
    return None
