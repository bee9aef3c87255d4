"""The kernels of a launch: one for each grid, whose variables are the same where their names are.

The way: text -> ``ptx.module`` -> ``inline`` (calls, parameters, special registers) -> ``lower`` (resolved
instructions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ptxmm.formats.modules.grids import Grid
from ptxmm.formats.modules.inline import inline
from ptxmm.formats.modules.kernel import Kernel, Reading, as_required, entry_of, kernel_of, named, with_names
from ptxmm.formats.modules.launch import Launch
from ptxmm.formats.modules.names import renamed, short_names, understood
from ptxmm.formats.modules.objects import Object
from ptxmm.formats.modules.special import WORKSPACE
from ptxmm.program.test import Allowance
from ptxmm.ptx import module_syntax as ptx

_ONE_EACH = ("shared", "local", "param")
"""The state spaces of which each CTA, thread or grid has its own."""


def prepared(
    module: ptx.Module,
    launch: Launch,
    how: Reading,
    trapping: bool = False,
    allowed: tuple[Allowance, ...] = (),
) -> tuple[Kernel, ...]:
    """The kernels of ``module`` that are launched, in the order of their grids; ``trapping``: see ``inline.Flat``;
    ``allowed``: see ``Kernel``. Raises ``PtxmmError``."""
    entries = [entry_of(module, launch, grid) for grid in launch.grids]
    launch = understood(launch, module, entries)
    short = short_names(module, entries, launch)
    launch, inner = renamed(launch, short), renamed(launch, {name: own for own, name in short.items()})
    grids = [as_required(entry, inner, grid) for entry, grid in zip(entries, inner.grids, strict=True)]
    flats = [inline(module, entry, inner, grid, trapping) for entry, grid in zip(entries, grids, strict=True)]
    asked = set(named(inner.condition))
    found = [
        kernel_of(module, inner, grid, entry, flats, asked | {_plain(name, grid) for name in asked}, how, allowed)
        for entry, grid in zip(entries, grids, strict=True)
    ]
    found = [replace(with_names(kernel, short), launch=launch) for kernel in found]
    several = {short.get(v.name, v.name) for v in module.variables if not v.everywhere and len(launch.gpus) > 1}
    return _told_apart(launch, found, several) if len(found) > 1 else tuple(found)


def _plain(name: str, grid: Grid) -> str:
    return name.removesuffix(f"_grid{grid.number}")


def _told_apart(launch: Launch, kernels: Sequence[Kernel], several: set[str]) -> tuple[Kernel, ...]:
    """``kernels`` with a name of its own for what only is of the same name: ``several`` variables of the module, which
    each GPU has (``x_gpu1``), and what two grids have in their CTAs, their threads or their parameters, where it is not
    declared the same (``x_grid1``)."""
    names = [_names(kernel, kernels, several) for kernel in kernels]
    _refuse_plain(launch, kernels, names)
    found = tuple(with_names(kernel, own) for kernel, own in zip(kernels, names, strict=True))
    known: dict[str, Object] = {}
    for name, item in (pair for kernel in found for pair in kernel.variables.items()):
        if known.setdefault(name, item) != item:
            where = next((spec.span for spec in launch.objects if spec.name == name), launch.spans["grids"])
            raise launch.error(where, f"`{name}` would point to another variable on each GPU", "name")
    return found


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
