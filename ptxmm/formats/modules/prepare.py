"""The kernels of a launch: one for each grid, whose variables are the same where their names are.

The way: text -> ``ptx.module`` -> ``inline`` (calls, parameters, special registers) -> ``lower`` (resolved
instructions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ptxmm.formats.modules.evaluate import Half
from ptxmm.formats.modules.grids import Grid
from ptxmm.formats.modules.inline import inline
from ptxmm.formats.modules.kernel import Kernel, Reading, as_required, entry_of, kernel_of, named
from ptxmm.formats.modules.launch import Launch
from ptxmm.formats.modules.special import WORKSPACE
from ptxmm.program.source import AddressOf, Initial
from ptxmm.program.symbols import rename
from ptxmm.ptx import module_syntax as ptx
from ptxmm.ptx.ops import Sym

_ONE_EACH = ("shared", "local", "param")
"""The state spaces of which each CTA, thread or grid has its own."""


def prepared(
    module: ptx.Module, launch: Launch, how: Reading, trapping: bool = False, allowed: bool = False
) -> tuple[Kernel, ...]:
    """The kernels of ``module`` that are launched, in the order of their grids; ``trapping``: see ``inline.Flat``;
    ``allowed``: see ``Kernel``. Raises ``PtxmmError``."""
    entries = [entry_of(module, launch, grid) for grid in launch.grids]
    grids = [as_required(entry, launch, grid) for entry, grid in zip(entries, launch.grids, strict=True)]
    flats = [inline(module, entry, launch, grid, trapping) for entry, grid in zip(entries, grids, strict=True)]
    asked = set(named(launch.condition))
    found = [
        kernel_of(module, launch, grid, entry, flats, asked | {_plain(name, grid) for name in asked}, how, allowed)
        for entry, grid in zip(entries, grids, strict=True)
    ]
    return _told_apart(module, launch, found) if len(found) > 1 else tuple(found)


def _plain(name: str, grid: Grid) -> str:
    return name.removesuffix(f"_grid{grid.number}")


def _told_apart(module: ptx.Module, launch: Launch, kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """``kernels`` with a name of its own for what only is of the same name: variables of the module on several GPUs,
    each of which has them (``x_gpu1``), and what two grids have in their CTAs, their threads or their parameters, where
    it is not declared the same (``x_grid1``)."""
    once = {v.name for v in module.variables if v.everywhere}
    several = {v.name for v in module.variables} - once if len(launch.gpus) > 1 else set()
    names = [_names(kernel, kernels, several) for kernel in kernels]
    _refuse_plain(launch, kernels, names)
    return tuple(_renamed(kernel, own) if own else kernel for kernel, own in zip(kernels, names, strict=True))


def _names(kernel: Kernel, kernels: Sequence[Kernel], several: set[str]) -> dict[str, str]:
    """The new names of variables of ``kernel``; ``several``: what each GPU has."""
    found: dict[str, str] = {}
    given = {item.name for item in kernel.launch.objects}
    for name, item in kernel.variables.items():
        if item.space in _ONE_EACH:
            if any(_differs(name, kernel, other) for other in kernels if name in other.variables):
                found[name] = f"{name}_grid{kernel.grid.number}"
        elif name in several:
            found[name] = f"{name}_gpu{kernel.grid.gpu}"
        elif name == WORKSPACE and name not in given:
            found[name] = f"{name}_grid{kernel.grid.number}"
    return found


def _differs(name: str, one: Kernel, other: Kernel) -> bool:
    """Whether ``name`` in the CTAs, the threads or the parameters of two grids is declared by different kernels, or not
    the same in both: what a parameter points to depends on the GPU."""
    space = one.variables[name].space
    if one.variables[name] != other.variables[name]:
        return True
    return one.grid.gpu != other.grid.gpu if space == "param" else one.name != other.name


def _refuse_plain(launch: Launch, kernels: Sequence[Kernel], names: Sequence[Mapping[str, str]]) -> None:
    """Refuse a condition that names what there are several of, and a new name that somebody else has. Raises
    ``PtxmmError``."""
    known = {name for kernel in kernels for name in kernel.variables}
    for own in names:
        for name, new in own.items():
            if new in known:
                message = f"`{name}` of several grids is called `{new}`, which is the name of another variable"
                raise launch.error("grids", message, "name", "rename the other one")
    kept = {name for kernel, own in zip(kernels, names, strict=True) for name in kernel.variables if name not in own}
    for name in named(launch.condition):
        each = sorted({own[name] for own in names if name in own})
        if each and name not in kept:
            hint = f"name one of them: {', '.join(each)}"
            raise launch.error("condition", f"there are {len(each)} variables `{name}`", "name", hint)


def _renamed(kernel: Kernel, names: Mapping[str, str]) -> Kernel:
    """``kernel`` with other ``names`` for its variables."""
    keys = {name: names.get(name, name) for name in kernel.variables}
    variables = {}
    for name, item in kernel.variables.items():
        if item.initial is not None and (name in names or item.space in _ONE_EACH):
            item = replace(item, initial=tuple(_pointing(value, names) for value in item.initial))
        variables[keys[name]] = replace(item, name=keys[name])
    body = tuple(rename(op, keys) for op in kernel.code.body)
    workspace = {
        name: Half(Sym(keys[half.place.name]), half.high, half.placed) for name, half in kernel.workspace.items()
    }
    return replace(kernel, variables=variables, code=replace(kernel.code, body=body), workspace=workspace)


def _pointing(value: Initial, names: Mapping[str, str]) -> Initial:
    """An initial value with the new name of what it points to."""
    if isinstance(value, AddressOf) and value.target.name in names:
        return replace(value, target=replace(value.target, name=names[value.target.name]))
    return value
