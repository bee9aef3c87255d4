"""The initial values of variables and registers, of mbarriers and of tensor maps (PTX ISA 5.4.4, 5.5, 9.7.14.15)."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import Span
from ptxmm.program.floats import real_bits
from ptxmm.program.naming import address, error, find_object
from ptxmm.program.shared.tensors import TENSORMAP_BYTES, encode, problem
from ptxmm.program.source import AddressOf, Constant, MbarrierState, Real, TensorMapValue, Value, Variable
from ptxmm.program.test import MemoryObject, TensorMap
from ptxmm.ptx.ops import Type

_PRECISION = {16: 11, 32: 24, 64: 53}
"""Up to this power of two every integer is a number of the floating-point type with so many bits."""
_TENSORMAP_SPACES = ("global", "const", "param", "shared")


class InitialState(Struct, frozen=True):
    """What an object holds before the program: the fields of ``MemoryObject`` of the same names."""

    initial: tuple[int, ...]
    mbarrier: tuple[tuple[int, int] | None, ...] = ()
    tensormap: TensorMap | None = None


def with_state(item: MemoryObject, state: InitialState) -> MemoryObject:
    """``item`` in its initial state."""
    return replace(item, initial=state.initial, mbarrier=state.mbarrier, tensormap=state.tensormap)


def constant(value: int, type_: Type, span: Span) -> int:
    """``value`` as an unsigned integer of ``type_``; raises ``PtxmmError`` (kind ``type``) if it does not fit."""
    if not -(1 << (type_.bits - 1)) <= value < 1 << type_.bits:
        raise error(f"{value} does not fit in {type_.bits} bits (.{type_.name})", span, kind="type")
    return value & ((1 << type_.bits) - 1)


def real(value: Real, type_: Type) -> int:
    """The bits of ``value`` in ``type_``; raises ``PtxmmError`` (kind ``type``) if that holds no such numbers."""
    bits = real_bits(value.text, type_)
    if bits is None:
        hint = "floating-point constants go with .f16, .f32, .f64, .b32 and .b64"
        raise error(f"{value.text} is no value of .{type_.name}", value.span, kind="type", hint=hint)
    return bits


def number(value: Constant, type_: Type) -> int:
    """The unsigned integer of ``type_`` for an integer constant: in a floating-point type the bits of that number, or
    the bits themselves where it is written as ``0x3F800000``.

    Raises ``PtxmmError`` (kind ``type``) if it does not fit, or may be meant as the bits of a floating-point number.
    """
    if type_.kind != "f" or (value.bits and value.value >= 0):
        return constant(value.value, type_, value.span)
    if abs(value.value) > 1 << _PRECISION[type_.bits]:
        hint = "write a number as 1.0, its bits as 0f3F800000 (.f32) or 0d3FF0000000000000 (.f64)"
        raise error(f"{value.value} is no value of .{type_.name}", value.span, kind="type", hint=hint)
    return real(Real(f"{value.value}.0", value.span), type_)


def evaluate(value: Value, type_: Type, objects: Mapping[str, MemoryObject]) -> int:
    """The unsigned integer of ``type_`` that ``value`` stands for. Raises ``PtxmmError``."""
    match value:
        case Constant():
            return number(value, type_)
        case Real():
            return real(value, type_)
        case AddressOf():
            return address(value, type_, objects)[1]


def initial_state(variable: Variable, item: MemoryObject, objects: Mapping[str, MemoryObject]) -> InitialState:
    """What the object ``item`` of ``variable`` holds at first; elements without a value hold 0.

    Raises ``PtxmmError`` (kinds ``type``, ``name``).
    """
    given = variable.initial or ()
    if given and isinstance(given[0], TensorMapValue):
        return _tensormap(given[0], item, objects)
    values = [0] * item.count
    barriers: list[tuple[int, int] | None] = [None] * item.count
    for index, value in enumerate(given):
        match value:
            case MbarrierState(pending, tx, span):
                _check_mbarrier(item, span)
                barriers[index] = (pending, tx)
            case TensorMapValue(span=span):
                raise error("a tensor map is the initial value of a whole variable", span, kind="type")
            case _:
                values[index] = evaluate(value, item.type, objects)
    return InitialState(tuple(values), tuple(barriers) if any(barriers) else ())


def _check_mbarrier(item: MemoryObject, span: Span) -> None:
    """An mbarrier is a 64-bit object in .shared (PTX ISA 9.7.14.15.1)."""
    if item.space != "shared":
        message = f"an mbarrier is in .shared memory, but {item.name} is in .{item.space}"
        raise error(message, span, kind="type", hint=f"declare it `.shared .b64 {item.name}`")
    if item.type != Type("b", 64):
        message = f"an mbarrier has the type .b64, but {item.name} is .{item.type.name}"
        raise error(message, span, kind="type", hint=f"declare it `.shared .b64 {item.name}`")


def _tensormap(value: TensorMapValue, item: MemoryObject, objects: Mapping[str, MemoryObject]) -> InitialState:
    """The bytes of a tensor map as values of the elements of ``item``."""
    hint = f"declare it `.global .align 64 .b8 {item.name}[{TENSORMAP_BYTES}]`"
    if item.space not in _TENSORMAP_SPACES:
        message = f"a tensor map is in .global, .const, .param or .shared memory, but {item.name} is in .{item.space}"
        raise error(message, value.span, kind="type", hint=hint)
    if item.size != TENSORMAP_BYTES or item.type.kind == "f":
        message = f"a tensor map has {TENSORMAP_BYTES} bytes, but {item.name} has {item.size}"
        if item.size == TENSORMAP_BYTES:
            message = f"a tensor map is not made of .{item.type.name} elements"
        raise error(message, value.span, kind="type", hint=hint)
    target = find_object(objects, value.target.name, value.target.span)
    if target.space != "global" or target.proxy != "generic":
        message = f"the tensor of a tensor map is in .global memory, but {target.name} is in .{target.space}"
        raise error(message, value.target.span, kind="type")
    made = _shape(value, target)
    content, step = encode(target.address, made), item.type.bytes
    words = tuple(int.from_bytes(content[i : i + step], "little") for i in range(0, TENSORMAP_BYTES, step))
    return InitialState(words, (), made)


def _shape(value: TensorMapValue, target: MemoryObject) -> TensorMap:
    """What ``value`` says of its tensor, which lies in ``target``."""
    made = completed(value, target.key, target.size)
    wrong = problem(value.type, value.box, made.dims, made.strides, value.steps)
    if wrong is not None:
        raise error(wrong, value.span, kind="type")
    last = sum((size - 1) * step for size, step in zip(made.dims, (value.type.bytes, *made.strides), strict=True))
    if last + value.type.bytes > target.size:
        message = f"the tensor has {last + value.type.bytes} bytes, but {target.name} has {target.size}"
        raise error(message, value.span, kind="type")
    return made


def completed(value: TensorMapValue, target: str, size: int) -> TensorMap:
    """What ``value`` says of its tensor, with what was left out; ``target`` has ``size`` bytes."""
    dims = value.dims if value.dims is not None else (size // value.type.bytes,)
    strides = value.strides
    if strides is None:
        strides = tuple(prod(dims[: i + 1]) * value.type.bytes for i in range(len(dims) - 1))
    return TensorMap(target, value.type, value.box, dims, strides, value.steps)
