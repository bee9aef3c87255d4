"""The reader of PTX modules reads what its grammar has, makes of it what stands there, and refuses the rest."""

from __future__ import annotations

import inspect
import random
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lark import Lark, Token, Tree, UnexpectedInput

from ptxmm import ptx
from ptxmm.errors import PtxmmError
from ptxmm.ptx import (
    module,
    module_bodies,
    module_constants,
    module_declarations,
    module_places,
    module_statements,
    module_tokens,
    syntax,
)
from ptxmm.ptx import module_syntax as parsed
from tests.sentences import Sentences
from tests.test_readers import PIECES, mutant, written_rules

Item = Any
"""A token or a tree."""
GRAMMAR = Path(ptx.__file__).with_name("module.lark").read_text(encoding="utf-8")
LARK = Lark(
    GRAMMAR,
    start=["start", "_item", "_line", "expression"],
    parser="lalr",
    propagate_positions=True,
    maybe_placeholders=False,
)
HEAD = ".version 8.5\n.target sm_90\n"
FRAMES = {
    "start": "{}",
    "_item": HEAD + "{}",
    "function": HEAD + "{}",
    "_contents": HEAD + ".global .u32 a[3];\n.global .u64 x = {};",
    "_line": HEAD + ".global .u16 a[3], s;\n.func f()\n{{ .reg .v2 .b32 v;\n{}\n}}",
}
"""Where a sentence of a rule stands in a module."""
FILES = sorted((Path(__file__).resolve().parent / "modules").glob("**/*.ptx"))
NUMBERS = ("0", "1", "2", "3", "4", "0x1f", "017", "8U", "1", "2", "9" * 25)
SAMPLES = {
    "VERSION": (".version",), "TARGET": (".target",), "ADDRESS_SIZE": (".address_size",), "FILE": (".file",),
    "PRAGMA": (".pragma",), "ALIAS": (".alias",), "LOC": (".loc",), "ENTRY": (".entry",), "FUNC": (".func",),
    "LINKAGE": (".visible", ".weak"), "SIZES": (".maxntid", ".minnctapersm", ".abi_preserve_control"),
    "FLAG": (".noreturn",), "REG": (".reg",), "SPACE": (".global", ".global", ".const", ".shared", ".local"),
    "PARAM": (".param",), "TYPE": (".u32", ".b64", ".s16", ".f32", ".b128", ".f16x2", ".pred"),
    "OPAQUE": (".texref", ".surfref"), "VECTOR": (".v2", ".v4"), "ALIGN": (".align",), "ATTRIBUTE": (".attribute",),
    "MANAGED": (".managed",), "UNIFIED": (".unified",), "PTR": (".ptr",), "POINTEE": (".global", ".shared"),
    "TARGETS": (".branchtargets", ".calltargets"), "PROTOTYPE": (".callprototype",), "CAST": (".s64", ".u64"),
    "FUNCTION_NAME": ("function_name",), "INLINED_AT": ("inlined_at",), "GENERIC": ("generic",), "CALL": ("call",),
    "WARP_SZ": ("WARP_SZ",), "IDENT": (*(f"x{n}" for n in range(40)), "%r1", "a", "s", "v", "f"),
    "QUALIFIER": (".u32", ".a::b", ".x"), "FLOAT": ("1.5", "8.5", "1.", ".5", "0f3F800000", "0d3FF0000000000000"),
    "NUMBER": NUMBERS, "STRING": ('"a;b"', '""'), "SECTION": (".section .debug_x { .b8 1 // }\n }",),
    "SIGN": ("+", "-"), "NOT": ("!",), "DIVIDED": ("/",), "MODULO": ("%",), "SHIFT": ("<<", ">>"), "LESS": ("<",),
    "GREATER": (">",), "RELATION": ("<=", ">="), "EQUALITY": ("==", "!="), "BIT_AND": ("&",), "BIT_OR": ("|",),
    "EQUAL": ("=",), "MARK": (",", "=", "(", ")"),
}  # fmt: skip
BEYOND = re.compile(
    r""".* is declared twice|.* is declared only later|a predicate can only be a register|an alignment is a power of two
    |an array cannot have|.* has too many elements|at most \d+ (names|labels|elements)|.* needs a size
    |only the first dimension can be left out|only variables in .global and .const are initialized
    |more (braces than dimensions|elements than the array has)|expected `\{` around the elements|missing `\{` around
    |an external variable has no|`mask\(\)`|.* is not initialized with|a variable of .* has no initializer
    |an address does not fit|`.*` is not declared|`.*` cannot be declared|the function .* is not defined here
    |the function .* is defined twice|variables in .* outside functions|.* takes one to three sizes|.* is not a version
    |expected an integer constant($| or| after|, found a floating)|the size of addresses is|a function needs a name
    |.* is not an integer constant|a constant of 64 bits is shifted|division of a constant
    |.* takes (no such|integers|two)|a single-precision constant|the condition of `\?:`|`call` takes no
    |a floating-point constant (takes|has no cast)|a return value of a call|.* is no variable: only an array
    |the integer constant needs|.* gives all bits|the floating-point constant .* is too large|an address is no floating
    |this instruction cannot be|array indexing is not PTX|expected an operand of the call|the constant is too large
    |this `\(` has no    |the constant expression is nested|expected .*, found `[\[|]`
    |expected a constant here($|, found `\{`)""".replace("\n    ", "")
)
"""What is wrong with sentences of the grammar: names, values and shapes, and elements of arrays where none can be."""


