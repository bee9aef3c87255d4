"""The memory objects of a launched kernel, and the type of what a compiler declares as an array of bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import Span
from ptxmm.program.shared.mbarriers import MBARRIER_BYTES, operands
from ptxmm.program.source import Constant, Initial
from ptxmm.ptx.ops import Address, Atomic, Load, Op, Store, Sym, Type

_BYTE = Type("b", 8)


class Object(Struct, frozen=True):
    """A variable of the module or an object of the launch: ``initial`` None where it has any initial value, () where
    it is 0; ``typed``: whether the launch says of what type it is."""

    name: str
    space: str
    type: Type
    count: int | None
    initial: tuple[Initial, ...] | None
    alignment: int | None
    span: Span
    typed: bool = False

    @property
    def aligned(self) -> int:
        """A multiple of this is where it begins (PTX ISA 5.4.5)."""
        return self.alignment or self.type.bytes

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.type.bytes * (1 if self.count is None else self.count)


def viewed(variables: Mapping[str, Object], bodies: Sequence[Sequence[Op]]) -> dict[str, Object]:
    """``variables`` with elements as the threads access them, where the module only says how many bytes there are.

    ``nvcc`` declares every array and every structure as ``.b8``. Its elements are as wide as the narrowest access that
    names it, if that divides the offsets of all; mbarriers have 64 bits. What the launch gives a type keeps it.
    """
    accessed: dict[str, set[tuple[int, int]]] = {}
    for body in bodies:
        for op in body:
            for name, offset, size in _accesses(op):
                accessed.setdefault(name, set()).add((offset, size))
    return with_elements(variables, accessed)


def with_elements(variables: Mapping[str, Object], accessed: Mapping[str, set[tuple[int, int]]]) -> dict[str, Object]:
    """``variables`` with elements as they are ``accessed``: at which offsets, and how many bytes."""
    found = dict(variables)
    for name, places in accessed.items():
        item = found.get(name)
        if item is None or item.type != _BYTE or not item.count or item.typed:
            continue
        width = min(size for _, size in places)
        if width > 1 and item.count % width == 0 and all(offset % width == 0 for offset, _ in places):
            type_ = Type("b", 8 * width)
            initial = None if item.initial is None else regrouped(item.initial, _BYTE, type_)
            if item.initial is None or initial is not None:
                count = item.count // width
                found[name] = replace(
                    item, type=type_, count=count if count > 1 else None, initial=initial, alignment=item.aligned
                )
    return found


def _accesses(op: Op) -> Iterator[tuple[str, int, int]]:
    """The variable, the offset in bytes and the width of each access of ``op`` that names its variable."""
    places: list[tuple[Address, int]] = [(place, MBARRIER_BYTES) for place in operands(op)]
    if isinstance(op, Load | Store | Atomic):
        places.append((op.address, op.type.bytes))
    for place, size in places:
        if isinstance(place.base, Sym):
            yield place.base.name, place.base.offset + place.offset, size


def regrouped(values: tuple[Initial, ...], old: Type, new: Type) -> tuple[Initial, ...] | None:
    """The initial bytes in ``values`` of type ``old`` as values of type ``new``; None if some are addresses."""
    numbers = [value.value for value in values if isinstance(value, Constant)]
    if len(numbers) < len(values):
        return None
    data = b"".join((n & (1 << old.bits) - 1).to_bytes(old.bytes, "little") for n in numbers)
    span = values[0].span if values else Span(1, 1, 2)
    return tuple(
        Constant(int.from_bytes(data[i : i + new.bytes], "little"), span, True) for i in range(0, len(data), new.bytes)
    )
