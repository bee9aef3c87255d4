"""Memory objects: one per variable (per CTA for ``.shared``, per thread for ``.local``), their addresses and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.program.initial import initial_state, with_state
from ptxmm.program.multimem import multimem_object
from ptxmm.program.naming import did_you_mean, error
from ptxmm.program.placement import Cta, find_cta, short_names
from ptxmm.program.shared.windows import with_windows
from ptxmm.program.source import Alias, Declaration, TestSource, Variable
from ptxmm.program.test import MemoryObject
from ptxmm.ptx.ops import Type

MAX_ELEMENTS = 1 << 20
MAX_VARIABLES = 2_000

_DEFAULT_ZERO = ("global", "const")
_SHARED_BY_ALL = (*_DEFAULT_ZERO, "param")


class Layout(Struct, frozen=True):
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
    variables: dict[str, Declaration] = {}
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
        if not isinstance(declaration, Variable):
            made = (
                _alias(declaration, objects, variables)
                if isinstance(declaration, Alias)
                else multimem_object(declaration, objects, variables)
            )
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
    objects = with_windows({key: replace(item, address=addresses[item.virtual]) for key, item in objects.items()})
    initial = {key: initial_state(variable, objects[key], objects) for key, variable in values}
    objects = {key: with_state(item, initial[item.physical]) for key, item in objects.items()}
    return Layout(objects, names)


def _through_aliases(names: set[str], variables: Mapping[str, Declaration]) -> set[str]:
    found: set[str] = set()
    for name in names:
        current: str | None = name
        while current is not None and current not in found:
            found.add(current)
            item = variables.get(current)
            current = item.target if isinstance(item, Alias) else None
    return found


_Instance = tuple[MemoryObject, list[int]]
"""An object, without its address, and the threads for which the name of its variable means it."""


def _instances(
    variable: Variable,
    source: TestSource,
    ctas: Sequence[Cta | None],
    used: Sequence[set[str]],
    types: Mapping[str, Type],
) -> list[_Instance]:
    """The objects of a variable."""
    name, everyone = variable.name, list(range(len(source.threads)))
    type_ = variable.type or types.get(name)
    if type_ is None:
        message = f"the type of {name} is not known: no instruction names it in its address"
        hint = f"declare it with a type: `.global .u32 {name} = 0;`"
        raise error(message, variable.span, kind="type", hint=hint)
    users = [i for i in everyone if name in used[i]]
    if variable.space in _SHARED_BY_ALL:
        return [(_object(variable, type_, name), everyone)]
    if variable.space == "local":
        if not users:
            raise error(f"no thread names the .local variable {name}", variable.span)
        prefix = {i: f"{source.threads[i].name}:" if len(users) > 1 else "" for i in users}
        return [(_object(variable, type_, f"{prefix[i]}{name}", thread=i), [i]) for i in users]
    if variable.owner is not None:
        return [(_object(variable, type_, name, find_cta(variable.owner, ctas)), everyone)]
    owners = _owners(variable, type_, source, ctas, users)
    keys = {owners[0]: name} if len(owners) == 1 else {o: f"{text}:{name}" for o, text in short_names(owners).items()}
    return [(_object(variable, type_, keys[o], o), [i for i in everyone if ctas[i] == o]) for o in owners]


def _owners(
    variable: Variable, type_: Type, source: TestSource, ctas: Sequence[Cta | None], users: Sequence[int]
) -> list[Cta]:
    """The CTAs that have a ``.shared`` variable, which the threads ``users`` name."""
    name = variable.name
    for i in users:
        if ctas[i] is None:
            thread = source.threads[i]
            raise error(f"{thread.name} is a host thread and can't name the .shared variable {name}", thread.span)
    owners = list(dict.fromkeys(cta for i in users if (cta := ctas[i]) is not None))
    if not owners:
        hint = f"say in which CTA it is: `.shared .{type_.name} {name} @ cta 0 = 0;`"
        raise error(f"no thread names the .shared variable {name}", variable.span, hint=hint)
    for owner in owners if len(owners) > 1 else ():
        if owner.thread is not None:
            thread = source.threads[owner.thread]
            message = f"{thread.name} names the .shared variable {name}, so its CTA needs a name"
            raise error(message, thread.span, hint=f"write `{thread.name} @ cta 0`")
    return owners


def _object(
    variable: Variable, type_: Type, key: str, owner: Cta | None = None, thread: int | None = None
) -> MemoryObject:
    return MemoryObject(
        key, variable.name, variable.space, type_, variable.count or 1, variable.count is not None, (), 0, key, key,
        owner=None if owner is None else owner.path,
        unknown=variable.initial is None and variable.space not in _DEFAULT_ZERO,
        alignment=variable.alignment,
        thread=thread if owner is None else owner.thread,
    )  # fmt: skip


def _alias(alias: Alias, objects: Mapping[str, MemoryObject], variables: Mapping[str, Declaration]) -> MemoryObject:
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
    if target.replicas:
        hint = f"write `{alias.name} @ multimem {', '.join(target.replicas)}`"
        raise error(f"`{target.name}` is a multimem address", alias.target_span, kind="type", hint=hint)
    if target.space == "tmem":
        raise error(f"`{target.name}` is tensor memory, which has no aliases", alias.target_span, kind="type")
    if target.proxy != "generic":
        message = f"`{target.name}` is itself a {target.proxy} alias"
        raise error(message, alias.target_span, hint=f"name the variable: {target.alias_of}")
    virtual = alias.name if alias.proxy == "generic" else target.virtual
    return replace(target, key=alias.name, name=alias.name, virtual=virtual, proxy=alias.proxy, alias_of=alias.target)
