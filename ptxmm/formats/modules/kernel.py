"""A kernel of a PTX module, launched: its instructions with everything put in that is the same for all its threads.

The way: text -> ``ptx.module`` -> ``inline`` (calls, parameters, special registers) -> ``lower`` (resolved
instructions).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import Span
from ptxmm.formats.modules.inline import inline
from ptxmm.formats.modules.launch import NO_TIMEOUT, SAME_VALUE, Launch
from ptxmm.formats.modules.lower import Code, Locate, lower
from ptxmm.formats.modules.objects import Object
from ptxmm.formats.modules.timeouts import timeouts, without_timeouts
from ptxmm.formats.modules.variables import variables_of
from ptxmm.program.condition import comparisons
from ptxmm.program.naming import did_you_mean
from ptxmm.program.source import AddressOf, NameTerm, RawCondition, RawTerm
from ptxmm.program.symbols import rename
from ptxmm.ptx import module_syntax as ptx

_NOWHERE = Span(1, 1, 2)


class Kernel(Struct, frozen=True):
    """The kernel ``name`` with its ``launch``: all that it may name, by name, its instructions, what the reader of a
    verdict has to know of them, and the assumptions that the verdict rests on; ``allowed``: whether the launch or its
    source allows races of writes of the same value."""

    name: str
    launch: Launch
    variables: dict[str, Object]
    code: Code
    remarks: tuple[str, ...]
    assumed: tuple[str, ...]
    allowed: bool = False


def prepared(
    module: ptx.Module,
    launch: Launch,
    locate: Locate,
    isa: tuple[int, int] | None = None,
    start: Span | None = None,
    trapping: bool = False,
    allowed: bool = False,
) -> Kernel:
    """The kernel of ``module`` that is launched; ``trapping``: see ``inline.Flat``; ``allowed``: see ``Kernel``; the
    rest as in ``module.launched``. Raises ``PtxmmError``."""
    kernel = _kernel(module, launch)
    launch = _as_required(kernel, launch)
    flat = inline(module, kernel, launch, trapping)
    variables, keys = variables_of(module, flat, launch, set(named(launch.condition)))
    others = dict.fromkeys(module.functions, "functions")
    others |= {v.name: "textures, samplers and surfaces" for v in module.variables if v.opaque is not None}
    code = lower(flat, keys, others, isa or module.version, locate, start)
    code = replace(code, body=tuple(rename(op, keys) for op in code.body))
    code, waits, assumed = _assumed(code, launch)
    every = SAME_VALUE in launch.assume
    assumed += (SAME_VALUE,) if every else ()
    return Kernel(kernel.name, launch, variables, code, (*flat.remarks, *waits), assumed, every or allowed)


def _assumed(code: Code, launch: Launch) -> tuple[Code, list[str], tuple[str, ...]]:
    """``code`` under the assumptions of ``launch``, what the reader of a verdict has to know of waits that give up, and
    the assumptions that leave something out."""
    found = timeouts(code)
    if not found:
        return code, [], ()
    lines = ", ".join(map(str, sorted({code.body[item.pc].source.span.line for item in found})))
    where = f"line {lines}: a wait that takes too long traps"
    if NO_TIMEOUT in launch.assume:
        note = f"{where}: executions in which that happens were left out ({NO_TIMEOUT})"
        return without_timeouts(code, found), [note], (NO_TIMEOUT,)
    return code, [f'{where}; assume = ["{NO_TIMEOUT}"] in the launch leaves out the executions in which it does'], ()


def _as_required(kernel: ptx.Function, launch: Launch) -> Launch:
    """``launch`` with the cluster that the kernel asks for. Raises ``PtxmmError`` where it asks for another launch
    (PTX ISA 11.4)."""
    wanted = {key: (*sizes, 1, 1)[:3] for key, sizes in kernel.directives.items() if sizes}
    shown = " x ".join(map(str, launch.block))
    block, most = wanted.get("reqntid"), wanted.get("maxntid")
    if block is not None and block != launch.block:
        raise launch.error(
            "block", f"`{kernel.name}` is for CTAs of {' x '.join(map(str, block))} threads, not {shown}"
        )
    if most is not None and launch.size > prod(most):
        raise launch.error("block", f"`{kernel.name}` is for CTAs of at most {prod(most)} threads, not {launch.size}")
    x, y, z = wanted.get("reqnctapercluster", (0, 0, 0))
    if not x:
        return launch
    if launch.cluster not in (None, (x, y, z)):
        raise launch.error("cluster", f"`{kernel.name}` is for clusters of {x} x {y} x {z} CTAs")
    if any(g % c for g, c in zip(launch.grid, (x, y, z), strict=True)):
        raise launch.error("cluster", f"the grid is not made of whole clusters of {x} x {y} x {z} CTAs")
    return replace(launch, cluster=(x, y, z))


def _kernel(module: ptx.Module, launch: Launch) -> ptx.Function:
    """The entry that is launched."""
    entries = {name: f for name, f in module.functions.items() if f.entry and f.body is not None}
    if launch.kernel is None:
        if len(entries) == 1:
            return next(iter(entries.values()))
        wrong = "no kernel" if not entries else f"{len(entries)} kernels"
        hint = None if not entries else "say which: kernel = " + " or ".join(f'"{name}"' for name in list(entries)[:3])
        raise launch.error(_NOWHERE, f"the module has {wrong}", hint=hint)
    if launch.kernel in entries:
        return entries[launch.kernel]
    mangled = re.compile(rf"_Z(?:N?.*?[A-Za-z_])?{len(launch.kernel)}{re.escape(launch.kernel)}")
    found = [f for name, f in entries.items() if mangled.match(name)]
    if len(found) == 1:
        return found[0]
    message = f"the module has no kernel `{launch.kernel}`"
    hint = did_you_mean(launch.kernel, list(entries)) or ("its kernels: " + ", ".join(list(entries)[:5]))
    if found:
        message = f"{len(found)} kernels are called `{launch.kernel}`"
        hint = "give the mangled name: " + " or ".join(f.name for f in found[:3])
    raise launch.error("kernel", message, "name", hint)


def named(condition: RawCondition | None) -> Iterator[str]:
    """The variables that a condition names."""
    for term in terms(condition):
        if isinstance(term, NameTerm) and term.thread is None:
            yield term.name
        elif isinstance(term, AddressOf):
            yield term.target.name


def terms(condition: RawCondition | None) -> Iterator[RawTerm]:
    """The terms of a condition."""
    for found in comparisons(None if condition is None else condition.proposition):
        yield from (found.left, found.right)
