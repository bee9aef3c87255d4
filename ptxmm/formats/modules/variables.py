"""The variables of a module and the objects of its launch, as the memory objects of a test."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence

from msgspec.structs import replace

from ptxmm.errors import Span
from ptxmm.formats.modules.arguments import TENSORMAP_ALIGNMENT, ObjectSpec, Scalar, place
from ptxmm.formats.modules.grids import Grid
from ptxmm.formats.modules.inline import Flat
from ptxmm.formats.modules.launch import Launch
from ptxmm.formats.modules.objects import Object, regrouped
from ptxmm.formats.modules.parameters import Parameter
from ptxmm.program.naming import did_you_mean
from ptxmm.program.source import AddressOf, Constant, Initial, NameTerm, Real, TensorMapValue
from ptxmm.ptx import module_syntax as ptx
from ptxmm.ptx.ops import Type

_WORD = Type("b", 64)


def variables_of(
    module: ptx.Module, flat: Flat, launch: Launch, grid: Grid, asked: Container[str], others: Container[str]
) -> tuple[dict[str, Object], dict[str, str]]:
    """The memory objects that the kernel of ``grid`` may name, and for each name of a variable that of its object: all
    ``extern .shared`` arrays of a module are one (CUDA C++ Programming Guide 10.2.3).

    ``asked``: the variables that the condition names; ``others``: those that functions of other grids declare. Raises
    ``PtxmmError`` where the launch does not fit.
    """
    specs = {item.name: item for item in launch.objects}
    found: dict[str, Object] = {}
    declared = (*module.variables, *flat.variables.values())
    dynamic = [v for v in declared if v.linkage == "extern" and v.space == "shared"]
    shared = [_dynamic(dynamic, specs, asked, launch, grid)] if dynamic else []
    names = {v.name: shared[0].name for v in dynamic}
    for variable in (*(v for v in declared if v not in dynamic), *shared):
        if variable.opaque is None and variable.space in ("global", "const", "shared", "local"):
            found[variable.name] = _of_module(variable, specs.get(variable.name), launch)
    found |= {name: _of_parameter(parameter, launch, grid) for name, parameter in flat.addressed.items()}
    for name, spec in specs.items():
        if name not in found and name not in names and name not in others:
            found[name] = _of_launch(spec, "param" if name in flat.by_value else "global", found, launch)
    keys = {name: name for name in found} | names
    _check_arguments(launch, grid, keys, others)
    return found, keys


def _check_arguments(launch: Launch, grid: Grid, known: Collection[str], others: Container[str]) -> None:
    """Refuse an argument that points to nothing, or an initial value that does not to one of ``others`` either."""
    for spec in launch.objects:
        for value in spec.initial if isinstance(spec.initial, tuple) else ():
            name = (place(value) or (value,))[0] if isinstance(value, str) else None
            if name is not None and name not in known and name not in others:
                message = f"no variable is called `{name}`"
                raise launch.error(spec.span, message, "name", did_you_mean(name, ["unknown", *known]))
    for argument in grid.args:
        for piece in argument.pieces:
            target = place(piece.value) if isinstance(piece.value, str) else None
            if target is not None and target[0] not in known:
                hint = did_you_mean(target[0], list(known)) or f'[objects] {target[0]} = {{ type = "u32" }}'
                message = f"the argument `{target[0]}` is no object of this launch"
                raise launch.error(argument.span, message, "name", hint)


def _of_launch(spec: ObjectSpec, space: str, known: Collection[str], launch: Launch) -> Object:
    if spec.type is None:
        hint = did_you_mean(spec.name, list(known)) or 'give it a type: { type = "u32" }'
        raise launch.error(spec.span, f"`{spec.name}` is no variable of the module", "name", hint)
    initial = _initial(spec, spec.type, spec.count)
    _with_value(spec, space, launch)
    return Object(spec.name, space, spec.type, spec.count, initial, spec.alignment, spec.span, True)


def _dynamic(
    arrays: Sequence[ptx.Variable], specs: Container[str], asked: Container[str], launch: Launch, grid: Grid
) -> ptx.Variable:
    """The dynamic shared memory of a CTA as one variable, by the one of its names, ``arrays``, that the launch uses."""
    named = [v for v in arrays if v.name in specs or v.name in asked] or [arrays[0]]
    if len(named) > 1:
        first, second = (v.name for v in named[:2])
        message = f"`{first}` and `{second}` begin at the same address: both are the dynamic shared memory"
        span = next((item.span for item in launch.objects if item.name == second), launch.spans["condition"])
        raise launch.error(span, message, "name", f"name only `{first}`")
    types = {v.type for v in arrays}
    type_ = named[0].type if len(types) == 1 else Type("b", 8)
    size = grid.shared or max(v.type.bytes * (1 if v.count is None else v.count) for v in arrays)
    alignment = max(v.alignment or v.type.bytes for v in arrays)
    return replace(named[0], type=type_, count=size // type_.bytes, alignment=alignment)


def _with_value(spec: ObjectSpec, space: str, launch: Launch) -> None:
    """Refuse a barrier where it is an mbarrier. Raises ``PtxmmError``."""
    if spec.library == "barrier" and space == "shared":
        message = f"`{spec.name}` is in shared memory, where a cuda::barrier is an mbarrier: the kernel initialises it"
        raise launch.error(spec.span, message, "unsupported", "leave it out of [objects]")


def _of_parameter(parameter: Parameter, launch: Launch, grid: Grid) -> Object:
    """A parameter of the kernel as an object in ``.param``: in words of 64 bits where it holds addresses or tensor
    maps, which are the values of their first words."""
    variable, size = parameter.variable, len(parameter.bytes)
    step = 8 if size % 8 == 0 else 4 if size % 4 == 0 else 1
    specs = {spec.name: spec for spec in launch.objects}
    if (parameter.addresses or parameter.maps) and (step < 8 or any(offset % 8 for offset in parameter.addresses)):
        message = f"a structure of {size} bytes with addresses, the address of which is taken, is not supported"
        raise launch.error(grid.spans["args"], message, "unsupported")
    values: list[Initial] = []
    for offset in range(0, size, step):
        target = parameter.addresses.get(offset)
        if offset in parameter.maps:
            values += _initial(specs[parameter.maps[offset]], _WORD, None) or ()
        elif target is not None:
            values.append(AddressOf(NameTerm(target[0], variable.span), target[1], variable.span))
        else:
            number = sum(parameter.bytes[offset + i] << 8 * i for i in range(step))
            values.append(Constant(number, variable.span, True))
    count = size // step
    type_ = Type("b", 8 * step)
    alignment = TENSORMAP_ALIGNMENT if parameter.maps else None
    return Object(variable.name, "param", type_, count if count > 1 else None, tuple(values), alignment, variable.span)


def _of_module(variable: ptx.Variable, spec: ObjectSpec | None, launch: Launch) -> Object:
    type_, count = variable.type, variable.count
    initial: tuple[Initial, ...] | None = None if variable.space in ("shared", "local") else ()  # 0 (5.4.4)
    if variable.initial is not None:
        initial = tuple(_value(item, variable.span) for item in variable.initial)
    if spec is not None:
        size = type_.bytes * (count if count is not None else 1)
        if spec.type is not None and spec.type != type_:
            elements = size // spec.type.bytes
            if elements == 0 and size:
                message = f"`{variable.name}` has {size} bytes, less than one element of {spec.type.name}"
                raise launch.error(spec.span, message, "type", f"the module declares it as {type_.name}")
            if initial and spec.initial is None:
                initial = regrouped(initial, type_, spec.type) or initial
            type_, count = spec.type, None if elements == 1 and spec.count is None else elements
        _with_value(spec, variable.space, launch)
        has = 1 if count is None else count
        if spec.count is not None and spec.count > has:
            message = f"`{variable.name}` has {has} elements of {type_.name}, not {spec.count}"
            raise launch.error(spec.span, message, "type", "leave out `count`: the module declares how large it is")
        if spec.initial is not None:
            initial = _initial(spec, type_, count)
    alignment = variable.alignment
    if alignment is None and type_ != variable.type:
        alignment = variable.type.bytes
    if spec is not None and spec.alignment is not None:
        alignment = max(alignment or 1, spec.alignment)
    typed = spec is not None and spec.type is not None
    return Object(variable.name, variable.space, type_, count, initial, alignment, variable.span, typed)


def _value(item: int | ptx.SymbolAddress, span: Span) -> Initial:
    if isinstance(item, int):
        return Constant(item, span, True)
    return AddressOf(NameTerm(item.name, item.span), item.offset, item.span)


def _initial(spec: ObjectSpec, type_: Type, count: int | None) -> tuple[Initial, ...] | None:
    if spec.tensormap is not None:
        made = spec.tensormap
        target = NameTerm(made.target, spec.span)
        steps = made.steps if made.steps is not None else (1,) * len(made.box)
        return (TensorMapValue(target, made.type, made.box, spec.span, made.dims, made.strides, steps),)
    if spec.initial == "unknown":
        return None
    given: tuple[Scalar, ...] = spec.initial or ()
    if len(given) == 1 and count is not None and count > 1 and spec.count is None:
        given = given * count
    return tuple(_scalar(value, spec.span) for value in given)


def _scalar(value: Scalar, span: Span) -> Initial:
    if isinstance(value, str):
        name, offset = place(value) or (value, 0)
        return AddressOf(NameTerm(name, span), offset, span)
    if isinstance(value, float):
        return Real(repr(value), span)
    return Constant(value, span)
