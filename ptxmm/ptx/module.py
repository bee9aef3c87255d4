"""PTX modules (PTX ISA 4, 5, 7, 10, 11) from text: variables, functions and their statements, without any meaning."""

from __future__ import annotations

import re

from msgspec.structs import replace

from ptxmm.errors import PtxmmError, together
from ptxmm.ptx.module_bodies import body, pragma, unknown_directive
from ptxmm.ptx.module_constants import integer_constant
from ptxmm.ptx.module_declarations import LINKAGE, SPACES, Declared, attribute, declare, head, parameters
from ptxmm.ptx.module_names import Kind, Names
from ptxmm.ptx.module_places import Places
from ptxmm.ptx.module_syntax import (
    BranchTargets,
    Call,
    Function,
    Line,
    Module,
    Place,
    SymbolAddress,
    Variable,
)
from ptxmm.ptx.module_tokens import Cursor, module_tokens
from ptxmm.ptx.origin import clip
from ptxmm.ptx.reader import Token

__all__ = [
    "BranchTargets",
    "Call",
    "Function",
    "Line",
    "Module",
    "Place",
    "SymbolAddress",
    "Variable",
    "parse_module",
]

_FUNCTION = Kind("function")
_NUMBERS = frozenset(
    {".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg", ".reqnctapercluster", ".maxclusterrank",
     ".abi_preserve", ".abi_preserve_control"}
)  # fmt: skip
_FLAGS = frozenset({".explicitcluster", ".noreturn", ".blocksareclusters"})
_MODULE = frozenset(
    {*SPACES, *LINKAGE, ".entry", ".func", ".file", ".section", ".pragma", ".alias", ".target", ".version",
     ".address_size"}
)  # fmt: skip
_OF_FUNCTIONS = frozenset({*_NUMBERS, *_FLAGS, ".pragma", ".attribute"})


def parse_module(text: str, file: str = "<text>") -> Module:
    """The PTX module ``text``, of whatever PTX ISA version: syntax and names, no types or meaning.

    ``file`` is its name in errors. Names that scopes declare again are made unique, constant expressions are
    evaluated, ``.loc`` is resolved. Raises ``PtxmmError`` with its place (``more`` are those of other statements): kind
    ``syntax``, ``name`` (declared twice) or ``unsupported``.
    """
    found: list[PtxmmError] = []
    try:
        cursor = Cursor(text, module_tokens(text))
        found = cursor.errors
        module = _Reader(cursor).module(text, file)
    except PtxmmError as error:
        found.append(error)
    if found:
        raise together(found).place(file, text)
    return module


