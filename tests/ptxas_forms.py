"""Instruction forms to be judged by ptxmm and by ptxas: legal and illegal ones.

They come from two places: the syntax lines of the ISA (``ptxas_syntax.txt``), all of which are legal, and ptxmm's own
instruction table: the product of the groups of every row (each group absent or one of its qualifiers), legal or not.
Both are sampled where they are large. From the accepted ones come mutants: a qualifier dropped, doubled, moved,
replaced or added from the vocabulary of all rows, an operand dropped, added or made of another kind, another guard.
All choices are seeded, so that the same table and the same lines always give the same forms.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import PtxmmError, Span
from ptxmm.program.registers import register_types
from ptxmm.program.source import RegisterEntry, ThreadSource
from ptxmm.program.test import Placement
from ptxmm.ptx.isa import requires, resolve
from ptxmm.ptx.ops import Type
from ptxmm.ptx.ops.signatures import CARRY
from ptxmm.ptx.parser import parse_statements
from ptxmm.ptx.syntax import Instruction
from ptxmm.ptx.table import FORMS, Form, Version
from tests.ptxas_syntax import (
    LABELS,
    REGISTERS,
    TYPES,
    VARIABLES,
    Line,
    Target,
    closest_lines,
    instructions_of,
    operands_for,
    split_operands,
    syntax_lines,
)

# Groups that choose how an access is cached, prefetched or hinted: they never create events (semantics section 3).
CACHE_GROUPS = frozenset({"cop", "evict", "hint", "prefetch", "unified"})
BASE = Target()
ANY = Version((1, 0))
_PREDICATES = frozenset(name for name, bits in REGISTERS.items() if bits == 1)
_SPAN = Span(1, 1, 2)
# What ptxmm has to know of the thread for the types of registers: those of the module that ptxas gets.
_THREAD = ThreadSource("P0", _SPAN, Placement(), ())
_REGISTERS = tuple(
    RegisterEntry("P0", name, _SPAN, Type("pred" if bits == 1 else "b", bits))
    for name, bits in {**REGISTERS, CARRY: 1}.items()
)


class Case(Struct, frozen=True):
    """One instruction: the opcode and its qualifiers, its operands, and a guard or nothing. ``target``: the version
    and target it is for; ``legal``: whether it is from a syntax line of the ISA."""

    words: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str = ""
    target: Target = BASE
    legal: bool = False

    @property
    def row(self) -> str:
        """The row of ptxmm's instruction table that has the most words of the instruction, or the opcode."""
        found = (row for row in FORMS if row.split(".")[0] == self.words[0] and set(row.split(".")) <= set(self.words))
        return max(found, key=len, default=self.words[0])

    @property
    def moved(self) -> bool:
        """Whether the qualifiers are in another order than in the syntax lines that have the most of them."""
        return not any(line.in_order(self.words) for line in closest_lines(self.words))

    @property
    def text(self) -> str:
        """The instruction as PTX, with its semicolon."""
        return f"{self.guard}{'.'.join(self.words)} {', '.join(self.operands)}".rstrip() + ";"


def case_of(text: str, target: Target = BASE) -> Case:
    """The case that ``text``, an instruction without a semicolon, is."""
    found = re.fullmatch(r"(@!?\w+ )?(\S+)(.*)", text)
    if found is None:
        raise ValueError(f"not an instruction: {text}")
    guard, words, operands = found.groups()
    return Case(tuple(words.split(".")), split_operands(operands), guard or "", target)


class Judgement(Struct, frozen=True):
    """What ptxmm says. ``accepts``: True, False, or None for real PTX that it says it doesn't support; ``says``: the
    message of a refusal; ``needs``: the first PTX version and target that have the form."""

    accepts: bool | None
    says: str = ""
    needs: Version = ANY


