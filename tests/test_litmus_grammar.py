"""The readers of the litmus format read what its grammar has, make of it what stands there, and refuse the rest."""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from lark import Lark, Token, Tree, UnexpectedInput
from lark.exceptions import UnexpectedToken
from lark.grammar import Rule
from msgspec.structs import replace

from ptxmm import formats
from ptxmm.errors import PtxmmError, Span
from ptxmm.formats import conditions, declarations, initializers, threads, tokens
from ptxmm.formats.text import Text, open_text
from ptxmm.program import condition, source
from ptxmm.program.floats import is_real
from ptxmm.program.shared.tensors import TENSORMAP_BYTES
from ptxmm.program.test import Placement
from ptxmm.ptx.ops import Type
from ptxmm.ptx.parser import parse_integer
from tests.sentences import Sentences
from tests.test_readers import written_rules

Item = Token | Tree[Token]
STARTS = ("initial", "own_registers", "head", "final")
GRAMMAR = Path(formats.__file__).with_name("litmus.lark").read_text(encoding="utf-8")
LARK = Lark(GRAMMAR, start=list(STARTS), parser="lalr", propagate_positions=True, maybe_placeholders=False)
SAMPLES = {
    "NAME": ("x", "y", "%r1", "P1", "cta", "not", "generic", "mbarrier", "exists"),
    "NUMBER": ("0", "1", "1", "1", "1", "2", "2", "4", "16", "0x1f", "0b11", "017", "1.5", "0f3F800000", "9" * 25),
    "REG": (".reg",),
    "SPACE": (".global", ".shared", ".shared::cta", ".const", ".tmem"),
    "TYPE": (".u32", ".b128", ".f16x2", ".f16", ".s8"),
    "PREDICATE": (".pred",),
    "VECTOR": (".v2", ".v4"),
    "ALIGN": (".align",),
    "ELEMENT_TYPE": ("u32", ".bf16", ".b8"),
    "EQUAL": ("=",),
    "LESS": ("<",),
    "GREATER": (">",),
    "COMPARISON": ("==", "!=", "<=", ">="),
    "PROXY": ("generic", "surface"),
    "ALIASES": ("aliases",),
    "MULTIMEM": ("multimem",),
    "MBARRIER": ("mbarrier",),
    "TENSORMAP": ("tensormap",),
    "GENERIC": ("generic",),
    "OWNER": ("cta", "cluster"),
    "LEVEL": ("cta", "gpu", "warp"),
    "NEXT_LEVEL": (", cta", ",grid"),
    "THREAD": ("P0", "host", "_"),
    "HOST": ("host",),
    "PLACE": ("cta", "gpu", "warp", "cluster"),
    "GRID": ("grid",),
    "DIGITS": ("0", "12", "123456789"),
    "OVERLAP": ("overlap",),
    "EXISTS": ("exists",),
    "FORALL": ("forall",),
    "LOCATIONS": ("locations",),
    "FILTER": ("filter",),
    "NOT": ("not",),
    "TRUE": ("true",),
    "FALSE": ("false",),
}


def read(start: str, text: Text) -> object:
    """What the readers by hand make of the whole of ``text``."""
    characters = text.characters
    match start:
        case "initial":
            found = declarations.parse_initial(text, characters, 0, len(characters))
            return found.declarations, found.registers
        case "own_registers":
            cursor = tokens.Cursor(text, characters, 0, len(characters))
            entries = declarations.parse_registers(cursor, "P0")
            if cursor.peek().kind != "end":
                raise cursor.unexpected("`,` or `;`")
            return entries
        case "head":
            begin = len(characters) - len(characters.lstrip())
            name, span, placement = threads._head(text, characters, begin, len(characters.rstrip()))
            return name, span, placement
    final = conditions.parse_final(text, characters, 0)
    return final.condition and (final.condition.kind, final.condition.proposition), final.locations, final.filter


