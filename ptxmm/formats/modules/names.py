"""What a launch calls the kernels and variables of a module, and what results call them: by their names in C++."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from ptxmm.errors import Span
from ptxmm.formats.modules.arguments import Argument, ObjectSpec, Scalar, place
from ptxmm.formats.modules.demangle import demangled, parameters, qualified
from ptxmm.formats.modules.launch import Launch
from ptxmm.program.condition import Comparison, comparisons, mapped
from ptxmm.program.naming import did_you_mean
from ptxmm.program.source import AddressOf, NameTerm, RawTerm
from ptxmm.ptx import module_syntax as ptx

_SUFFIX = re.compile(r"\b([0-9]+)[uUlL]+\b")


def spoken(name: str) -> str:
    """``name`` of a module as it is in C++: ``ns::kernel<float>``, or ``name``."""
    return demangled(name) or name


def titles(names: Collection[str]) -> dict[str, str]:
    """What results call each of several kernels: as C++ does, with the types of its parameters where two have one name,
    or by its name in the module where that is not enough."""
    found = {name: spoken(name) for name in names}
    count = Counter(found.values())
    for name, called in found.items():
        if count[called] > 1 and (types := parameters(name)) is not None:
            found[name] = f"{called}({types})"
    count = Counter(found.values())
    return {name: called if count[called] == 1 else name for name, called in found.items()}


def matching(given: str, names: Collection[str]) -> list[str]:
    """Those of ``names`` that ``given`` may mean: ``ns::kernel<float>`` is called so, or ``kernel<float>``, or
    ``kernel``, or ``kernel<float>(float*)``; and what it declares ``kernel<float>::tile``, ``kernel()::tile``,
    ``tile``. Unnamed namespaces may be left out."""
    if given in names:
        return [given]
    wanted, types = _without_parameters(_parts(_plain(given)))
    found: list[list[str]] = [[] for _ in range(5)]
    for name in names:
        parts = _parts(_plain(spoken(name)))
        ends = parts[-len(wanted) :]
        if parts == wanted:
            found[0].append(name)
        elif given.startswith("::") and _called(_named(parts), _named(wanted)):
            found[1].append(name)
        elif ends == wanted:
            found[2].append(name)
        elif _called(ends, wanted):
            found[3].append(name)
        elif _called(_named(parts)[-len(_named(wanted)) :], _named(wanted)):
            found[4].append(name)
    best = next((some for some in found if some), [])
    if types is not None and len(best) > 1:
        return [name for name in best if _plain(parameters(name) or "") == types] or best
    return best


def _called(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether ``wanted`` means what has these ``parts``: template arguments may be left out."""
    return len(parts) == len(wanted) and all(
        other in (own, own.partition("<")[0]) for own, other in zip(parts, wanted, strict=True)
    )


def _named(parts: Sequence[str]) -> list[str]:
    return [part for part in parts if part != "(anonymousnamespace)"]


def _plain(name: str) -> str:
    """``name`` without blanks, and without what tells the types of integers."""
    name = re.sub(r"\bconst\s+((?:unsigned\s+|signed\s+)?[\w:]+)", r"\1 const", name)
    name = re.sub(r"\bunsigned\b(?!\s*(?:int|char|short|long|__int128)\b)", "unsigned int", name)
    return _SUFFIX.sub(r"\1", re.sub(r"\s", "", name)).removeprefix("::")


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


def _without_parameters(parts: Sequence[str]) -> tuple[list[str], str | None]:
    """``parts`` of a name without the types of parameters in it, and these types if there are some."""
    found: list[str] = []
    types: str | None = None
    for part in parts:
        depth = 0
        for at in range(len(part)):
            if part[at] == "(" and depth == 0 and at and part[-1] == ")" and part[:at] != "operator":
                types = part[at + 1 : -1]
                part = part[:at]
                break
            depth += (part[at] in "<({") - (part[at] in ">)}")
        found.append(part)
    return found, types


