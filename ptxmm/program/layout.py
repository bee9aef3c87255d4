"""Memory objects: one per variable (per CTA for ``.shared``, per thread for ``.local``), their addresses and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ptxmm.errors import PtxmmError, Span
from ptxmm.program.placement import Cta, find_cta, short_names
from ptxmm.program.source import AddressOf, Alias, Constant, TestSource, Value, Variable
from ptxmm.program.test import MemoryObject
from ptxmm.ptx.ops import Type

MAX_ELEMENTS = 1 << 20
MAX_VARIABLES = 2_000

_DEFAULT_ZERO = ("global", "const")


@dataclass(frozen=True, slots=True)
class Layout:
    """The objects by key, and for each thread the key of every variable it may name."""

    objects: dict[str, MemoryObject]
    names: tuple[dict[str, str], ...]


def address_of(number: int) -> int:
    """The address of the object with this number.

    Two bytes of it are the number (from 1), so that a pointer torn into bytes of several addresses, or of one and 0,
    points nowhere: mixed-size accesses and undefined behaviour are not seen where no such pointer is read.
    """
    high, low = divmod(number + 1, 256)
    return (0x70 + high) << 40 | low << 32 | low << 24


def lay_out(
    source: TestSource, ctas: Sequence[Cta | None], used: Sequence[set[str]], types: Mapping[str, Type]
) -> Layout:
    """Give every variable its objects and addresses.

    ``used`` are the variables that each thread names; ``types`` the types of variables declared without one.
    Raises ``PtxmmError`` (kinds ``name``, ``type``, ``unsupported``).
    """
    if len(source.declarations) > MAX_VARIABLES:
        raise error(f"more than {MAX_VARIABLES} variables", source.declarations[MAX_VARIABLES].span)
    variables: dict[str, Variable | Alias] = {}
    for declaration in source.declarations:
        if declaration.name in variables:
            line = variables[declaration.name].span.line
            message = f"`{declaration.name}` is declared twice; the first time on line {line}"
            raise error(message, declaration.span)
        variables[declaration.name] = declaration
    used = [_through_aliases(names, variables) for names in used]
    objects: dict[str, MemoryObject] = {}
    names: tuple[dict[str, str], ...] = tuple({} for _ in source.threads)
    values: list[tuple[str, Variable]] = []
    elements = 0
    for declaration in source.declarations:
        if isinstance(declaration, Alias):
            made = _alias(declaration, objects, variables)
            objects[made.key] = made
            for mapping in names:
                mapping[declaration.name] = made.key
            continue
        for made, threads in _instances(declaration, source, ctas, used, types):
            elements += made.count
            if elements > MAX_ELEMENTS:
                raise error(f"the variables have more than {MAX_ELEMENTS} elements", declaration.span, kind="type")
            objects[made.key] = made
            values.append((made.key, declaration))
            for thread in threads:
                names[thread][declaration.name] = made.key
    own = (key for key, item in objects.items() if item.virtual == key)
    addresses = {key: address_of(number) for number, key in enumerate(own)}
    objects = {key: replace(item, address=addresses[item.virtual]) for key, item in objects.items()}
    initial = {key: _initial(variable, objects[key], objects) for key, variable in values}
    objects = {key: replace(item, initial=initial[item.physical]) for key, item in objects.items()}
    return Layout(objects, names)


def error(message: str, span: Span, *, kind: str = "name", hint: str | None = None) -> PtxmmError:
    """An error of kind ``name`` (or another) at ``span``."""
    width = max(1, span.end_column - span.column)
    return PtxmmError(message, kind=kind, line=span.line, column=span.column, width=width, hint=hint)


def did_you_mean(name: str, known: Sequence[str]) -> str | None:
    """A hint that names what ``name`` may be a slip for."""
    from difflib import get_close_matches

    matches = get_close_matches(name[:60], known[:1000], 1)
    return f"did you mean `{matches[0]}`?" if matches else None


def find_object(objects: Mapping[str, MemoryObject], name: str, span: Span) -> MemoryObject:
    """The one object with this name as written; raises ``PtxmmError`` if there is none or several."""
    if name in objects and objects[name].name == name:
        # The key is the name itself where there is only one object.
        return objects[name]
    found = [item for item in objects.values() if item.name == name]
    if len(found) == 1:
        return found[0]
    if not found:
        hint = did_you_mean(name, [item.name for item in objects.values()])
        raise error(f"no variable is called `{name}`", span, hint=hint)
    keys = ", ".join(f"`{item.key}`" for item in found[:4])
    raise error(f"`{name}` exists {len(found)} times: {keys}", span, hint="name the one that is meant")


def constant(value: int, type_: Type, span: Span) -> int:
    """``value`` as an unsigned integer of ``type_``; raises ``PtxmmError`` (kind ``type``) if it does not fit."""
    if not -(1 << (type_.bits - 1)) <= value < 1 << type_.bits:
        raise error(f"{value} does not fit in {type_.bits} bits (.{type_.name})", span, kind="type")
    return value & ((1 << type_.bits) - 1)


def evaluate(value: Value, type_: Type, objects: Mapping[str, MemoryObject]) -> int:
    """The unsigned integer of ``type_`` that ``value`` stands for. Raises ``PtxmmError``."""
    if isinstance(value, Constant):
        return constant(value.value, type_, value.span)
    return address(value, type_, objects)[1]


def address(value: AddressOf, type_: Type | None, objects: Mapping[str, MemoryObject]) -> tuple[MemoryObject, int]:
    """The object and the address that ``value`` means, to be held in ``type_``. Raises ``PtxmmError``."""
    target = value.target
    if target.path is not None:
        found = [item for item in objects.values() if item.name == target.name and lies_in(item, target.path.levels)]
        if len(found) != 1:
            raise error(f"no variable is called `{target.path.text}:{target.name}`", value.span)
        item = found[0]
    else:
        item = find_object(objects, target.name, target.span)
    if type_ is not None and type_.bits != 64:
        message = f"the address of {item.name} has 64 bits and does not fit in .{type_.name}"
        raise error(message, value.span, kind="type")
    index = 0 if target.index is None else target.index
    if not 0 <= index * item.type.bytes + value.offset <= item.size:
        raise error(f"the address is outside {item.name}, which has {item.size} bytes", value.span, kind="type")
    return item, item.address + index * item.type.bytes + value.offset


def lies_in(item: MemoryObject, levels: Sequence[tuple[str, int]]) -> bool:
    """Whether ``item`` lies in a CTA with these ``levels`` of its path."""
    if item.owner is None:
        return False
    numbers = dict(zip(("gpu", "grid", "cluster", "cta"), item.owner, strict=True))
    return all(numbers.get(level) == number for level, number in levels)


def _through_aliases(names: set[str], variables: Mapping[str, Variable | Alias]) -> set[str]:
    found: set[str] = set()
    for name in names:
        current: str | None = name
        while current is not None and current not in found:
            found.add(current)
            item = variables.get(current)
            current = item.target if isinstance(item, Alias) else None
    return found


def _instances(
    variable: Variable,
    source: TestSource,
    ctas: Sequence[Cta | None],
    used: Sequence[set[str]],
    types: Mapping[str, Type],
) -> list[tuple[MemoryObject, list[int]]]:
    """The objects of a variable, without addresses, each with the threads for which its name means this object."""
    type_ = variable.type or types.get(variable.name)
    if type_ is None:
        message = f"the type of {variable.name} is not known: no instruction names it in its address"
        hint = f"declare it with a type: `.global .u32 {variable.name} = 0;`"
        raise error(message, variable.span, kind="type", hint=hint)
    name = variable.name

    def make(key: str, owner: Cta | None) -> MemoryObject:
        count, is_array = variable.count or 1, variable.count is not None
        path = owner.path if owner is not None else None
        return MemoryObject(key, name, variable.space, type_, count, is_array, (), 0, key, key, path)

    everyone = list(range(len(source.threads)))
    if variable.space in _DEFAULT_ZERO:
        return [(make(name, None), everyone)]
    if variable.initial is None:
        hint = f"give it one: `.{variable.space} .{type_.name} {name} = 0;`"
        message = f"the .{variable.space} variable {name} has no initial value"
        raise error(message, variable.span, kind="unsupported", hint=hint)
    users = [i for i in everyone if name in used[i]]
    if variable.space == "local":
        if not users:
            raise error(f"no thread names the .local variable {name}", variable.span)
        prefix = {i: f"{source.threads[i].name}:" if len(users) > 1 else "" for i in users}
        return [(make(f"{prefix[i]}{name}", None), [i]) for i in users]
    if variable.owner is not None:
        return [(make(name, find_cta(variable.owner, ctas)), everyone)]
    for i in users:
        if ctas[i] is None:
            thread = source.threads[i]
            raise error(f"{thread.name} is a host thread and can't name the .shared variable {name}", thread.span)
    owners = list(dict.fromkeys(cta for i in users if (cta := ctas[i]) is not None))
    if not owners:
        hint = f"say in which CTA it is: `.shared .{type_.name} {name} @ cta 0 = 0;`"
        raise error(f"no thread names the .shared variable {name}", variable.span, hint=hint)
    if len(owners) == 1:
        return [(make(name, owners[0]), [i for i in everyone if ctas[i] == owners[0]])]
    for owner in owners:
        if owner.thread is not None:
            thread = source.threads[owner.thread]
            message = f"{thread.name} names the .shared variable {name}, so its CTA needs a name"
            raise error(message, thread.span, hint=f"write `{thread.name} @ cta 0`")
    keys = short_names(owners)
    return [(make(f"{keys[o]}:{name}", o), [i for i in everyone if ctas[i] == o]) for o in owners]


def _alias(
    alias: Alias, objects: Mapping[str, MemoryObject], variables: Mapping[str, Variable | Alias]
) -> MemoryObject:
    found = [item for item in objects.values() if item.name == alias.target]
    if not found:
        if alias.target in variables:
            raise error(f"`{alias.target}` is declared after its alias", alias.target_span, hint="declare it before")
        hint = did_you_mean(alias.target, list(variables))
        raise error(f"no variable is called `{alias.target}`", alias.target_span, hint=hint)
    if len(found) > 1:
        message = f"`{alias.target}` exists once in each of {len(found)} CTAs, so it can't have an alias"
        raise error(message, alias.target_span, hint="give it an owner: `.shared .u32 s @ cta 0 = 0;`")
    target = found[0]
    if target.proxy != "generic":
        message = f"`{target.name}` is itself a {target.proxy} alias"
        raise error(message, alias.target_span, hint=f"name the variable: {target.alias_of}")
    virtual = alias.name if alias.proxy == "generic" else target.virtual
    return replace(
        target, key=alias.name, name=alias.name, virtual=virtual, proxy=alias.proxy, alias_of=alias.target
    )


def _initial(variable: Variable, item: MemoryObject, objects: Mapping[str, MemoryObject]) -> tuple[int, ...]:
    given = [evaluate(value, item.type, objects) for value in variable.initial or ()]
    return (*given, *[0] * (item.count - len(given)))