def tree_of(text: str) -> Any:
    """What Lark makes of ``text``: a tree, or the error."""
    try:
        return LARK.parse(text, start="start")
    except UnexpectedInput as error:
        return error


def taken(text: str) -> bool:
    """Whether the reader takes ``text``, which it must read as it stands there. What is of the grammar it may refuse
    for a reason ``BEYOND`` it only."""
    tree = tree_of(text)
    wrong = isinstance(tree, UnexpectedInput)
    try:
        found = module.parse_module(text)
    except PtxmmError as error:
        assert wrong or BEYOND.match(error.message), (text, error.message)
        assert error.line and error.column
        return False
    assert not wrong, (text, str(tree))
    assert shape(found) == Meaning(text).module(tree), text
    return True


# -- what the reader made, without what depends on places and on the names that it chose --------------------------


def bare(name: str) -> str:
    """A name without its ``%`` and without the number that makes it unique."""
    return re.sub(r"\$[0-9]+(?=\.|$)", "", name.lstrip("%"))


def shape(node: Any) -> Any:
    """A value of the reader as plain tuples."""
    match node:
        case parsed.Module():
            functions = [shape(f) for f in node.functions.values()]
            return node.version, node.targets, node.address_size, [shape(v) for v in node.variables], functions
        case parsed.Variable():
            initial = None if node.initial is None else [shape(item) for item in node.initial]
            kind = node.type.name, node.count, node.alignment, node.opaque
            return bare(node.name), node.space, kind, initial, node.linkage
        case parsed.SymbolAddress():
            return bare(node.name), node.offset, node.generic
        case parsed.Function():
            body = None if node.body is None else [(shape(x.statement), shape(x.place)) for x in node.body]
            lists = [[shape(v) for v in some] for some in (node.parameters, node.returns, node.variables)]
            registers = [(bare(name), type_.name) for name, type_ in node.registers.items()]
            return bare(node.name), node.entry, node.linkage, lists, registers, dict(node.directives), body
        case parsed.Place(file, line, column, inlined):
            return file, line, column, shape(inlined)
        case parsed.BranchTargets():
            return node.kind, bare(node.name), [*map(bare, node.labels)]
        case parsed.Call():
            parts = [[shape(item) for item in some] for some in (node.returns, node.arguments)]
            return "call", shape(node.guard), shape(node.function), parts, shape(node.targets)
        case syntax.Instruction():
            qualifiers = [word for word, _ in node.qualifiers]
            return node.opcode, shape(node.guard), qualifiers, [shape(item) for item in node.operands]
        case syntax.Guard(name, negated):
            return shape(name), negated
        case syntax.Label(name):
            return ":", bare(name)
        case syntax.Name(name):
            return bare(name)
        case syntax.Number(value):
            return value
        case syntax.Float(bits, single):
            return "float", bits, single
        case syntax.Sum(base, offset):
            return "+", shape(base), offset
        case syntax.AddressOf(base, offset):
            return "&", shape(base), offset
        case syntax.Pair(first, second):
            return "|", shape(first), shape(second)
        case syntax.Negated(name):
            return "!", shape(name)
        case syntax.Vector(items):
            return "{", [shape(item) for item in items]
        case syntax.Memory(base, offset, extra=extra, coordinates=coordinates):
            return "[", shape(base), offset, extra, shape(coordinates)
    return node