def understood(launch: Launch, module: ptx.Module, entries: Sequence[ptx.Function]) -> Launch:
    """``launch`` with the names that the module has for variables which it calls as C++ does. Raises ``PtxmmError``
    where a name means none of the variables that the kernels ``entries`` may have, or several."""
    known = [v.name for v in (*_common(module), *(v for entry in entries for v in entry.variables))]
    own = set(_own(launch))
    short = set(short_names(module, entries, launch).values())
    names: dict[str, str] = {}
    for name, span in _mentioned(launch):
        whole = qualified(name) == len(name)
        if name in known or name in short or (name in own and not whole):
            continue
        found = matching(name, known)
        if len(found) == 1:
            names[name] = found[0]
        elif found:
            which = " or ".join(list(titles(found).values())[:4])
            raise launch.error(span, f"{len(found)} variables are called `{name}`", "name", f"say which: {which}")
        elif whole:
            every = [called for called in titles(known).values() if "::" in called]
            hint = did_you_mean(name, every) or (f"there are {', '.join(every[:5])}" if every else None)
            raise launch.error(span, f"no variable is called `{name}`", "name", hint)
    return renamed(launch, names)


def _common(module: ptx.Module) -> list[ptx.Variable]:
    """The variables that every kernel may have."""
    return [*module.variables, *(v for f in module.functions.values() if not f.entry for v in f.variables)]


def short_names(module: ptx.Module, entries: Sequence[ptx.Function], launch: Launch) -> dict[str, str]:
    """What results call the variables that the kernels ``entries`` may have, by their names in the module: the last
    part of the name in C++, with as many of those before it as tell it from all others that a kernel may have."""
    common = _common(module)
    taken = {v.name for v in common} | set(_own(launch))
    host = {word for text, _ in launch.host.values() for word in re.findall(r"\w+", text)}
    found: dict[str, list[str]] = {}
    for entry in entries:
        names = [v.name for v in (*common, *entry.variables)]
        ends = {name: _ends(known) for name in names if (known := demangled(name)) is not None}
        count = Counter([*chain(*ends.values()), *(v.name for v in entry.variables), *taken])
        whole = Counter(own[-1] for own in ends.values() if own and "::" in own[-1])
        for name, own in ends.items():
            # The whole name of one may be the end of that of another.
            found[name] = [
                end for end in found.get(name, own) if count[end] == 1 or (end == own[-1] and whole[end] == 1)
            ]
    return {name: own[0] for name, own in found.items() if own and name not in host}


def _ends(name: str) -> list[str]:
    """What a variable may be called: the ends of its ``name`` in C++, the shortest first, without template arguments
    and with them."""
    parts = _parts(name)
    plain = [part.partition("<")[0] or part for part in parts]
    ends = ["::".join(some[start:]) for start in reversed(range(len(parts))) for some in (plain, parts)]
    return [end for end in dict.fromkeys(ends) if re.fullmatch(r"[A-Za-z_]\w*", end) or qualified(end) == len(end)]


def _own(launch: Launch) -> Iterator[str]:
    """The objects that are the launch's own, whatever the module has: those of a type that something points to."""
    named = {name for name, _ in _targets(launch)}
    named |= {word for text, _ in launch.host.values() for word in re.findall(r"\w+", text)}
    yield from (item.name for item in launch.objects if item.type is not None and item.name in named)


def _targets(launch: Launch) -> Iterator[tuple[str, Span]]:
    """What arguments and objects of a launch point to, and where they say so."""
    values = [(p.value, item.span) for grid in launch.grids for item in grid.args for p in item.pieces]
    for spec in launch.objects:
        values += [(value, spec.span) for value in spec.initial] if isinstance(spec.initial, tuple) else []
        values += [(spec.tensormap.target, spec.span)] if spec.tensormap is not None else []
    for value, span in values:
        target = place(value) if isinstance(value, str) else None
        if target is not None:
            yield target[0], span


def _mentioned(launch: Launch) -> Iterator[tuple[str, Span]]:
    """What a launch calls variables, and where."""
    yield from ((spec.name, spec.span) for spec in launch.objects)
    yield from _targets(launch)
    for found in comparisons(None if launch.condition is None else launch.condition.proposition):
        for term in (found.left, found.right):
            item = term.target if isinstance(term, AddressOf) else term
            if isinstance(item, NameTerm) and item.thread is None:
                yield item.name, item.span


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
