"""The syntax lines of the ISA (``ptxas_syntax.txt``): what they allow, and operands that fit given qualifiers.

Registers are untyped bits, which every type of the same size accepts (PTX ISA 5.2.1, 9.4): ``h`` 16 bits, ``r`` 32,
``d`` 64, ``w`` 128, ``p`` predicates. Each state space has a variable whose name starts with ``x``.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

FILE = Path(__file__).with_name("ptxas_syntax.txt")
LABELS: Mapping[str, int] = {"L0": 0}
VARIABLES = frozenset({"xg", "xs", "xl", "xc", "xe", "xf", "xu"})
TYPES = (
    *("b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"),
    *("f16", "f16x2", "bf16", "bf16x2", "tf32", "f32", "f64", "pred", "u16x2", "s16x2"),
)
_SPACE_VARIABLES: Mapping[str, str] = {
    **{"global": "xg", "const": "xc", "local": "xl", "param": "xe", "param::entry": "xe", "param::func": "xf"},
    **{"shared": "xs", "shared::cta": "xs", "shared::cluster": "xs"},
}
_BITS: Mapping[str, int] = {"pred": 1, "f16x2": 32, "bf16": 16, "bf16x2": 32, "tf32": 32, "u16x2": 32, "s16x2": 32}
_LETTERS: Mapping[int, str] = {1: "p", 8: "h", 16: "h", 32: "r", 64: "d", 128: "w"}
REGISTERS: Mapping[str, int] = {
    f"{letter}{i}": bits
    for letter, bits, count in (("p", 1, 10), ("h", 16, 10), ("r", 32, 140), ("d", 64, 10), ("w", 128, 10))
    for i in range(count)
}
_ELEMENTS: Mapping[str, int] = {
    "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "s32": 32,
    "e4m3": 8, "e5m2": 8,
}  # fmt: skip
_VECTORS: Mapping[str, int] = {"v2": 2, "v4": 4, "v8": 8}
_PIECE = re.compile(r"\{([^{}]*)\}|<([^<>]*)>|([^{}<>]+)")
_SHAPE = re.compile(r"m\d+n\d+k\d+")
_TOKEN = re.compile(r"\$wided|\$wide|\$\w+|\[\$\]")


class Target(Struct, frozen=True, order=True):
    """``.version`` and ``.target`` of a module."""

    ptx: tuple[int, int] = (8, 5)
    name: str = "sm_90"

    @property
    def sm(self) -> int:
        """The number of the target, without the letter of an architecture-specific one."""
        return int(re.sub(r"\D", "", self.name))


class Line(Struct, frozen=True):
    """A syntax line: the opcode, and its pieces, each with its alternatives: those of the qualifiers (the first one
    begins with the opcode), and those of the operands. ``places``: for each qualifier, its rank in the line."""

    opcode: str
    qualifiers: tuple[tuple[str, ...], ...]
    operands: tuple[tuple[str, ...], ...]
    target: Target
    places: Mapping[str, int]

    def distance(self, words: Sequence[str]) -> int:
        """How far instructions with these words are from the line: qualifiers that it has not, and pieces missing."""
        mine = set(words)
        missing = sum(all(not set(option.split(".")) - {""} <= mine for option in piece) for piece in self.qualifiers)
        return missing + len(mine - self.places.keys())

    def in_order(self, words: Sequence[str]) -> bool:
        """Whether those of ``words`` that the line has are in its order. Shapes of matrices are alike, and so are
        types where there are several, whose order has a meaning of its own."""
        several = sum(word in TYPES for word in words) > 1
        ranks: list[int] = []
        for word in words:
            name = _alike(word, several)
            places = [rank for other, rank in self.places.items() if _alike(other, several) == name]
            ranks += [min(places)] if places else []
        return ranks == sorted(ranks)


def _alike(word: str, several: bool) -> str:
    """``word``, or the same for all words that count as alike in the order."""
    return "shape" if _SHAPE.fullmatch(word) else "type" if several and word in TYPES else word


@cache
def syntax_lines() -> tuple[Line, ...]:
    """The lines of the file. Raises ``ValueError`` for a line that is not understood."""
    names: dict[str, str] = {}
    target = Target()
    out: list[Line] = []
    for raw in FILE.read_text(encoding="utf-8").splitlines():
        text = raw.strip()
        if named := re.fullmatch(r"([A-Z]+) = (\S+)", text):
            names[named[1]] = named[2]
        elif chosen := re.fullmatch(r"target (\d+)\.(\d+) (\w+)", text):
            target = Target((int(chosen[1]), int(chosen[2])), chosen[3])
        elif text and not text.startswith("#"):
            out += _lines(text, names, target)
    return tuple(out)


def _lines(text: str, names: Mapping[str, str], target: Target) -> Iterator[Line]:
    """The line, or several where it begins with a choice of opcodes."""
    name, _, operands = text.partition(" ")
    pieces = tuple(_pieces(name, names))
    for first in pieces[0]:
        qualifiers = ((first,), *pieces[1:])
        words = [word for piece in qualifiers for option in piece for word in option.split(".") if word]
        places = {word: rank for rank, word in reversed(list(enumerate(words)))}
        yield Line(first.split(".")[0], qualifiers, tuple(_pieces(operands, names)), target, places)


def _pieces(text: str, names: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """The parts of a line with their alternatives; ``%(`` and ``%)`` stay until the operands are made."""
    end = 0
    for found in _PIECE.finditer(text):
        if found.start() != end:
            raise ValueError(f"not understood: {text}")
        end = found.end()
        optional, choice, plain = found.groups()
        if plain is not None:
            yield (plain,)
            continue
        inner = optional if optional is not None else choice
        inner = re.sub(r"\b[A-Z]+\b", lambda m: names.get(m[0], m[0]), inner)
        yield ("",) * (optional is not None) + tuple([inner] if inner.startswith("|") else inner.split("|"))
    if end != len(text):
        raise ValueError(f"not understood: {text}")


def instructions_of(line: Line, limit: int, rng: random.Random) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """What ``line`` allows, as the words and the operands of instructions: everything, or ``limit`` random ones if
    that is more."""
    pieces = (*line.qualifiers, *line.operands)
    several: Iterable[Sequence[str]] = itertools.product(*pieces)
    if math.prod(map(len, pieces)) > limit:
        several = ([rng.choice(piece) for piece in pieces] for _ in range(limit))
    count = len(line.qualifiers)
    for parts in several:
        words = tuple("".join(parts[:count]).split("."))
        yield words, operands_for(words, "".join(parts[count:]), rng)


@cache
def _lines_by_opcode() -> Mapping[str, tuple[Line, ...]]:
    out: dict[str, list[Line]] = {}
    for line in syntax_lines():
        out.setdefault(line.opcode, []).append(line)
    return {opcode: tuple(lines) for opcode, lines in out.items()}


def closest_lines(words: Sequence[str]) -> list[Line]:
    """The syntax lines with this opcode that these words are least far from. Raises ``LookupError`` for an opcode
    without a syntax line."""
    lines = _lines_by_opcode().get(words[0])
    if lines is None:
        raise LookupError(f"no syntax line for `{words[0]}`: add it to {FILE.name}")
    distances = [line.distance(words) for line in lines]
    return [line for line, distance in zip(lines, distances, strict=True) if distance == min(distances)]


# -- operands ------------------------------------------------------------------------------------------------------


def bits_of(typ: str) -> int:
    """The width of a type of PTX."""
    return _BITS.get(typ) or int(typ.lstrip("busf"))


def register(typ: str, index: int) -> str:
    """The register number ``index`` of the width of ``typ``."""
    return f"{_LETTERS[bits_of(typ)]}{index}"


def operands_for(words: Sequence[str], pattern: str, rng: random.Random) -> tuple[str, ...]:
    """The operands that ``pattern`` stands for, with these qualifiers."""
    text = _TOKEN.sub(lambda found: _operand(found[0], words, rng), pattern)
    text = text.replace("%(", "{").replace("%)", "}")
    return split_operands(text)


def split_operands(text: str) -> tuple[str, ...]:
    """The operands in ``text``: parts between commas that are not in brackets or braces."""
    out, depth = [""], 0
    for char in text:
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            out.append("")
        else:
            out[-1] += char
    return tuple(part.strip() for part in out) if text.strip() else ()


def _operand(token: str, words: Sequence[str], rng: random.Random) -> str:
    types = [word for word in words[1:] if word in TYPES] or ["b32"]
    typ = types[0]
    match token:
        case "[$]":
            return _address(words, rng)
        case "$hint":
            return ", d9" if "L2::cache_hint" in words else ""
        case "$mask":
            return ", h5" if "multicast::cluster" in words else ""
        case "$coords" | "$offs":
            count = next((int(word[0]) for word in words if re.fullmatch("[1-5]d", word)), 1)
            if token == "$coords":
                return _vector(f"r{i}" for i in range(count))
            return ", " + _vector(f"h{i}" for i in range(max(1, count - 2)))
        case "$acc" | "$frag":
            return _vector(f"r{i}" for i in range(10, 10 + _fragment(words)))
        case "$tile":
            return _tile(words[2] if len(words) > 2 else "", words, next((w for w in words if w in _ELEMENTS), ""))
        case "$tiles":
            found = [word for word in words if word in _ELEMENTS]
            d, a, b, c = (found[0], "f16", "f16", found[1]) if len(found) == 2 else (*found, "", "", "", "")[:4]
            return ", ".join(_tile(m, words, t) for m, t in zip("dabc", (d, a, b, c), strict=True))
        case "$frags":
            return _fragments(words)
        case "$wide" | "$wided":
            wide = f"b{min(64, max(16, 2 * bits_of(typ)))}" if "wide" in words else typ
            return register(wide, 4 if token == "$wide" else 1)
        case "$s":
            return register(types[-1], 2)
        case _:
            index = "dabce".index(token[1:]) + 1
            count = next((_VECTORS[word] for word in words if word in _VECTORS), 1)
            if count == 1:
                return register(typ, index)
            return _vector(register(typ, (index + i) % 10) for i in range(count))


def _tile(matrix: str, words: Sequence[str], element: str) -> str:
    """The registers of a thread for a matrix of wmma (PTX ISA 9.7.15.3.1)."""
    shape = next((re.findall(r"\d+", word) for word in words if _SHAPE.fullmatch(word)), ["8", "8", "4"])
    m, n, k = map(int, shape)
    size = {"a": m * k, "b": k * n}.get(matrix, m * n)
    if element == "f64":
        return _vector(f"d{i}" for i in range(max(1, size // 32)))
    count = 8 if element == "f16" and matrix in ("a", "b") else size * _ELEMENTS.get(element, 32) // 32 // 32
    return _vector(f"r{i}" for i in range(10, 10 + max(1, count)))


def _fragments(words: Sequence[str]) -> str:
    """The registers of a thread for the matrices of mma (PTX ISA 9.7.15.4)."""
    shape = next((re.findall(r"\d+", word) for word in words if _SHAPE.fullmatch(word)), ["8", "8", "4"])
    m, n, k = map(int, shape)
    d, a, b, c = ([word for word in words if word in _ELEMENTS] + ["f32"] * 4)[:4]
    products = 4 if (m, a) == (8, "f16") else 1
    out = []
    for first, element, size in ((10, d, m * n), (30, a, m * k), (50, b, k * n), (70, c, m * n)):
        letter, bits = ("d", 64) if element == "f64" else ("r", 32)
        count = max(1, products * size * _ELEMENTS[element] // 32 // bits)
        out.append(_vector(f"{letter}{i % 10 if letter == 'd' else i}" for i in range(first, first + count)))
    return ", ".join(out)


def _vector(registers: Iterable[str]) -> str:
    return "{" + ", ".join(registers) + "}"


def _fragment(words: Sequence[str]) -> int:
    """The number of 32-bit registers of a thread for an accumulator of wgmma, or for ldmatrix and stmatrix."""
    columns = next((int(found[1]) for word in words if (found := re.match(r"m64n(\d+)k", word))), 0)
    if columns:
        return columns // (4 if next((w for w in words if w in ("f16", "f32", "s32")), "") == "f16" else 2)
    return next((int(word[1]) for word in words if word in ("x1", "x2", "x4")), 1)


def _address(words: Sequence[str], rng: random.Random) -> str:
    """An address in the state space of the qualifiers: a variable of that space or a register, of 64 bits or, in shared
    memory, of 32, maybe with an offset."""
    space = next((word for word in words if word in _SPACE_VARIABLES), "")
    variable = _SPACE_VARIABLES.get(space)
    if words[0] == "st" and variable == "xe":
        variable = "xf"  # parameters of an entry function are only read
    base = variable if variable and (variable in ("xe", "xf") or rng.random() < 0.5) else "d8"
    if base == "d8" and variable == "xs" and rng.random() < 0.5:
        base = "r8"  # an address of 32 bits
    return f"[{base}{rng.choice(('', '', '+64', '+128'))}]"


# -- the module around the instructions ----------------------------------------------------------------------------


def head(target: Target) -> str:
    """What comes before the instructions in a module for ``target``."""
    wide = ".reg .b128 w<10>;" if target.ptx >= (8, 3) else ""
    unified = ".attribute(.unified(19,95)) " if target.ptx >= (8, 0) and target.sm >= 90 else ""
    return f"""\
.version {target.ptx[0]}.{target.ptx[1]}
.target {target.name}
.address_size 64
.global .align 128 .b8 xg[256];
.global {unified}.align 128 .b8 xu[256];
.const .align 128 .b8 xc[256];
.shared .align 128 .b8 xs[256];
.visible .entry forms(.param .align 128 .b8 xe[256]) {{
.local .align 128 .b8 xl[256];
.param .align 128 .b8 xf[256];
.reg .b16 h<10>; .reg .b32 r<140>; .reg .b64 d<10>; .reg .pred p<10>; {wide}
L0:
"""


TAIL = "ret;\n}\n"