class _Reader:
    """Reads what a module has at its outermost level."""

    __slots__ = ("_address_size", "_cursor", "_functions", "_names", "_places", "_targets", "_variables")

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._names = Names(cursor)
        self._places = Places(cursor)
        self._variables: dict[str, Variable] = {}
        self._functions: dict[str, Function] = {}
        self._targets: list[str] = []
        self._address_size = 32

    def module(self, text: str, file: str) -> Module:
        """The whole module."""
        cursor = self._cursor
        version = self._version()
        if cursor.text() != ".target":
            raise cursor.expected("`.target`", "after `.version`", "for example .target sm_90")
        self._target()
        if cursor.accept_word((".address_size",)) is not None:
            token = cursor.take("NUMBER", "after `.address_size`")
            if token not in ("32", "64"):
                raise cursor.error("the size of addresses is 32 or 64", token)
            self._address_size = int(token)
        while cursor.index < len(cursor.tokens):
            self._item()
        variables, functions = tuple(self._variables.values()), self._functions
        return Module(version, tuple(self._targets), self._address_size, variables, functions, file, text)

    def _version(self) -> tuple[int, int]:
        cursor = self._cursor
        if cursor.accept_word((".version",)) is None:
            if not cursor.tokens:
                raise cursor.origin.error("the module is empty", 0, 1, "it begins with .version 8.5")
            raise cursor.expected("`.version`", "at the beginning of the module", "for example .version 8.5")
        token = cursor.accept("FLOAT") or cursor.take("NUMBER", "after `.version`")
        found = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})", token)
        if found is None:
            raise cursor.error(f"`{clip(str(token))}` is not a version", token, "for example .version 8.5")
        return int(found[1]), int(found[2])

    def _target(self) -> None:
        cursor = self._cursor
        cursor.index += 1
        while True:
            self._targets.append(str(cursor.take("IDENT", "after `.target`")))
            if cursor.accept(",") is None:
                return

    def _item(self) -> None:
        """A directive or declaration of the module."""
        cursor = self._cursor
        token = cursor.tokens[cursor.index]
        if token.type == "SECTION":
            cursor.index += 1
            return
        if token.type == ";":
            raise cursor.error("stray `;`: there is no declaration before it", token)
        if token.type == "}":
            raise cursor.error("this `}` closes nothing", token)
        if token.type != "QUALIFIER":
            hint = "instructions are in the braces of a function" if token.type in ("IDENT", "@") else None
            shown = clip(str(token))
            raise cursor.error(f"expected a directive or a declaration, found `{shown}`", token, hint)
        match str(token):
            case ".target":
                self._target()
            case ".file":
                self._file()
            case ".pragma":
                cursor.index += 1
                pragma(cursor)
            case ".alias":
                self._alias()
            case ".section":
                raise cursor.error("this section has no `}`, or `{` in it", token)
            case ".version" | ".address_size":
                raise cursor.error(f"`{token}` is only at the beginning of the module", token)
            case ".loc":
                cursor.index += 1
                self._places.loc(cursor)
            case _:
                self._declaration(token)

    def _file(self) -> None:
        cursor = self._cursor
        cursor.index += 1
        cursor.take("NUMBER", "after `.file`")
        cursor.take("STRING", "after the number of the file")
        while cursor.accept(",") is not None:
            cursor.take("NUMBER", "after `,`")

    def _alias(self) -> None:
        """``.alias a, b;`` (11.2.3): ``a`` is the function ``b`` by another name."""
        cursor = self._cursor
        cursor.index += 1
        first = cursor.take("IDENT", "after `.alias`")
        cursor.take(",", "after the alias")
        second = cursor.take("IDENT", "in `.alias`")
        cursor.take(";", "after `.alias`")
        aliased, entity = self._names.find(str(first)), self._names.find(str(second))
        function = self._functions.get(entity.text.lstrip("%")) if entity is not None else None
        if function is None or function.body is None:
            raise cursor.error(f"the function `{clip(str(second))}` is not defined here", second, kind="name")
        if aliased is None:
            aliased = self._names.declare(str(first), _FUNCTION)
        assert aliased is not None
        name = aliased.text.lstrip("%")
        previous = self._functions.get(name)
        if aliased.kind != _FUNCTION or (previous is not None and previous.body is not None):
            raise cursor.error(f"`{clip(str(first))}` is declared twice", first, kind="name")
        self._functions[name] = replace(function, name=name)

    def _declaration(self, token: Token) -> None:
        cursor = self._cursor
        linkage = ""
        while (word := cursor.accept_word(LINKAGE)) is not None:
            if linkage:
                raise cursor.error(f"`{word}` after `.{linkage}`: a symbol has one kind of linkage", word)
            linkage = str(word)[1:]
        kind = cursor.text()
        if kind in (".entry", ".func"):
            self._function(linkage)
            return
        if kind not in SPACES:
            directive = cursor.tokens[cursor.index] if cursor.type == "QUALIFIER" else token
            raise unknown_directive(cursor, directive, _MODULE, "in a module")
        if kind in (".reg", ".local", ".param"):
            message = f"variables in `{kind}` outside functions are not supported"
            raise cursor.error(message, cursor.tokens[cursor.index], "declare them in the function", "unsupported")
        for variable in declare(cursor, self._names, head(cursor, linkage)).variables:
            previous = self._variables.get(variable.name)
            if previous is not None and "extern" not in (previous.linkage, variable.linkage):
                raise cursor.error_in(f"`{clip(variable.name)}` is declared twice", variable.span, "name")
            if previous is None or previous.linkage == "extern":
                self._variables[variable.name] = variable

    def _function(self, linkage: str) -> None:
        """An ``.entry`` or ``.func`` (11.2), declared or defined."""
        cursor, names = self._cursor, self._names
        entry = cursor.tokens[cursor.index] == ".entry"
        cursor.index += 1
        directives: dict[str, tuple[int, ...]] = {}
        self._directives(directives)
        names_before = cursor.index
        # The name is that of the module, the parameters are those of the function.
        token = self._function_name(entry)
        entity = names.find(str(token)) or names.declare(str(token), _FUNCTION)
        assert entity is not None
        if entity.kind != _FUNCTION:
            raise cursor.error(f"`{clip(str(token))}` is declared twice", token, kind="name")
        name = entity.text.lstrip("%")
        names.enter()
        cursor.index = names_before
        returns = Declared((), ())
        if cursor.type == "(":
            returns = parameters(cursor, names)
        cursor.index += 1  # the name
        given = parameters(cursor, names) if cursor.type == "(" else Declared((), ())
        self._directives(directives)
        registers = dict((*returns.registers, *given.registers))
        previous = self._functions.get(name)
        span = cursor.span(token)
        function = Function(
            name, entry, linkage, given.variables, returns.variables, registers, (), None, directives, span
        )
        if cursor.type == "{":
            if previous is not None and previous.body is not None:
                raise cursor.error(f"the function `{clip(str(token))}` is defined twice", token, kind="name")
            found = body(cursor, names, self._places)
            registers.update(found.registers)
            function = replace(function, variables=found.variables, body=found.lines)
        elif cursor.accept(";") is None:
            if cursor.type == "QUALIFIER":
                directive = cursor.tokens[cursor.index]
                raise unknown_directive(cursor, directive, _OF_FUNCTIONS, "of a function")
            raise cursor.expected("`{`", "before the body of the function")
        names.leave()
        if previous is None or previous.body is None:
            self._functions[name] = function

    def _function_name(self, entry: bool) -> Token:
        """The name of the function, behind the return parameters if there are any."""
        cursor = self._cursor
        what = "`.entry`" if entry else "`.func`"
        if cursor.type == "(":
            if entry:
                raise cursor.error("a kernel returns nothing", cursor.tokens[cursor.index])
            opening, depth = cursor.tokens[cursor.index], 0
            for index in range(cursor.index, len(cursor.tokens)):
                depth += {"(": 1, ")": -1}.get(cursor.types[index], 0)
                if depth == 0:
                    cursor.index = index + 1
                    break
            else:
                raise cursor.error("this `(` has no `)`", opening, "close it with `)`")
        token = cursor.take("IDENT", f"after {what}")
        if token == "_":
            raise cursor.error("a function needs a name", token)
        return token

    def _directives(self, found: dict[str, tuple[int, ...]]) -> None:
        """The directives before the name or the body of a function (11.2.2, 11.4, 11.7)."""
        cursor = self._cursor
        while cursor.type == "QUALIFIER":
            token = cursor.tokens[cursor.index]
            word = str(token)
            if word not in _OF_FUNCTIONS:
                return
            cursor.index += 1
            if word == ".pragma":
                pragma(cursor)
            elif word == ".attribute":
                attribute(cursor)
            elif word in _FLAGS:
                found[word[1:]] = ()
            else:
                numbers = [integer_constant(cursor)] if cursor.type in ("NUMBER", "(") else []
                while numbers and cursor.accept(",") is not None:
                    numbers.append(integer_constant(cursor))
                if not numbers and word != ".abi_preserve_control":
                    raise cursor.expected("an integer constant", f"after `{word}`")
                if len(numbers) > 3 or any(not 0 <= n < 1 << 32 for n in numbers):
                    raise cursor.error(f"`{word}` takes one to three sizes", token)
                found[word[1:]] = tuple(numbers)