# -- the same from a tree ------------------------------------------------------------------------------------------

TYPES = {"f16x2": "b32", "bf16x2": "b32", "texref": "b64", "samplerref": "b64", "surfref": "b64"}
COLORS = {".r": ".x", ".g": ".y", ".b": ".z", ".a": ".w"}
COMPONENTS = [".x", ".y", ".z", ".w", ".e4", ".e5", ".e6", ".e7"]


def trees(tree: Any, *names: str) -> list[Any]:
    return [item for item in tree.children if isinstance(item, Tree) and item.data in names]


def words(tree: Any, *types: str) -> list[Token]:
    return [item for item in tree.children if isinstance(item, Token) and (not types or item.type in types)]


class Meaning:
    """What stands in a tree of the grammar, as ``shape`` has it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.scopes: list[dict[str, tuple[int, int]]] = [{}]  # lanes, and the bytes from an element to the next
        self.files: dict[int, str] = {}
        self.known: dict[tuple[str, int, int], Any] = {}
        self.place: Any = None

    def find(self, name: str) -> tuple[int, int]:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), (0, 0))

    def module(self, tree: Any) -> Any:
        version, target = (trees(tree, name)[0] for name in ("version", "target"))
        major, minor = words(version)[1].split(".")
        for item in trees(tree, "file"):
            self.files.setdefault(self.number(words(item)[1]), words(item)[2][1:-1])
        size = [int(words(item)[1]) for item in trees(tree, "address_size")]
        targets = tuple(str(word) for item in trees(tree, "target") for word in words(item, "IDENT"))
        variables: dict[str, Any] = {}
        functions: dict[str, Any] = {}
        for item in tree.children:
            match item.data if isinstance(item, Tree) else "":
                case "declaration":
                    for made in self.declaration(item)[0]:
                        if made[0] not in variables or variables[made[0]][4] == "extern":
                            variables[made[0]] = made
                case "function":
                    name, *rest = self.function(item)
                    if name not in functions or functions[name][6] is None:
                        functions[name] = (name, *rest)
                case "alias":
                    first, second = map(bare, words(item, "IDENT"))
                    functions[first] = (first, *functions[second][1:])
                case "loc":
                    self.loc(item)
        assert target
        found = [(bare(name), *rest) for name, *rest in variables.values()]
        return (int(major), int(minor)), targets, (size or [32])[0], found, [*functions.values()]

    @staticmethod
    def number(word: str) -> int:
        text = word.removesuffix("U")
        return int(re.sub("^0([0-7])", r"0o\1", text), 0)

    def loc(self, tree: Any) -> None:
        def place(item: Tree[Token]) -> tuple[str, int, int]:
            file, line, column = map(self.number, words(item, "NUMBER"))
            return self.files.get(file, f"<file {file}>"), line, column

        at = [place(item) for item in trees(tree, "inlined_at")]
        inlined = self.known.get(at[-1], (*at[-1], None)) if at else None
        self.place = self.known[place(tree)] = (*place(tree), inlined)

    # -- declarations

    def declaration(self, tree: Any) -> tuple[list[Any], list[Any]]:
        linkage = "".join(words(tree, "LINKAGE"))[1:]
        (inner,) = trees(tree, "registers", "variables", "opaques")
        return self.declared(inner, linkage)

    def declared(self, tree: Any, linkage: str, parameter: bool = False) -> tuple[list[Any], list[Any]]:
        space = words(tree, "REG", "SPACE", "PARAM")[0][1:].partition("::")[0]
        (kind,) = words(tree, "TYPE", "OPAQUE")
        lanes = int("".join(words(tree, "VECTOR")[-1:] or ".v0")[2:])
        type_ = TYPES.get(kind[1:], kind[1:])
        parts = [item if isinstance(item, Token) else item.data for item in tree.children]
        pointer = parts.index(".ptr") if ".ptr" in parts else len(parts)
        aligned = [
            self.integer(item.children[1])
            for item in tree.children[:pointer]
            if isinstance(item, Tree) and item.data == "alignment"
        ]
        bits = 1 if type_ == "pred" else int(re.sub("[a-z]", "", type_))
        variables: list[Any] = []
        registers: list[Any] = []
        for item in trees(tree, "register", "variable", "opaque") or [tree]:
            (name,) = words(item, "IDENT")
            sizes = [self.integer(part.children[1]) for part in trees(item, "range")]
            names = [f"{name}{n}" for n in range(sizes[0])] if sizes else [str(name)]
            if space == "reg":
                self.scopes[-1] |= dict.fromkeys(names, (lanes, 0))
                parts = COMPONENTS[:lanes] or [""]
                registers += [(bare(one) + part, type_) for one in names for part in parts]
                if parameter:
                    variables += [(one, "reg", (type_, lanes or None, None, None), None, "") for one in names]
                continue
            self.scopes[-1] |= dict.fromkeys(names, (0, max(1, bits // 8)))
            dimensions = [self.integer(part.children[0]) if part.children else 0 for part in trees(item, "dimension")]
            outline = [*dimensions, lanes] if lanes else dimensions
            initial = None
            if words(item, "EQUAL") and kind.type == "TYPE":
                contents = item.children[-1]
                if outline and outline[0] == 0:
                    outline[0] = len(contents.children)
                initial = self.filled(contents, outline, type_)
            count = None if not outline else 1
            for size in outline:
                count = (count or 0) * size
            opaque = str(kind)[1:] if kind.type == "OPAQUE" else None
            made = (space, (type_, count, aligned[-1] if aligned else None, opaque), initial, linkage)
            variables += [(one, *made) for one in names]
        return variables, registers

    def filled(self, item: Item, outline: list[int], type_: str) -> list[Any]:
        """The values of all elements, those that are left out being 0."""
        if outline:
            assert isinstance(item, Tree) and item.data == "elements", item
            found = [value for part in item.children for value in self.filled(part, outline[1:], type_)]
            size = 1
            for number in outline:
                size *= number
            return found + [0] * (size - len(found))
        if isinstance(item, Tree) and item.data == "symbol":
            generic = trees(item, "generic")
            inner = generic[0] if generic else item
            offsets = [
                self.offset(part)
                for some in {id(inner): inner, id(item): item}.values()
                for part in trees(some, "offset")
            ]
            return [(bare(words(inner, "IDENT")[0]), sum(offsets), bool(generic))]
        value = self.value(item)
        bits = int(re.sub("[a-z]", "", type_))
        if type_[0] == "f":
            if isinstance(value, int):
                return [value]
            packed = struct.pack("<f" if bits == 32 else "<d", value[0])
            return [value[1] if bits == 32 and value[1] is not None else int.from_bytes(packed, "little")]
        assert isinstance(value, int)
        return [value % (1 << bits)]

    def function(self, tree: Any) -> Any:
        (name,) = words(tree, "IDENT")
        self.scopes[0].setdefault(name, (0, 0))
        self.scopes.append({})
        lists: dict[str, list[Any]] = {"returns": [], "parameters": []}
        registers: dict[str, str] = {}
        for item in trees(tree, "returns", "parameters"):
            for one in trees(item, "parameter", "register_parameter"):
                found = self.declared(one, "", True)
                lists[item.data] += [(bare(name), *rest) for name, *rest in found[0]]
                registers |= dict(found[1])
        directives: dict[str, tuple[int, ...]] = {str(word)[1:]: () for word in words(tree, "FLAG")}
        for item in trees(tree, "sizes"):
            directives[str(words(item)[0])[1:]] = tuple(self.integer(part) for part in item.children[1:])
        self.variables: list[Any] = []
        self.registers = [*registers.items()]
        body: list[Any] | None = None
        for item in trees(tree, "body"):
            body = []
            self.place = None
            self.scope(item, body)
        self.scopes.pop()
        linkage = "".join(words(tree, "LINKAGE"))[1:]
        parts = [lists["parameters"], lists["returns"], self.variables]
        return bare(name), bool(words(tree, "ENTRY")), linkage, parts, self.registers, directives, body

    # -- statements

    def scope(self, tree: Any, body: list[Any]) -> None:
        self.scopes[-1] |= dict.fromkeys((str(item.children[0]) for item in trees(tree, "label")), (0, 0))
        for item in tree.children:
            match item.data if isinstance(item, Tree) else "":
                case "scope":
                    self.scopes.append({})
                    self.scope(item, body)
                    self.scopes.pop()
                case "loc":
                    self.loc(item)
                case "declaration":
                    variables, registers = self.declaration(item)
                    self.variables += [(bare(name), *rest) for name, *rest in variables]
                    self.registers += registers
                case "label" | "instruction" | "call":
                    body.append((getattr(self, item.data)(item), self.place))

    def label(self, tree: Any) -> Any:
        name = bare(words(tree)[0])
        for item in trees(tree, "targets", "prototype"):
            found = []
            for part in trees(item, "label_range"):
                sizes = [self.integer(one.children[1]) for one in trees(part, "range")]
                found += [f"{words(part)[0]}{n}" for n in range(sizes[0])] if sizes else [str(words(part)[0])]
            return str(words(item)[0])[1:], name, [*map(bare, found)]
        return ":", name

    def guard(self, tree: Any) -> Any:
        guards = trees(tree, "guard")
        return (bare(guards[0].children[-1]), len(guards[0].children) == 2) if guards else None

    def instruction(self, tree: Any) -> Any:
        opcode, *qualifiers = words(tree, "IDENT", "QUALIFIER")
        takes = opcode in ("mov", "cvta", "mapa", "getctarank")
        operands = [
            self.operand(item, takes) for item in tree.children if isinstance(item, Tree) and item.data != "guard"
        ]
        return str(opcode), self.guard(tree), [word[1:] for word in qualifiers], operands

    def call(self, tree: Any) -> Any:
        lists: list[list[Any]] = [[], []]
        (function,) = (number for number, item in enumerate(tree.children) if item in trees(tree, "function_called"))
        for number, item in enumerate(tree.children):
            if isinstance(item, Tree) and item.data == "arguments":
                lists[number > function] += [self.operand(part, True) for part in item.children]
        returns = [name for item in lists[0] for name in (item[1] if item[0] == "{" else [item])]
        targets = [bare(word) for word in words(tree, "IDENT")]
        (name,) = words(trees(tree, "function_called")[0])
        return "call", self.guard(tree), bare(name), [returns, lists[1]], targets[0] if targets else None

    # -- operands

    def operand(self, item: Item, takes: bool) -> Any:
        match item.data if isinstance(item, Tree) else "":
            case "name":
                name, *parts = words(item)
                lanes = self.find(name)[0]
                if lanes and not parts:
                    return "{", [bare(name) + part for part in COMPONENTS[:lanes]]
                return bare(name) + "".join(COLORS.get(part, part) if lanes else part for part in parts)
            case "sum_of":
                name, *parts = words(item)
                lanes = self.find(name)[0]
                base = bare(name) + "".join(COLORS.get(part, part) if lanes else part for part in parts)
                return "+", base, self.offset(trees(item, "offset")[0])
            case "element":
                name, index, *rest = item.children
                signed = re.findall(r"([+-])([+-]?)(\w+)", "".join(map(str, rest)))
                extra = sum((-1) ** ((a == "-") + (b == "-")) * self.number(n) for a, b, n in signed)
                offset = self.integer(index) * self.find(name)[1] + extra
                return ("+", bare(name), offset) if takes else ("[", bare(name), offset, None, None)
            case "memory":
                return self.memory(item, takes)
            case "address_of":
                inner = self.operand(item.children[1], True)
                return ("&", inner[1], inner[2]) if inner[0] == "+" else ("&", inner, 0)
            case "pair":
                first, second = words(item, "IDENT")
                components = COMPONENTS[: self.find(first)[0]]
                if components:  # as of a texture instruction
                    return "{", [*(bare(first) + part for part in components), bare(second)]
                return "|", bare(first), bare(second)
            case "negated":
                return "!", bare(words(item)[1])
            case "vector":
                return "{", [self.operand(part, takes) for part in item.children if isinstance(part, Tree)]
            case "literal" if item.children[0] == "WARP_SZ":
                return "WARP_SZ"
            case "sign" if item.children[0] == "!" and str(item.children[1].children[0]) == "WARP_SZ":
                return "!", "WARP_SZ"
        value = self.folded(item)
        if isinstance(value, int):
            return value
        bits = value[1] if value[1] is not None else int.from_bytes(struct.pack("<d", value[0]), "little")
        return "float", bits, value[1] is not None

    def memory(self, tree: Any, takes: bool) -> Any:
        first, *rest = (self.operand(part, takes) for part in tree.children if isinstance(part, Tree))
        extra = "".join(words(tree, "QUALIFIER"))[1:] or None
        coordinates = rest[0] if len(rest) == 1 and isinstance(rest[0], tuple) and rest[0][0] == "{" else None
        if rest and coordinates is None:
            extra = "coordinates"
        base, offset = first[1:] if isinstance(first, tuple) and first[0] == "+" else (first, 0)
        return "[", base, offset, extra, coordinates

    # -- constants (4.5.5, 4.5.6)

    def offset(self, tree: Any) -> int:
        """A sign and what follows it are one expression, which begins with that sign."""
        text = self.text[tree.meta.start_pos : tree.meta.end_pos]
        expression = LARK.parse(text, start="expression")
        value = self.folded(expression)
        assert isinstance(value, int)
        return value

    def folded(self, item: Any) -> int | tuple[float, int | None]:
        """The value in an instruction, where a number with a sign has as many bits as it needs."""
        if item.data == "sign" and item.children[1].data == "literal" and words(item.children[1], "NUMBER"):
            sign, number = words(item)[0], self.number(words(item.children[1])[0])
            if sign in ("+", "-"):
                return -number if sign == "-" else number
        return self.value(item)

    def integer(self, item: Any) -> int:
        value = self.value(item)
        assert isinstance(value, int)
        return value

    def value(self, item: Any) -> int | tuple[float, int | None]:
        """An integer, or a floating-point number with its bits if it is one of single precision."""
        found = self.typed(item)
        return found[0] if isinstance(found[0], int) else (found[0], found[1])

    def typed(self, tree: Any) -> Any:
        """An integer and whether it is unsigned, or a floating-point number and its bits or None."""
        parts = [self.typed(item) for item in tree.children if isinstance(item, Tree)]
        match tree.data:
            case "literal":
                (word,) = words(tree)
                if word.type == "FLOAT":
                    exact = word[:2] in ("0f", "0F", "0d", "0D")
                    data = int(word[2:], 16).to_bytes((len(word) - 2) // 2, "big") if exact else b""
                    number = struct.unpack(">f" if len(data) == 4 else ">d", data)[0] if exact else float(word)
                    return number, int(word[2:], 16) if len(data) == 4 else None
                value = 32 if word == "WARP_SZ" else self.number(word)
                return value, word.endswith("U") or value >= 1 << 63
            case "sign":
                value, unsigned = parts[0]
                match str(words(tree)[0]):
                    case "+":
                        return value, unsigned
                    case "-":
                        return (-value, None) if isinstance(value, float) else wrapped(-value, unsigned)
                    case "~":
                        return wrapped(~value, True)
                return int(not value), False
            case "cast":
                return wrapped(parts[0][0], words(tree, "CAST")[0] == ".u64")
            case "conditional":
                test, first, second = parts
                chosen = first if test[0] else second
                return chosen if isinstance(chosen[0], float) else wrapped(chosen[0], first[1] or second[1])
        (left, one), (right, other) = parts
        (operator,) = words(tree)
        if isinstance(left, float):
            found = COMPUTED[operator](left, right)
            return found, False if isinstance(found, bool) else None
        unsigned = one or other
        if operator in ("<<", ">>"):
            return wrapped(COMPUTED[operator](left, right), one)
        if operator == "%":
            return wrapped(left % 2**64 % (right % 2**64), False)
        a, b = wrapped(left, unsigned)[0], wrapped(right, unsigned)[0]
        if operator == "/":
            return wrapped(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), unsigned)
        found = COMPUTED[operator](a, b)
        return (int(found), False) if isinstance(found, bool) else wrapped(found, unsigned)


COMPUTED: dict[str, Any] = {
    **{
        sign: eval(f"lambda a, b: a {sign} b")
        for sign in ["+", "-", "*", "/", "&", "|", "^", "<<", ">>", "==", "!=", "<", ">", "<=", ">="]
    },
    "&&": lambda a, b: bool(a and b),
    "||": lambda a, b: bool(a or b),
}


def wrapped(value: int, unsigned: bool) -> tuple[int, bool]:
    value %= 1 << 64
    return value if unsigned or value < 1 << 63 else value - (1 << 64), unsigned


# -- the tests -----------------------------------------------------------------------------------------------------


def row(tokens: list[str], sentences: Sentences, rng: random.Random) -> str:
    """The tokens with something between them, or nothing where they stay what they are."""
    text = ""
    for token in tokens:
        glued = re.search(r"[\w$%.]$", text) and re.match(r"[\w$.:\"]", token)
        text += ("" if not glued and rng.random() < 0.4 else rng.choice((" ", " ", *sentences.blanks))) + token
    return text


def test_sentences_of_the_grammar() -> None:
    """Every rule of the grammar is in some of them."""
    sentences = Sentences(LARK, SAMPLES, ("\n", "// c\n", "/* ; */"))
    rng = random.Random(7)
    least = {"start": 20, "_item": 700, "function": 200, "_contents": 3, "_line": 700}
    for start, count in zip(FRAMES, (400, 1500, 1000, 300, 1500), strict=True):
        right = wrong = 0
        for _ in range(count):
            some = sentences.tokens(rng, start, rng.choice((4, 8, 20)))
            right += taken(FRAMES[start].format(row(some, sentences, rng)))
            wrong += not taken(FRAMES[start].format(row(sentences.mutant(some, rng), sentences, rng)))
        assert right > least[start] and wrong > 0.5 * count
    assert [name for name, rules in sentences.rules.items() if sentences.used.isdisjoint(rules)] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_modules(path: Path) -> None:
    """Modules as compilers print them, and with some places changed."""
    text = path.read_text(encoding="utf-8")
    assert taken(text)
    rng = random.Random(8)
    for _ in range(2):
        taken(mutant(text, PIECES, rng))


def test_the_readers_name_every_rule() -> None:
    modules = (
        module,
        module_bodies,
        module_constants,
        module_declarations,
        module_places,
        module_statements,
        module_tokens,
    )
    docs = " ".join(" ".join((inspect.getdoc(item) or "").split()) for some in modules for item in functions(some))
    assert [rule for rule in written_rules(GRAMMAR) if rule not in docs] == []


def functions(value: Any) -> Iterator[Any]:
    for item in vars(value).values():
        if inspect.isfunction(item):
            yield item
        elif inspect.isclass(item) and item.__module__ == getattr(value, "__name__", ""):
            yield from functions(item)