def judge(case: Case) -> Judgement:
    """What ptxmm says of ``case``. Any exception but a ``PtxmmError`` is a defect and goes on upwards."""
    try:
        (item,) = parse_statements(case.text)
        assert isinstance(item, Instruction), case.text
        isa = case.target.ptx
        op = resolve(item, dialect=False, variables=VARIABLES, labels=LABELS, isa=isa, predicates=_PREDICATES)
        register_types(_THREAD, [op], _REGISTERS, dialect=False, isa=isa)
    except PtxmmError as error:
        return Judgement(None if error.kind == "unsupported" else False, error.message)
    return Judgement(True, "", requires(item, predicates=_PREDICATES))


def cases_of_line(line: Line, limit: int, mutants: int) -> Iterator[Case]:
    """What a syntax line allows, at most ``limit`` of it, and as many mutants as ``mutants`` says."""
    rng = random.Random(repr((line.qualifiers, line.operands)))
    seen: dict[str, Case] = {}
    for words, operands in instructions_of(line, limit, rng):
        guard = rng.choice(("", "", "", "@p8 ", "@!p8 ")) if _takes_guard(words) else ""
        case = Case(words, operands, guard, line.target, legal=True)
        seen.setdefault(case.text, case)
    yield from seen.values()
    yield from _mutants(list(seen.values()), mutants, set(seen), rng)


def cases_of_row(form: Form, limit: int, mutants: int) -> Iterator[Case]:
    """Combinations of the groups of one row of ptxmm's table, about ``limit``, and mutants of those that ptxmm
    accepts. Raises ``LookupError``, which names the opcode, where the ISA's syntax has no line for it."""
    rng = random.Random(form.opcode)
    seen: set[str] = set()
    accepted: list[Case] = []
    for words in combinations(form, limit, rng):
        case = _case(_arranged(words, form), rng)
        if case.text not in seen:
            seen.add(case.text)
            yield case
            if judge(case).accepts:
                accepted.append(case)
    yield from _mutants(accepted, mutants, seen, rng)


def _case(words: tuple[str, ...], rng: random.Random) -> Case:
    """The case with these words, which may be illegal, and operands like those of a closest syntax line; of PTX 8.5,
    whatever version that line is of."""
    line = rng.choice(closest_lines(words))
    pattern = "".join(rng.choice(piece) for piece in line.operands)
    target = Target(name="sm_90a") if line.target.name.endswith("a") else BASE
    return Case(words, operands_for(words, pattern, rng), target=target)


def _takes_guard(words: tuple[str, ...]) -> bool:
    """Accesses to parameters of functions may not be predicated."""
    return not {"param", "param::func"} & set(words)


# -- the combinations of a row -------------------------------------------------------------------------------------


