"""Names and types: turns the syntax of a model, with its includes and readings, into its resolved graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from ptxmm.cat import names, recursion, syntax
from ptxmm.cat.builder import MAX_NESTING, error_at
from ptxmm.cat.ir import Axiom, Graph, Node
from ptxmm.cat.uses import Uses
from ptxmm.errors import MOST, PtxmmError, Span, together
from ptxmm.words import number_of

MAX_EXPRESSIONS = 20_000
MAX_INCLUDES = 100
_BUILTIN = ("domain", "range")


class Source(Struct, frozen=True):
    """One file of a model: where it is and what it says."""

    path: str
    text: str
    file: syntax.File


class Resolved(Struct, frozen=True):
    """What a model text comes to under the chosen readings; ``warnings``: definitions that change nothing."""

    definitions: Mapping[str, Node]
    axioms: tuple[Axiom, ...]
    nodes: tuple[Node, ...]
    reading_keys: frozenset[str]
    warnings: tuple[PtxmmError, ...]


class _Override(Struct):
    """A definition that takes the place of those of its name in included files; ``met``: there was one."""

    definition: syntax.Definition
    source: Source
    met: bool = False


class _Function(Struct, frozen=True):
    definition: syntax.Definition
    scope: dict[str, Node | _Function]
    source: Source


class _State(Struct):
    readings: Mapping[str, str]
    legal: Mapping[str, tuple[str, ...]]
    include: Callable[[str, str], Source]
    graph: Graph = field(default_factory=Graph)
    scope: dict[str, Node | _Function] = field(default_factory=dict)
    axioms: list[Axiom] = field(default_factory=list)
    axiom_names: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    overrides: dict[str, list[_Override]] = field(default_factory=dict)
    uses: Uses = field(default_factory=Uses)
    expressions: int = 0
    includes: int = 0
    wrong: list[PtxmmError] = field(default_factory=list)
    doubtful: set[str] = field(default_factory=set)
    """The names that a wrong statement defines: that they are not known is no error of its own."""


def resolve(
    source: Source,
    readings: Mapping[str, str],
    legal: Mapping[str, tuple[str, ...]],
    include: Callable[[str, str], Source],
) -> Resolved:
    """Resolve the model in ``source``.

    ``readings`` gives reading keys their values and ``legal`` the values that a known key may have; ``include(name,
    from_path)`` reads an included file (``PtxmmError`` if it can't). Raises ``PtxmmError`` of kind ``model`` for
    unknown names, wrong types, duplicate axiom names, circular includes and the like, with the place.
    """
    state = _State(readings, legal, include)
    _file(state, source, ())
    if state.wrong:
        raise state.wrong[0] if len({error.file for error in state.wrong}) > 1 else together(state.wrong)
    definitions = {name: value for name, value in state.scope.items() if isinstance(value, Node)}
    warnings = tuple(state.uses.warnings(source.path))
    return Resolved(definitions, tuple(state.axioms), tuple(state.graph.nodes), frozenset(state.keys), warnings)


def _file(state: _State, source: Source, chain: tuple[str, ...]) -> None:
    chain = (*chain, source.path)
    own: list[_Override] = []
    for statement in source.file.statements:
        if isinstance(statement, syntax.Include):
            for item in own:
                state.overrides.setdefault(item.definition.name, []).append(item)
            _include(state, statement, source, chain)
            for item in own:
                state.overrides[item.definition.name].remove(item)
            continue
        try:
            if isinstance(statement, syntax.Let) and statement.override:
                _distinct(statement.definitions)
                own += [_Override(definition, source) for definition in statement.definitions]
            else:
                _statement(state, statement, source)
        except PtxmmError as error:
            _wrong(state, statement, error.place(source.path, source.text))
    for item in own:
        if not item.met and not state.wrong:
            raise _overrides_nothing(state, item).place(source.path, source.text)


def _wrong(state: _State, statement: syntax.Statement, error: PtxmmError) -> None:
    """Note an error in a statement; the others are read all the same. Raises it where that can't be."""
    if error.kind != "model" or state.expressions > MAX_EXPRESSIONS or len(state.wrong) >= MOST:
        raise error
    told = error.message in (other.message for other in state.wrong)  # an unknown name is told of once
    if not told and not any(f"`{name}`" in error.message for name in state.doubtful):
        state.wrong.append(error)
    if isinstance(statement, syntax.Let):
        for definition in statement.definitions:
            state.doubtful.add(definition.name)
            state.scope.pop(definition.name, None)


def _include(state: _State, statement: syntax.Include, source: Source, chain: tuple[str, ...]) -> None:
    try:
        state.includes += 1
        if state.includes > MAX_INCLUDES:
            raise error_at(statement.span, f"a model includes at most {MAX_INCLUDES} files")
        try:
            included = state.include(statement.file, source.path)
        except PtxmmError as error:
            raise error if error.line is not None else error_at(statement.span, error.message, error.hint) from None
        if included.path in chain:
            cycle = " -> ".join((*chain[chain.index(included.path) :], included.path))
            raise error_at(statement.span, f"`{statement.file}` includes itself ({cycle})")
    except PtxmmError as error:
        raise error.place(source.path, source.text) from None
    _file(state, included, chain)


def _statement(state: _State, statement: syntax.Statement, source: Source) -> None:
    if isinstance(statement, syntax.Let):
        (_let_rec if statement.recursive else _let)(state, statement, source)
        state.uses.define(statement, source.path, source.text)
        _override(state, statement)
    elif isinstance(statement, syntax.Check):
        _check(state, statement, source)
    elif isinstance(statement, syntax.Show):
        for body in statement.bodies:
            _expression(state, body, state.scope, source, 0)
        state.uses.show(statement)


def _let(state: _State, statement: syntax.Let, source: Source) -> None:
    _distinct(statement.definitions)
    values: list[Node | _Function] = []
    for definition in statement.definitions:
        if definition.parameters is None:
            values.append(_expression(state, definition.body, state.scope, source, 0))
        else:
            parameters = [parameter.name for parameter in definition.parameters]
            for number, parameter in enumerate(definition.parameters):
                if parameter.name in parameters[:number]:
                    raise error_at(parameter.span, f"two parameters are named `{parameter.name}`")
            values.append(_Function(definition, dict(state.scope), source))
    for definition, value in zip(statement.definitions, values, strict=True):
        state.scope[definition.name] = value


def _let_rec(state: _State, statement: syntax.Let, source: Source) -> None:
    _distinct(statement.definitions)
    for definition in statement.definitions:
        if definition.parameters is not None:
            raise error_at(definition.span, f"the function `{definition.name}` is recursive", "functions can't be")
    variables = [state.graph.variable(number) for number in range(len(statement.definitions))]
    scope = state.scope | {d.name: v for d, v in zip(statement.definitions, variables, strict=True)}
    bodies = []
    for definition in statement.definitions:
        body = _expression(state, definition.body, scope, source, 0)
        if body.is_set:
            raise error_at(definition.span, f"`{definition.name}` is a set", "`let rec` defines relations")
        bodies.append(body)
    for definition, node in zip(statement.definitions, recursion.solve(state.graph, variables, bodies), strict=True):
        state.scope[definition.name] = node


def _override(state: _State, statement: syntax.Let) -> None:
    """Put what overrides the definitions of ``statement`` in their place; there, a name stands for what it replaces.
    Of several, that of the innermost file comes first."""
    for definition in statement.definitions:
        for item in reversed(state.overrides.get(definition.name, ())):
            item.met = True
            old, new = state.scope[definition.name], item.definition
            given, wanted = (len(d.parameters) if d.parameters is not None else None for d in (new, definition))
            try:
                if given != wanted:
                    words = "a function" if wanted is not None else "no function"
                    count = f" of {number_of(wanted, 'argument')}" if wanted is not None else ""
                    raise error_at(new.span, f"the `{new.name}` that this overrides is {words}{count}")
                made = syntax.Let((new,), False, new.span)
                _let(state, made, item.source)
                value = state.scope[new.name]
                if isinstance(old, Node) and isinstance(value, Node) and old.is_set != value.is_set:
                    was, now = ("a set" if node.is_set else "a relation" for node in (old, value))
                    raise error_at(new.span, f"the `{new.name}` that this overrides is {was}, this is {now}")
            except PtxmmError as error:
                raise error.place(item.source.path, item.source.text) from None
            state.uses.define(made, item.source.path, item.source.text)


def _overrides_nothing(state: _State, item: _Override) -> PtxmmError:
    name = item.definition.name
    if name in state.scope:
        hint: str | None = "write it before the include: it is for the files that are included after it"
    else:
        hint = _close(name, state.scope, value_only=item.definition.parameters is None)
    return error_at(item.definition.span, f"this overrides nothing: no file included after it defines `{name}`", hint)


def _distinct(definitions: tuple[syntax.Definition, ...]) -> None:
    seen: set[str] = set()
    for definition in definitions:
        if definition.name in (*names.CONSTANTS, "id", *_BUILTIN):
            raise error_at(definition.span, f"`{definition.name}` is built in", "choose another name")
        if definition.name in seen:
            raise error_at(definition.span, f"`{definition.name}` is defined twice in one `let`")
        seen.add(definition.name)


def _check(state: _State, statement: syntax.Check, source: Source) -> None:
    body = _expression(state, statement.body, state.scope, source, 0)
    if body.is_set and statement.kind != "empty":
        raise error_at(
            statement.span,
            f"`{statement.kind}` needs a relation, this is a set",
            "only `empty` applies to sets; `[S]` makes a relation of a set",
        )
    name = statement.name
    if name is None:
        if statement.flag:
            raise error_at(statement.span, "a flag needs a name", "add `as NAME`")
        name = f"check-{len(state.axioms) + 1}"
    if name in state.axiom_names:
        raise error_at(statement.name_span or statement.span, f"two checks are named `{name}`")
    state.axiom_names.add(name)
    state.uses.check(statement, name, source.path)
    state.axioms.append(
        Axiom(name, statement.kind, statement.negated, statement.flag, body, source.path, statement.span)
    )


def _expression(
    state: _State, node: syntax.Expression, scope: Mapping[str, Node | _Function], source: Source, depth: int
) -> Node:
    state.expressions += 1
    if state.expressions > MAX_EXPRESSIONS:
        raise error_at(node.span, f"a model has at most {MAX_EXPRESSIONS} operations, calls expanded")
    if depth > MAX_NESTING:
        raise error_at(node.span, f"expressions, calls expanded, nest at most {MAX_NESTING} levels deep")
    if isinstance(node, syntax.Name):
        return _name(state, node, scope)
    if isinstance(node, syntax.Call):
        return _call(state, node, scope, source, depth)
    if isinstance(node, syntax.Conditional):
        chosen = node.yes if _holds(state, node) else node.no
        other = node.no if chosen is node.yes else node.yes
        result = _expression(state, chosen, scope, source, depth + 1)
        # Both branches must be right whichever reading is chosen.
        if _expression(state, other, scope, source, depth + 1).is_set != result.is_set:
            raise error_at(node.span, "one branch of this `if` is a set, the other a relation")
        return result
    operands = [_expression(state, operand, scope, source, depth + 1) for operand in node.operands]
    return _operation(state.graph, node, operands)


def _operation(graph: Graph, node: syntax.Operation, operands: list[Node]) -> Node:
    operator = node.operator
    if operator in ("[]", "*"):
        for written, operand in zip(node.operands, operands, strict=True):
            if not operand.is_set:
                raise error_at(_start(written), f"{_quoted(operator)} needs a set, {_described(written)} is a relation")
        return graph.unary("identity", operands[0]) if operator == "[]" else graph.product(*operands)
    if operator in (";", "+", "star", "?", "^-1"):
        for written, operand in zip(node.operands, operands, strict=True):
            if operand.is_set:
                hint = "`[S]` makes a relation of a set"
                raise error_at(
                    _start(written), f"{_quoted(operator)} needs a relation, {_described(written)} is a set", hint
                )
        if operator == ";":
            return graph.sequence(operands)
        words = {"+": "plus", "star": "star", "?": "optional", "^-1": "inverse"}
        return graph.unary(words[operator], operands[0])
    if operator == "~":
        _closed(node, operands[0])
        return graph.complement(operands[0])
    result = operands[0]
    for written, operand in zip(node.operands[1:], operands[1:], strict=True):
        if operand.is_set != result.is_set:
            kinds = ("a relation", "a set")
            raise error_at(
                _start(written),
                f"{_quoted(operator)} needs two sets or two relations, here {kinds[result.is_set]} and "
                f"{kinds[operand.is_set]}",
                "`[S]` makes a relation of a set",
            )
        if operator == "\\":
            _closed(node, operand)
            result = graph.difference(result, operand)
        else:
            result = graph.union(result, operand) if operator == "|" else graph.intersection(result, operand)
    return result


def _closed(node: syntax.Operation, operand: Node) -> None:
    if operand.open:
        message = f"a recursive definition is used under {_quoted(node.operator)}: it may have no solution"
        raise error_at(node.span, message)


def _name(state: _State, node: syntax.Name, scope: Mapping[str, Node | _Function]) -> Node:
    name = node.name
    value = scope.get(name)
    if isinstance(value, Node):
        return value
    if value is not None or name in _BUILTIN:
        raise error_at(node.span, f"`{name}` is a function", f"apply it: `{name}(...)`")
    if name in names.CONSTANTS:
        return state.graph.constant(names.CONSTANTS[name])
    if name == "id":
        return state.graph.unary("identity", state.graph.constant("universe"))
    if name in names.SETS or name in names.RELATIONS:
        return state.graph.base(name, name in names.SETS)
    raise error_at(node.span, f"unknown name `{name}`", _close(name, scope, value_only=True))


def _close(name: str, scope: Mapping[str, Node | _Function], *, value_only: bool) -> str | None:
    known = [n for n, v in scope.items() if isinstance(v, Node) is value_only]
    known += [*names.SETS, *names.RELATIONS, "id"] if value_only else _BUILTIN
    found = names.close(name, sorted(known), 3)
    return "did you mean " + " or ".join(f"`{n}`" for n in found) + "?" if found else None


def _call(state: _State, node: syntax.Call, scope: Mapping[str, Node | _Function], source: Source, depth: int) -> Node:
    arguments = [_expression(state, argument, scope, source, depth + 1) for argument in node.arguments]
    function = scope.get(node.name)
    if function is None and node.name in _BUILTIN:
        _count(node, 1)
        if arguments[0].is_set:
            raise error_at(_start(node.arguments[0]), f"`{node.name}` needs a relation, this is a set")
        return state.graph.unary(node.name, arguments[0])
    if not isinstance(function, _Function):
        if function is not None or node.name in names.SETS or node.name in names.RELATIONS:
            raise error_at(node.span, f"`{node.name}` is not a function")
        raise error_at(node.span, f"unknown function `{node.name}`", _close(node.name, scope, value_only=False))
    parameters = function.definition.parameters or ()
    _count(node, len(parameters))
    inner = function.scope | {p.name: value for p, value in zip(parameters, arguments, strict=True)}
    try:
        return _expression(state, function.definition.body, inner, function.source, depth + 1)
    except PtxmmError as error:
        raise error.place(function.source.path, function.source.text) from None


def _count(node: syntax.Call, wanted: int) -> None:
    if len(node.arguments) != wanted:
        arguments = number_of(wanted, "argument")
        raise error_at(node.span, f"`{node.name}` takes {arguments}, not {len(node.arguments)}")


def _holds(state: _State, node: syntax.Conditional) -> bool:
    key, equals, value = node.condition.partition("=")
    if not (key and equals and value):
        raise error_at(node.span, f'`"{node.condition}"` is not a condition', 'write `if "key=value"`')
    state.keys.add(key)
    legal = state.legal.get(key)
    if legal is not None and value not in legal:
        raise error_at(node.span, f"reading `{key}` has no value `{value}`", f"values: {', '.join(legal)}")
    return state.readings.get(key) == value


def _start(written: syntax.Expression) -> Span:
    """The place of the leftmost name of an expression or, for a prefix operator or ``if``, of that."""
    while isinstance(written, syntax.Operation) and written.operator not in ("[]", "~"):
        written = written.operands[0]
    return written.span


def _described(written: syntax.Expression) -> str:
    return f"`{written.name}`" if isinstance(written, syntax.Name | syntax.Call) else "this"


def _quoted(operator: str) -> str:
    return {"[]": "`[ ]`", "*": "the product `*`", "star": "`*`"}.get(operator, f"`{operator}`")
