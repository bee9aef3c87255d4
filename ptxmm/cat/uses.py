"""Which definitions a model uses, and where: what it defines in vain is warned of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, field

from ptxmm.cat import syntax
from ptxmm.cat.builder import error_at
from ptxmm.errors import PtxmmError


class _Binding(Struct):
    """One definition of a name (``file`` is None for a base name), what it refers to, and the first check that rests on
    it in each file."""

    name: str
    file: str | None = None
    place: syntax.Definition | None = None
    text: str = ""
    refers: list[_Binding] = field(default_factory=list)
    used: bool = False
    again: PtxmmError | None = None
    checks: dict[str, str] = field(default_factory=dict)


class Uses(Struct):
    """Is told of every statement in the order in which names are resolved."""

    current: dict[str, _Binding] = field(default_factory=dict)
    all: list[_Binding] = field(default_factory=list)

    def define(self, statement: syntax.Let, file: str, text: str) -> None:
        """A ``let``; it replaces earlier definitions of its names."""
        made = [_Binding(d.name, file, d, text) for d in statement.definitions]
        own = {b.name: b for b in made} if statement.recursive else {}
        for binding, definition in zip(made, statement.definitions, strict=True):
            parameters = {p.name for p in definition.parameters or ()}
            for name in dict.fromkeys(_names(definition.body)):
                if name not in parameters and name not in own:
                    binding.refers.append(self._use(name))
        for binding in made:
            old = self.current.get(binding.name)
            if old is not None:
                binding.again = _again(binding, old)
            self.current[binding.name] = binding
        self.all += made

    def check(self, statement: syntax.Check, name: str, file: str) -> None:
        """A check, or a flag, of that name."""
        todo = [self._use(used) for used in dict.fromkeys(_names(statement.body))]
        seen = set(map(id, todo))
        while todo:
            binding = todo.pop()
            binding.checks.setdefault(file, name)
            for other in binding.refers:
                if id(other) not in seen:
                    seen.add(id(other))
                    todo.append(other)

    def show(self, statement: syntax.Show) -> None:
        """What is shown is used."""
        for body in statement.bodies:
            for name in _names(body):
                self._use(name)

    def warnings(self, main: str) -> Iterator[PtxmmError]:
        """Of definitions in ``main`` that change nothing, and in any file those that come too late for a check of an
        included one, in the order of the text, placed."""
        for binding in self.all:
            found = binding.again
            if found is None and not binding.used and binding.file == main and binding.place is not None:
                message = f"nothing after this uses `{binding.name}`: the definition changes nothing"
                found = error_at(binding.place.span, message, "use it in a check or in a later definition")
            if found is not None and binding.file is not None:
                yield found.place(binding.file, binding.text)

    def _use(self, name: str) -> _Binding:
        binding = self.current.setdefault(name, _Binding(name))
        binding.used = True
        return binding


def _again(new: _Binding, old: _Binding) -> PtxmmError | None:
    check = next(((file, name) for file, name in old.checks.items() if file != new.file), None)
    if check is None or new.place is None:
        return None
    file = Path(check[0]).name
    message = f"`{new.name}` is defined too late for `{file}`: its check `{check[1]}` keeps the earlier definition"
    hint = f'to change that, write `override let {new.name} = ...` before `include "{file}"`'
    return error_at(new.place.span, message, hint)


def _names(body: syntax.Expression) -> Iterator[str]:
    todo = [body]
    while todo:
        match todo.pop():
            case syntax.Name(name):
                yield name
            case syntax.Operation(_, operands):
                todo += operands
            case syntax.Call(name, arguments):
                yield name
                todo += arguments
            case syntax.Conditional(_, yes, no):
                todo += (yes, no)