class Meaning:
    """What stands in a tree of the grammar, as the values that the readers make."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def of(self, tree: Tree[Token]) -> Any:
        """The value of a tree, by the function of its rule."""
        return getattr(self, tree.data)(*tree.children, span=self.span(tree))

    def span(self, first: Item, last: Item | None = None) -> Span:
        ends = [item if isinstance(item, Token) else item.meta for item in (first, last or first)]
        if not ends[0] or ends[0].start_pos is None:
            return Span(0, 0, 0)
        return self.text.span(ends[0].start_pos, ends[1].end_pos or 0)

    # -- the initial state

    def initial(self, *items: Tree[Token], span: Span) -> object:
        found = [item for tree in items for item in self.listed(self.of(tree))]
        registers = tuple(item for item in found if isinstance(item, source.RegisterEntry))
        return tuple(item for item in found if not isinstance(item, source.RegisterEntry)), registers

    @staticmethod
    def listed(value: Any) -> list[Any]:
        return value if isinstance(value, list) else [value]

    def registers(self, _: Token, type_: Token, *items: Tree[Token], span: Span) -> object:
        return [self.entry(initializers.TYPES[type_], entry) for tree in items for entry in self.of(tree)]

    own_registers = registers

    @staticmethod
    def entry(type_: Type, entry: source.RegisterEntry) -> source.RegisterEntry:
        return replace(entry, type=type_)

    def register(self, thread: Token, name: Token, *items: Item, span: Span) -> object:
        return [replace(entry, thread=owner(thread)) for entry in self.named(thread, name, *items)]

    def own_register(self, name: Token, *items: Item, span: Span) -> object:
        return self.named(name, name, *items)

    def named(self, first: Token, name: Token, *items: Item) -> list[source.RegisterEntry]:
        last: Item = name
        names = [name.removeprefix("%")]
        counts = [item for item in items if isinstance(item, Tree) and item.data == "range"]
        for tree in counts:
            last, names = tree, [f"{names[0]}{n}" for n in range(self.of(tree))]
        values = [self.of(item) for item in items if isinstance(item, Tree) and item not in counts]
        initial = values[0] if values else None
        return [source.RegisterEntry("P0", n, self.span(first, last), None, initial) for n in names]

    def range(self, _: Token, number: Tree[Token], __: Token, span: Span) -> object:
        return self.of(number)

    def register_value(self, thread: Token, name: Token, _: Token, value: Tree[Token], span: Span) -> object:
        place = self.span(thread, name)
        return source.RegisterEntry(owner(thread), name.removeprefix("%"), place, None, self.of(value))

    def alias(self, name: Token, proxy: Token, _: Token, target: Token, span: Span) -> object:
        return source.Alias(name, self.span(name), proxy, target, self.span(target))

    def multimem(self, name: Token, _: Token, *targets: Token, span: Span) -> object:
        return source.MultimemAddress(name, self.span(name), tuple((t, self.span(t)) for t in targets))

    def variables(self, space: Token, *items: Item, span: Span) -> object:
        shape = {item.type: item for item in items if isinstance(item, Token)}
        type_ = initializers.TYPES[shape["TYPE"]]
        lanes = int(shape["VECTOR"][2]) if "VECTOR" in shape else None
        trees = [item for item in items if isinstance(item, Tree)]
        alignment = ([None] + [self.of(tree) for tree in trees if tree.data == "alignment"])[-1]
        if lanes:
            alignment = max(alignment or 0, lanes * type_.bytes)
        name = space.split("::")[0].removeprefix(".")
        found = [self.declared(name, type_, lanes, *tree.children) for tree in trees if tree.data == "variable"]
        return [replace(variable, alignment=alignment) for variable in found]

    def alignment(self, _: Token, *number: Token, span: Span) -> object:
        return self.number(*number, span=span)

    def variable_value(self, *items: Item, span: Span) -> object:
        return self.declared("global", None, None, *items)

    def declared(self, space: str, type_: Type | None, lanes: int | None, name: Any, *items: Item) -> source.Variable:
        trees = {str(item.data): item for item in items if isinstance(item, Tree)}
        size = self.of(trees.pop("dimension")) if "dimension" in trees else None
        place = self.of(trees.pop("owner")) if "owner" in trees else None
        count = None if size is None and lanes is None else (1 if size is None else size) * (lanes or 1)
        values: tuple[Any, ...] | None = None
        for tree in trees.values():
            if tree.data == "elements":
                values = tuple(self.filled(tree.children, lanes or 1))
                count = count or -(-len(values) // (lanes or 1)) * (lanes or 1)
            else:
                values = (self.of(tree),)
                count = TENSORMAP_BYTES // type_.bytes if count == 0 and type_ else count
        return source.Variable(name, self.span(name), space, type_, count, values, place)

    def filled(self, items: list[Any], lanes: int) -> Iterator[Any]:
        """The values of elements; a vector with too few is filled with 0 where it begins."""
        for item in items:
            if item.data != "vector":
                yield self.of(item)
                continue
            yield from map(self.of, item.children)
            start = item.meta.start_pos
            zero = source.Constant(0, self.text.span(start, start + 1))
            yield from [zero] * (lanes - len(item.children))

    def dimension(self, *size: Tree[Token], span: Span) -> object:
        return self.of(size[0]) if size else 0

    def owner(self, *words: Token, span: Span) -> object:
        return self.path(*words, span=self.span(words[0], words[-1]))

    def mbarrier(self, _: Token, pending: Tree[Token], *tx: Tree[Token], span: Span) -> object:
        return source.MbarrierState(self.of(pending), self.of(tx[0]) if tx else 0, span)

    def tensormap(self, _: Token, target: Tree[Token], type_: Token, *lists: Tree[Token], span: Span) -> object:
        name = type_.removeprefix(".")
        box, dims, strides, steps = [self.of(tree) for tree in lists] + [None] * (4 - len(lists))
        element = Type("bf", 16) if name == "bf16" else initializers.TYPES[f".{name}"]
        return source.TensorMapValue(self.of(target), element, box, span, dims, strides, steps or (1,) * len(box))

    def sizes(self, *numbers: Tree[Token], span: Span) -> object:
        return tuple(map(self.of, numbers))

    strides = sizes

    # -- values

    def constant(self, *words: Token, span: Span) -> object:
        text, sign = words[-1], -1 if len(words) == 2 else 1
        if is_real(text):
            return source.Real("-" * (sign < 0) + text, span)
        return source.Constant(sign * int(re.sub("^0([0-7])", r"0o\1", text), 0), span, text[:2] in ("0x", "0b"))

    def number(self, *words: Token, span: Span) -> int:
        return (parse_integer(words[-1]) or 0) * (-1 if len(words) == 2 else 1)

    def generic(self, _: Token, address: Tree[Token], span: Span) -> object:
        return replace(self.of(address), generic=True)

    def address(self, *items: Item, span: Span) -> object:
        target, *offset = [item for item in items if item != "&"]
        assert isinstance(target, Tree)
        sign = -1 if offset and offset[0] == "-" else 1
        return source.AddressOf(self.of(target), sign * self.of(offset[1]) if offset else 0, span)  # type: ignore[arg-type]

    pointer = address

    def term(self, *items: Item, span: Span) -> source.NameTerm:
        words = [item for item in items if isinstance(item, Token)]
        parts = {str(item.data): self.of(item) for item in items if isinstance(item, Tree)}
        thread = owner(words[0]) if len(words) == 2 else None
        return source.NameTerm(words[-1].removeprefix("%"), span, parts.get("index"), thread, parts.get("path"))

    target = term

    def index(self, number: Tree[Token], span: Span) -> object:
        return self.of(number)

    def path(self, *words: Token, span: Span) -> source.Path:
        levels = [word.lstrip(", \n") for word in words if word.type not in ("MINUS", "NUMBER")]
        signs = [-1 if before == "-" else 1 for before, word in pairwise(words) if word.type == "NUMBER"]
        numbers = [parse_integer(word) or 0 for word in words if word.type == "NUMBER"]
        values = [sign * number for sign, number in zip(signs, numbers, strict=True)]
        return source.Path(tuple(zip(levels, values, strict=True)), span)

    # -- threads and what follows them

    def head(self, name: Token, *items: Item, span: Span) -> object:
        places = [self.of(item) for item in items if isinstance(item, Tree)]
        overlap = any(overlap for _, _, overlap in places)
        host = any(isinstance(item, Token) for item in items)
        levels = {level: number for level, number, _ in places}
        return name, self.span(name), Placement(**levels, host=host, overlap=overlap)

    def place(self, level: Token, number: Token, *overlap: Token, span: Span) -> object:
        return str(level), int(number), bool(overlap)

    def final(self, *sections: Tree[Token], span: Span) -> object:
        found = {str(tree.data): self.of(tree) for tree in sections}
        return found.get("condition"), found.get("locations", ()), found.get("filter")

    def condition(self, *items: Item, span: Span) -> object:
        *words, proposition = items
        assert isinstance(proposition, Tree)
        return "".join(str(word) for word in words), self.of(proposition)

    def locations(self, _: Token, *terms: Tree[Token], span: Span) -> object:
        return tuple(map(self.of, terms))

    def filter(self, _: Token, proposition: Tree[Token], span: Span) -> object:
        return self.of(proposition)

    def disjunction(self, *items: Tree[Token], span: Span) -> object:
        found = tuple(map(self.of, items))
        return found[0] if len(found) == 1 else condition.Disjunction(found)

    def conjunction(self, *items: Item, span: Span) -> object:
        constants = {"true": condition.Conjunction(()), "false": condition.Disjunction(())}
        found: tuple[Any, ...] = tuple(constants[i] if isinstance(i, Token) else self.of(i) for i in items)
        return found[0] if len(found) == 1 else condition.Conjunction(found)

    def negation(self, _: Token, item: Item, span: Span) -> object:
        return condition.Negation(self.conjunction(item, span=span))  # type: ignore[arg-type]

    def comparison(self, left: Tree[Token], operator: Token, right: Tree[Token], span: Span) -> object:
        return condition.Comparison("==" if operator == "=" else str(operator), self.of(left), self.of(right))


def owner(thread: Token) -> str:
    """``0:`` and ``P0:`` name the same thread."""
    return f"P{parse_integer(thread)}" if thread.type == "NUMBER" else str(thread)


BEYOND = re.compile(
    r"""expected a number or an address|.* is not an integer of at most 64 bits|the number of registers is|a second
    |a host thread has no place|.*is not an array, so|.* initial values for |`%` starts the name of a register
    |.*is a power of two|the initial values of the |a vector has at most|a box |a phase that misses
    |.* belongs? to a CTA|an array has 1 to|the number of elements of|a stride is|a number of (arrivals|bytes) is
    |a traversal stride|an initial value is a number or|a tensor map names|the array .* has neither
    |the traversal stride|a tensor has|the bytes from one element""".replace("\n    ", "")
)
"""What is wrong with sentences of the grammar: numbers and sizes, what belongs together, and what is there twice."""


def refused(start: str, text: Text) -> int | None:
    """The offset of the first token or character that the grammar does not have there, or None."""
    try:
        LARK.parse(text.characters, start=start)
    except UnexpectedToken as error:
        return len(text.characters.rstrip()) if error.token.type == "$END" else error.token.start_pos
    except UnexpectedInput as error:
        return error.pos_in_stream
    return None


def judged(start: str, text: Text) -> tuple[bool, bool]:
    """Whether the readers take ``text``, and whether they refuse it where the grammar does. What they take they must
    read as it stands there; what is of the grammar they may refuse for one of the reasons ``BEYOND`` it only."""
    place = refused(start, text)
    try:
        found = read(start, text)
    except PtxmmError as error:
        assert place is not None or BEYOND.match(error.message), (text.characters, error.message)
        assert error.line and error.column
        return False, text.starts[error.line - 1] + error.column - 1 == place
    assert place is None, (text.characters, found)
    assert found == Meaning(text).of(LARK.parse(text.characters, start=start)), text.characters
    return True, False


@pytest.mark.parametrize("start", STARTS)
def test_sentences_of_the_grammar(start: str) -> None:
    """Errors have the place at which the grammar ends, but for those that tell what is wrong before or as a whole."""
    sentences = Sentences(LARK, SAMPLES, ("\n",))
    rng = random.Random(6)
    right, wrong, alike = 0, 0, 0
    for _ in range(3000):
        tokens = sentences.tokens(rng, start, rng.choice((4, 12, 60)))
        for some in (tokens, sentences.mutant(tokens, rng)):
            text = sentences.text(some, rng)
            if text.strip():
                taken, same = judged(start, open_text(text, "t"))
                right, wrong, alike = right + taken, wrong + (not taken), alike + same
    assert right > 700 and wrong > 1500
    assert alike > 0.6 * wrong
    assert {rule for rules in sentences.rules.values() for rule in rules} - sentences.used <= others(sentences, start)


def others(sentences: Sentences, start: str) -> set[Rule]:
    """The rules that no sentence from ``start`` has."""
    reached, found = {start}, set[Rule]()
    while new := [rule for name in reached for rule in sentences.rules[name] if rule not in found]:
        found.update(new)
        reached |= {symbol.name for rule in new for symbol in rule.expansion if symbol.name in sentences.rules}
    return {rule for rules in sentences.rules.values() for rule in rules} - found


def test_the_readers_name_every_rule() -> None:
    modules = (conditions, declarations, initializers, threads, tokens)
    docs = " ".join(
        " ".join((inspect.getdoc(item) or "").split())
        for module in modules
        for item in (*vars(module).values(), *vars(tokens.Cursor).values())
        if inspect.isfunction(item)
    )
    assert [rule for rule in written_rules(GRAMMAR) if rule not in docs] == []