def combinations(form: Form, limit: int, rng: random.Random) -> Iterator[tuple[str, ...]]:
    """The words of combinations of the groups of ``form``: the whole product if it has at most ``limit`` members;
    else the product without ``CACHE_GROUPS`` (or a sample of it, too), and a sample of the whole."""
    options = _options(form)
    if math.prod(map(len, options.values())) <= limit:
        yield from _product(form, options)
        return
    core = {group: values for group, values in options.items() if group not in CACHE_GROUPS}
    if math.prod(map(len, core.values())) <= limit // 2:
        yield from _product(form, core)
    else:
        yield from (_draw(form, core, rng) for _ in range(limit // 2))
    yield from (_draw(form, options, rng) for _ in range(limit // 2))


_Options = Mapping[str, tuple[str | None, ...]]


def _options(form: Form) -> dict[str, tuple[str | None, ...]]:
    """What each group of ``form`` can be; ``cvt`` has two types."""
    options: dict[str, tuple[str | None, ...]] = {}
    for group, words in form.groups.items():
        options[group] = (None, *words)
        if group == "type":
            for number in range(2, int(form.fixed.get("types", "1")) + 1):
                options[f"type{number}"] = options["type"]
    return options


def _product(form: Form, options: _Options) -> Iterator[tuple[str, ...]]:
    for values in itertools.product(*options.values()):
        yield _words(form, values)


def _draw(form: Form, options: _Options, rng: random.Random) -> tuple[str, ...]:
    """A random member of the product, in which what is required is mostly there."""
    picked: list[str | None] = []
    for group, values in options.items():
        there = rng.random() < (0.97 if group in form.required else 0.3 if group in CACHE_GROUPS else 0.6)
        picked.append(rng.choice(values[1:]) if there and len(values) > 1 else None)
    return _words(form, picked)


def _words(form: Form, picked: Iterable[str | None]) -> tuple[str, ...]:
    opcode, *fixed = form.opcode.split(".")
    chosen = [word for word in picked if word is not None]
    return (opcode, *(word for word in fixed if word not in chosen), *chosen)


def _arranged(words: tuple[str, ...], form: Form) -> tuple[str, ...]:
    """``words`` with those of the row's name where a closest syntax line has them, relative to the others."""
    places = closest_lines(words)[0].places
    fixed = [word for word in form.opcode.split(".")[1:] if word in places]
    out = [word for word in words if word not in fixed]
    for word in fixed:
        before = [i for i, other in enumerate(out) if other in places and places[other] < places[word]]
        out.insert(max(before, default=0) + 1, word)
    return tuple(out)


# -- mutants -------------------------------------------------------------------------------------------------------


def _mutants(legal: list[Case], count: int, seen: set[str], rng: random.Random) -> Iterator[Case]:
    for _ in range(count if legal else 0):
        case = mutant(rng.choice(legal), rng)
        if case.text not in seen:
            seen.add(case.text)
            yield case


def mutant(case: Case, rng: random.Random) -> Case:
    """``case`` with one change: usually illegal, but the two judges decide. The operands follow the qualifiers."""
    case = replace(case, legal=False)
    words = list(case.words)
    change = rng.choice(("drop", "double", "move", "replace", "replace", "add", "add", "type", "operand", "guard"))
    if change == "guard":
        return replace(case, guard="" if case.guard else "@p8 ")
    if change == "operand" or len(words) == 1:
        return replace(case, operands=_other_operands(list(case.operands), rng))
    index = rng.randrange(1, len(words))
    if change == "drop":
        del words[index]
    elif change == "double":
        words.insert(rng.randrange(1, len(words) + 1), words[index])
    elif change == "move":
        words.insert(rng.randrange(1, len(words)), words.pop(index))
        if words[0] != "cvt":  # the order of its types says which is which
            return replace(case, words=tuple(words))
    elif change == "replace":
        words[index] = rng.choice(_like(words[index]))
    elif change == "type":
        places = [i for i, word in enumerate(words) if i and word in TYPES]
        if places:
            words[rng.choice(places)] = rng.choice(TYPES)
    else:
        words.insert(rng.randrange(1, len(words) + 1), rng.choice(vocabulary()))
    other = _case(tuple(words), rng)
    return replace(other, guard=case.guard, target=max(other.target, case.target))


@cache
def vocabulary() -> tuple[str, ...]:
    """All qualifiers of all rows and syntax lines, and all types, in a fixed order."""
    words = {word for form in FORMS.values() for group in form.groups.values() for word in group}
    words |= {word for form in FORMS.values() for word in form.later}
    words |= {word for line in syntax_lines() for word in line.places if word != line.opcode}
    return tuple(sorted(words | set(TYPES)))


@cache
def _like(word: str) -> tuple[str, ...]:
    """The other qualifiers that are in a group with ``word`` in any row; any qualifier if there are none."""
    groups = [words for form in FORMS.values() for words in form.groups.values() if word in words]
    return tuple(sorted({other for words in groups for other in words} - {word})) or vocabulary()


def _other_operands(operands: list[str], rng: random.Random) -> tuple[str, ...]:
    """One operand dropped, added, with or without brackets, or of another kind."""
    change = rng.choice(("drop", "add", "brackets", "kind", "kind"))
    index = rng.randrange(len(operands)) if operands else 0
    if change == "add" or not operands:
        operands.insert(rng.randrange(len(operands) + 1), rng.choice(("r1", "7", "[d2]")))
    elif change == "drop":
        del operands[index]
    elif change == "brackets":
        old = operands[index]
        operands[index] = old.strip("[]") if old.startswith("[") else f"[{old}]"
    else:
        operands[index] = rng.choice(("3", "[d1+8]", "{r1, r2}", "!p1", "p1|p2", "-1", "_", "r5+4"))
    return tuple(operands)
