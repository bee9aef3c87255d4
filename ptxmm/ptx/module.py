"""PTX modules (PTX ISA 4, 5, 7, 10, 11) from text: variables, functions and their statements, without any meaning."""

from __future__ import annotations

import re

from msgspec.structs import replace

from ptxmm.errors import PtxmmError, together
from ptxmm.ptx.module_bodies import body, pragma, unknown_directive
from ptxmm.ptx.module_constants import integer_constant, starts_constant
from ptxmm.ptx.module_declarations import LINKAGE, SPACES, Declared, attribute, declaration, linkage, parameters
from ptxmm.ptx.module_names import Kind, Names
from ptxmm.ptx.module_places import Places
from ptxmm.ptx.module_syntax import Function, Module, Variable
from ptxmm.ptx.module_tokens import END, Cursor, module_tokens
from ptxmm.ptx.origin import clip
from ptxmm.tokens import Token

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
        """start: version target address_size? _item*
        address_size: ADDRESS_SIZE NUMBER
        """
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
        while cursor.type != END:
            self._item()
        variables, functions = tuple(self._variables.values()), self._functions
        return Module(version, tuple(self._targets), self._address_size, variables, functions, file, text)

    def _version(self) -> tuple[int, int]:
        """version: VERSION (FLOAT | NUMBER)"""
        cursor = self._cursor
        if cursor.accept_word((".version",)) is None:
            if not cursor.tokens:
                raise cursor.origin.error("the module is empty", 0, 1, "it begins with .version 8.5")
            raise cursor.expected("`.version`", "at the beginning of the module", "for example .version 8.5")
        token = cursor.accept("FLOAT") or cursor.take("NUMBER", "after `.version`")
        found = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})", token)
        if found is None:
            raise cursor.error(f"`{clip(token)}` is not a version", token, "for example .version 8.5")
        return int(found[1]), int(found[2])

    def _target(self) -> None:
        """target: TARGET IDENT ("," IDENT)*"""
        self._cursor.next()
        self._targets += map(str, self._cursor.items(lambda: self._cursor.take("IDENT", "after `.target`")))

    def _item(self) -> None:
        """A directive or declaration of the module.

        _item: SECTION | target | file | pragma | alias | loc | declaration | function
        """
        cursor = self._cursor
        token = cursor.here
        if cursor.accept("SECTION") is not None:
            return
        if token.type == ";":
            raise cursor.error("stray `;`: there is no declaration before it", token)
        if token.type == "}":
            raise cursor.error("this `}` closes nothing", token)
        if token.type != "QUALIFIER":
            hint = "instructions are in the braces of a function" if token.type in ("IDENT", "@") else None
            raise cursor.error(f"expected a directive or a declaration, found `{clip(token)}`", token, hint)
        match str(token):
            case ".target":
                self._target()
            case ".file":
                self._file()
            case ".pragma":
                cursor.next()
                pragma(cursor)
            case ".alias":
                self._alias()
            case ".section":
                raise cursor.error("this section has no `}`, or `{` in it", token)
            case ".version" | ".address_size":
                raise cursor.error(f"`{token}` is only at the beginning of the module", token)
            case ".loc":
                cursor.next()
                self._places.loc(cursor)
            case _:
                self._declaration(token)

    def _file(self) -> None:
        """file: FILE NUMBER STRING ("," NUMBER)*"""
        cursor = self._cursor
        cursor.next()
        cursor.take("NUMBER", "after `.file`")
        cursor.take("STRING", "after the number of the file")
        while cursor.accept(",") is not None:
            cursor.take("NUMBER", "after `,`")

    def _alias(self) -> None:
        """``.alias a, b;`` (11.2.3): ``a`` is the function ``b`` by another name.

        alias: ALIAS IDENT "," IDENT ";"
        """
        cursor = self._cursor
        cursor.next()
        first = cursor.take("IDENT", "after `.alias`")
        cursor.take(",", "after the alias")
        second = cursor.take("IDENT", "in `.alias`")
        cursor.take(";", "after `.alias`")
        entity = self._names.find(second)
        function = self._functions.get(entity.text.lstrip("%")) if entity is not None else None
        if function is None or function.body is None:
            raise cursor.error(f"the function `{clip(second)}` is not defined here", second, kind="name")
        name = self._named(first)
        previous = self._functions.get(name)
        if previous is not None and previous.body is not None:
            raise cursor.error(f"`{clip(first)}` is declared twice", first, kind="name")
        self._functions[name] = replace(function, name=name)

    def _named(self, token: Token) -> str:
        """The unique name of a function."""
        entity = self._names.find(token) or self._names.declare(token, _FUNCTION)
        assert entity is not None
        if entity.kind != _FUNCTION:
            raise self._cursor.error(f"`{clip(token)}` is declared twice", token, kind="name")
        return entity.text.lstrip("%")

    def _declaration(self, token: Token) -> None:
        cursor = self._cursor
        word = linkage(cursor)
        kind = cursor.text()
        if kind in (".entry", ".func"):
            self._function(word)
            return
        if kind not in SPACES:
            raise unknown_directive(
                cursor, cursor.here if cursor.type == "QUALIFIER" else token, _MODULE, "in a module"
            )
        if kind in (".reg", ".local", ".param"):
            message = f"variables in `{kind}` outside functions are not supported"
            raise cursor.error(message, cursor.here, "declare them in the function", "unsupported")
        for variable in declaration(cursor, self._names, word).variables:
            previous = self._variables.get(variable.name)
            if previous is not None and "extern" not in (previous.linkage, variable.linkage):
                raise cursor.error_in(f"`{clip(variable.name)}` is declared twice", variable.span, "name")
            if previous is None or previous.linkage == "extern":
                self._variables[variable.name] = variable

    def _function(self, linkage: str) -> None:
        """An ``.entry`` or ``.func`` (11.2), declared or defined.

        function: LINKAGE? (ENTRY _directive* | FUNC _directive* returns?) IDENT parameters? _directive* (";" | body)
        """
        cursor, names = self._cursor, self._names
        entry = cursor.next() == ".entry"
        directives: dict[str, tuple[int, ...]] = {}
        self._directives(directives)
        before = cursor.index
        # The name is that of the module, the parameters are those of the function.
        token = self._function_name(entry)
        name = self._named(token)
        names.enter()
        cursor.index = before
        returns = parameters(cursor, names) if cursor.type == "(" else Declared()
        cursor.next()  # the name
        given = parameters(cursor, names) if cursor.type == "(" else Declared()
        self._directives(directives)
        previous = self._functions.get(name)
        lines, inside = None, Declared()
        if cursor.type == "{":
            if previous is not None and previous.body is not None:
                raise cursor.error(f"the function `{clip(token)}` is defined twice", token, kind="name")
            lines, inside = body(cursor, names, self._places)
        elif cursor.accept(";") is None:
            if cursor.type == "QUALIFIER":
                raise unknown_directive(cursor, cursor.here, _OF_FUNCTIONS, "of a function")
            raise cursor.expected("`{`", "before the body of the function")
        names.leave()
        if previous is None or previous.body is None:
            self._functions[name] = Function(
                name=name,
                entry=entry,
                linkage=linkage,
                parameters=tuple(given.variables),
                returns=tuple(returns.variables),
                registers=dict((*returns.registers, *given.registers, *inside.registers)),
                variables=tuple(inside.variables),
                body=None if lines is None else tuple(lines),
                directives=directives,
                span=cursor.span(token),
            )

    def _function_name(self, entry: bool) -> Token:
        """The name of the function, behind the return parameters if there are any."""
        cursor = self._cursor
        if cursor.type == "(":
            opening, depth = cursor.here, 0
            if entry:
                raise cursor.error("a kernel returns nothing", opening)
            while cursor.type != END and (depth or cursor.here is opening):
                depth += {"(": 1, ")": -1}.get(cursor.next().type, 0)
            if depth:
                raise cursor.error("this `(` has no `)`", opening, "close it with `)`")
        token = cursor.take("IDENT", f"after `{'.entry' if entry else '.func'}`")
        if token == "_":
            raise cursor.error("a function needs a name", token)
        return token

    def _directives(self, found: dict[str, tuple[int, ...]]) -> None:
        """The directives before the name or the body of a function (11.2.2, 11.4, 11.7).

        _directive: sizes | FLAG | pragma | attribute
        sizes: SIZES (expression ("," expression)*)?
        """
        cursor = self._cursor
        while (token := cursor.accept_word(_OF_FUNCTIONS)) is not None:
            if token == ".pragma":
                pragma(cursor)
            elif token == ".attribute":
                attribute(cursor)
            elif token in _FLAGS:
                found[token[1:]] = ()
            else:
                begins = starts_constant(cursor, cursor.index)
                if not begins and token != ".abi_preserve_control":
                    raise cursor.expected("an integer constant", f"after `{token}`")
                numbers = cursor.items(lambda: integer_constant(cursor)) if begins else []
                if len(numbers) > 3 or any(not 0 <= n < 1 << 32 for n in numbers):
                    raise cursor.error(f"`{token}` takes one to three sizes", token)
                found[token[1:]] = tuple(numbers)
