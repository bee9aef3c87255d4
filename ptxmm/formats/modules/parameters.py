"""The parameters of a kernel, as the arguments of its launch fill them (PTX ISA 7.1)."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from msgspec import Struct

from ptxmm.formats.modules.arguments import Argument, place
from ptxmm.formats.modules.grids import Grid
from ptxmm.formats.modules.launch import Launch
from ptxmm.formats.modules.names import spoken
from ptxmm.ptx.module_syntax import Function, Variable
from ptxmm.ptx.ops import TENSORMAP_BYTES, Type


class Parameter(Struct, frozen=True):
    """A parameter of the kernel: its bytes, addresses in it by their offset, and tensor maps; ``whole``: the object it
    is."""

    variable: Variable
    bytes: Mapping[int, int]
    addresses: Mapping[int, tuple[str, int]]
    whole: str | None = None
    maps: Mapping[int, str] = {}

    def opaque(self, offset: int, size: int) -> bool:
        """Whether some of these bytes are of a tensor map."""
        return any(start - size < offset < start + TENSORMAP_BYTES for start in self.maps)


def arguments(kernel: Function, launch: Launch, grid: Grid, narrow: bool = False) -> dict[str, Parameter]:
    """The parameters of ``kernel`` with the arguments of ``grid``; ``narrow``: its module has addresses of 32 bits.

    Raises ``PtxmmError`` where they do not fit.
    """
    wanted, given = len(kernel.parameters), len(grid.args)
    if wanted != given:
        message = f"`{spoken(kernel.name)}` has {wanted} parameters, {given} arguments are given"
        types = ", ".join(_declared(variable) for variable in kernel.parameters[:8])
        more = ", ..." if wanted > 8 else ""
        raise launch.error(grid.spans["args"], message, hint=f"its parameters: {types}{more}" if wanted else None)
    return {
        variable.name: _parameter(variable, number, argument, launch, narrow)
        for number, (variable, argument) in enumerate(zip(kernel.parameters, grid.args, strict=True), 1)
    }


def _parameter(variable: Variable, number: int, argument: Argument, launch: Launch, narrow: bool) -> Parameter:
    size = variable.type.bytes * (variable.count if variable.count is not None else 1)
    found: dict[int, int] = dict.fromkeys(range(size), 0)
    addresses: dict[int, tuple[str, int]] = {}
    maps: dict[int, str] = {}
    tensormaps = {item.name for item in launch.objects if item.tensormap is not None}
    for piece in argument.pieces:
        type_ = piece.type or (variable.type if variable.count is None else None)
        if piece.tensormap:
            if piece.value not in tensormaps or piece.offset + TENSORMAP_BYTES > size:
                message = f"`{piece.value}` is no tensor map, or lies behind the end of parameter {number}"
                raise launch.error(argument.span, message, hint="[objects] map = { tensormap = { ... } }")
            maps[piece.offset] = str(piece.value)
            continue
        if isinstance(piece.value, str):
            target, offset = place(piece.value) or (piece.value, 0)
            if piece.type is None and target in tensormaps and size > 8:
                return Parameter(variable, {}, {}, target)
            if type_ is not None and type_.bytes != 8:
                message = f"argument {number} is an address, which has 8 bytes, but the parameter has {type_.bytes}"
                hint = "modules with `.address_size 32` are not supported" if type_.bytes == 4 and narrow else None
                raise launch.error(argument.span, message, hint=hint)
            addresses[piece.offset] = target, offset
            continue
        if type_ is None:
            hint = 'write { fields = [{ u32 = 1 }, { u64 = "data" }] }'
            raise launch.error(argument.span, f"parameter {number} is a structure of {size} bytes", hint=hint)
        bits = _bits(piece.value, type_)
        if bits is None or piece.offset + type_.bytes > size:
            message = f"argument {number} does not fit its parameter ({_declared(variable)})"
            if bits is None and piece.type is not None:
                message = f"{piece.value}, in argument {number}, is no number of the type {type_.name}"
            raise launch.error(argument.span, message)
        found.update((piece.offset + i, bits >> 8 * i & 0xFF) for i in range(type_.bytes))
    return Parameter(variable, found, addresses, maps=maps)


def _declared(variable: Variable) -> str:
    """The type of a parameter, as the module declares it."""
    return f".{variable.type.name}" + ("" if variable.count is None else f" [{variable.count}]")


def _bits(value: float, type_: Type) -> int | None:
    """The unsigned bits of ``value`` in ``type_``, None if it does not fit."""
    if isinstance(value, float) or type_.kind == "f":
        if type_.bits not in (32, 64) or type_.kind not in ("f", "b"):
            return None
        code = "<f" if type_.bits == 32 else "<d"
        try:
            return int.from_bytes(struct.pack(code, value), "little")
        except OverflowError:
            return None
    if not -(1 << type_.bits - 1) <= value < 1 << type_.bits:
        return None
    return int(value) & ((1 << type_.bits) - 1)
