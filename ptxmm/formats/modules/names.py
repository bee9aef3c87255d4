"""What a launch calls the kernels and variables of a module, and what results call them: by their names in C++."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ptxmm.formats.modules.arguments import Argument, ObjectSpec, Scalar, place
from ptxmm.formats.modules.demangle import demangled
from ptxmm.formats.modules.launch import Launch
from ptxmm.program.condition import Comparison, mapped
from ptxmm.program.source import AddressOf, NameTerm, RawTerm
from ptxmm.ptx import module_syntax as ptx

_SUFFIX = re.compile(r"(?<=\d)[uUlL]+\b")


def spoken(name: str) -> str:
    """``name`` of a module as it is in C++: ``ns::kernel<float>``, or ``name``."""
    return demangled(name) or name


def titles(names: Collection[str]) -> dict[str, str]:
    """What results call each of several kernels: as C++ does, unless that is the name of two."""
    count = Counter(map(spoken, names))
    return {name: spoken(name) if count[spoken(name)] == 1 else name for name in names}


def matching(given: str, names: Collection[str]) -> list[str]:
    """Those of ``names`` that ``given`` may mean: ``ns::kernel<float>`` is called so, or ``kernel<float>``, or
    ``kernel``."""
    if given in names:
        return [given]
    found: list[list[str]] = [[], [], []]
    wanted = _plain(given)
    for name in names:
        parts = _parts(_plain(spoken(name)))
        ends = ["::".join(parts[start:]) for start in range(len(parts))]
        without = ["::".join([*parts[start:-1], parts[-1].partition("<")[0]]) for start in range(len(parts))]
        for rank, called in enumerate((ends[:1], ends, without)):
            if wanted in called:
                found[rank].append(name)
    return next((some for some in found if some), [])


def _plain(name: str) -> str:
    """``name`` without blanks, and without what tells the types of integers."""
    return _SUFFIX.sub("", re.sub(r"\s", "", name)).removeprefix("::")


def _parts(name: str) -> list[str]:
    """``ns`` and ``kernel<a::b>`` of ``ns::kernel<a::b>``."""
    found, depth = [""], 0
    for letter in name.replace("::", "\n"):
        depth += (letter in "<({") - (letter in ">)}")
        if letter == "\n" and depth == 0:
            found.append("")
        else:
            found[-1] += "::" if letter == "\n" else letter
    return found


def short_names(module: ptx.Module, entries: Sequence[ptx.Function], launch: Launch) -> dict[str, str]:
    """The last parts of the names in C++ of the variables that the kernels ``entries`` may have, by their names in the
    module, where no other variable that a kernel may have is called so."""
    common = [*module.variables, *(v for f in module.functions.values() if not f.entry for v in f.variables)]
    taken = {v.name for v in common} | set(_own(launch))
    host = {word for text, _ in launch.host.values() for word in re.findall(r"\w+", text)}
    found: dict[str, str] = {}
    refused: set[str] = set()
    for entry in entries:
        names = [v.name for v in (*common, *entry.variables)]
        last = {name: _parts(known)[-1] for name in names if (known := demangled(name)) is not None}
        count = Counter([*last.values(), *(v.name for v in entry.variables), *taken])
        found |= last
        refused |= {name for name, word in last.items() if count[word] > 1 or not re.fullmatch(r"[A-Za-z_]\w*", word)}
    return {name: word for name, word in found.items() if name not in refused | host}


def _own(launch: Launch) -> Iterator[str]:
    """The objects that are the launch's own, whatever the module has: those of a type that something points to."""
    named = set(_targets(launch))
    named |= {word for text, _ in launch.host.values() for word in re.findall(r"\w+", text)}
    yield from (item.name for item in launch.objects if item.type is not None and item.name in named)


def _targets(launch: Launch) -> Iterator[str]:
    """What arguments and objects of a launch point to."""
    values = [piece.value for grid in launch.grids for argument in grid.args for piece in argument.pieces]
    for item in launch.objects:
        values += item.initial if isinstance(item.initial, tuple) else ()
        values += [item.tensormap.target] if item.tensormap is not None else ()
    for value in values:
        target = place(value) if isinstance(value, str) else None
        if target is not None:
            yield target[0]


def renamed(launch: Launch, names: Mapping[str, str]) -> Launch:
    """``launch`` with other ``names`` for variables."""
    grids = tuple(replace(grid, args=tuple(_argument(item, names) for item in grid.args)) for grid in launch.grids)
    condition = launch.condition
    if condition is not None:
        changed = mapped(
            condition.proposition,
            lambda found: Comparison(found.op, _term(found.left, names), _term(found.right, names)),
        )
        condition = replace(condition, proposition=changed)
    objects = tuple(_object(item, names) for item in launch.objects)
    return replace(launch, grids=grids, condition=condition, objects=objects)


def _object(item: ObjectSpec, names: Mapping[str, str]) -> ObjectSpec:
    initial, tensormap = item.initial, item.tensormap
    if isinstance(initial, tuple):
        initial = tuple(_value(value, names) for value in initial)
    if tensormap is not None:
        tensormap = replace(tensormap, target=names.get(tensormap.target, tensormap.target))
    return replace(item, name=names.get(item.name, item.name), initial=initial, tensormap=tensormap)


def _argument(item: Argument, names: Mapping[str, str]) -> Argument:
    return replace(item, pieces=tuple(replace(piece, value=_value(piece.value, names)) for piece in item.pieces))


def _value(value: Scalar, names: Mapping[str, str]) -> Scalar:
    target = place(value) if isinstance(value, str) else None
    if target is None or target[0] not in names:
        return value
    return f"{names[target[0]]}+{target[1]}"


def _term(term: RawTerm, names: Mapping[str, str]) -> RawTerm:
    match term:
        case NameTerm(name=name, thread=None) if name in names:
            return replace(term, name=names[name])
        case AddressOf(target=target) if target.name in names:
            return replace(term, target=replace(target, name=names[target.name]))
    return term
