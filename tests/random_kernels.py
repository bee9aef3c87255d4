"""Random PTX kernels of one thread as modules with a launch, and an interpreter of their own.

``kernel(number)`` gives the same small kernel each time: counted loops with exits in the middle, nested branches,
branches to anywhere (irreducible loops among them), guarded instructions, calls, ``brx.idx``, ``exit``, and loads and
stores whose addresses are computed. Some registers start with what the launch says and some with what memory holds, so
that a checker knows some branches before the kernel runs and others not. ``final(kernel)`` says where it ends: one
thread alone has one final state. Nothing of ptxmm is used here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

REGISTERS = tuple(f"r{number}" for number in range(6))
PREDICATES = ("p0", "p1", "p2")
WORDS = 4
"""Elements of ``inp``, which is only read, and of ``out``."""
OUT, UNWRITTEN = 9, 77
_MASK = 0xFFFFFFFF
_STEPS = 400
_SCRATCH = "q"

Operand = str | int
"""A register or a number."""

_ALU: Mapping[str, Callable[[int, int], int]] = {
    "add.u32": lambda a, b: a + b, "sub.u32": lambda a, b: a - b, "mul.lo.u32": lambda a, b: a * b,
    "and.b32": lambda a, b: a & b, "or.b32": lambda a, b: a | b, "xor.b32": lambda a, b: a ^ b,
    "min.u32": min, "max.u32": max,
}  # fmt: skip
_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
}  # fmt: skip
_COMBINE: Mapping[str, Callable[[bool, bool], bool]] = {
    "and": lambda a, b: a and b, "or": lambda a, b: a or b, "xor": lambda a, b: a != b,
}  # fmt: skip


class Guard(Struct, frozen=True):
    """``@predicate`` or ``@!predicate``."""

    predicate: str
    negated: bool

    def __str__(self) -> str:
        return f"@{'!' if self.negated else ''}%{self.predicate} "


class Compute(Struct, frozen=True):
    """A row of ``_ALU``."""

    op: str
    target: str
    first: Operand
    second: Operand
    guard: Guard | None = None


class Move(Struct, frozen=True):
    target: str
    source: Operand
    guard: Guard | None = None


class Compare(Struct, frozen=True):
    """``setp``; ``combine``: a row of ``_COMBINE`` and the predicate that it is combined with."""

    op: str
    target: str
    first: str
    second: Operand
    guard: Guard | None = None
    combine: tuple[str, str] | None = None


class Choose(Struct, frozen=True):
    target: str
    first: Operand
    second: Operand
    predicate: str
    guard: Guard | None = None


class Read(Struct, frozen=True):
    """A load from the element ``index & 3`` of ``place`` (``inp`` or ``out``)."""

    target: str
    place: str
    index: str
    guard: Guard | None = None


class Write(Struct, frozen=True):
    """A store to the element ``index & 3`` of ``out``."""

    index: str
    value: Operand
    guard: Guard | None = None


class Invoke(Struct, frozen=True):
    """A call of the function ``mix`` (see ``_FUNCTION`` and ``_mix``)."""

    target: str
    first: str
    second: str
    guard: Guard | None = None


class Leave(Struct, frozen=True):
    guard: Guard | None


class Jump(Struct, frozen=True):
    label: str
    guard: Guard | None = None


class Indexed(Struct, frozen=True):
    """``brx.idx`` with the lowest bit of a register."""

    index: str
    labels: tuple[str, str]


class Label(Struct, frozen=True):
    name: str


Item = Compute | Move | Compare | Choose | Read | Write | Invoke | Leave | Jump | Indexed | Label


class Kernel(Struct, frozen=True):
    """``initial``: for each register the number that it starts with, or the element of ``inp`` as ``(element,)``."""

    number: int
    initial: tuple[int | tuple[int], ...]
    memory: tuple[int, ...]
    body: tuple[Item, ...]


class Final(Struct, frozen=True):
    """Where a kernel ends. ``stored``: the registers as it stores them last, None if it leaves before. ``loads``: how
    many loads it executes."""

    out: tuple[int, ...]
    stored: tuple[int, ...] | None
    registers: Mapping[str, int]
    loads: int


# -- making them ---------------------------------------------------------------------------------------------------


class _Maker(Struct):
    """The kernel in the making."""

    rng: random.Random
    body: list[Item] = field(default_factory=list)
    names: int = 0
    counters: list[str] = field(default_factory=list)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def register(self) -> str:
        return self.rng.choice(REGISTERS)

    def operand(self) -> Operand:
        return self.register() if self.chance(0.6) else self.rng.choice((0, 1, 1, 2, 3, 4, 7))

    def guard(self, share: float) -> Guard | None:
        return Guard(self.rng.choice(PREDICATES), self.chance(0.5)) if self.chance(share) else None

    def label(self) -> str:
        self.names += 1
        return f"L{self.names}"

    def simple(self) -> Item:
        """An instruction that is no branch."""
        rng, kind = self.rng, self.rng.random()
        if kind < 0.32:
            return Compute(rng.choice(list(_ALU)), self.register(), self.operand(), self.operand(), self.guard(0.3))
        if kind < 0.47:
            return Move(self.register(), self.operand(), self.guard(0.3))
        if kind < 0.76:
            combine = (rng.choice(list(_COMBINE)), rng.choice(PREDICATES)) if self.chance(0.35) else None
            if self.chance(0.2):  # what a branch tells of a register
                second, op = rng.randrange(4), rng.choice(("eq", "ne"))
                return Compare(op, rng.choice(PREDICATES), self.register(), second, self.guard(0.1))
            op = rng.choice(list(_COMPARE))
            return Compare(op, rng.choice(PREDICATES), self.register(), self.operand(), self.guard(0.2), combine)
        if kind < 0.82:
            return Choose(
                self.register(), self.operand(), self.operand(), rng.choice(PREDICATES), self.guard(0.2)
            )  # fmt: skip
        if kind < 0.9:
            place = "out" if self.chance(0.25) else "inp"
            return Read(self.register(), place, self.register(), self.guard(0.25))
        if kind < 0.95:
            return Write(self.register(), self.operand(), self.guard(0.3))
        if kind < 0.975:
            return Invoke(self.register(), self.register(), self.register(), self.guard(0.3))
        return Leave(self.guard(1))

    def block(self, depth: int) -> None:
        """A few instructions, branches and loops, nested at most ``depth`` deep."""
        for _ in range(self.rng.randrange(1, 4)):
            kind = self.rng.random()
            if depth and kind < 0.25:
                self.branch(depth)
            elif depth and kind < 0.55:
                self.loop(depth)
            else:
                self.body.append(self.simple())

    def branch(self, depth: int) -> None:
        """If, or if and else."""
        other, end = self.label(), self.label()
        self.body.append(Jump(other, self.guard(1)))
        self.block(depth - 1)
        if self.chance(0.4):
            self.body += [Jump(end), Label(other)]
            self.block(depth - 1)
            self.body.append(Label(end))
        else:
            self.body.append(Label(other))

    def loop(self, depth: int) -> None:
        """A counted loop that may be left in the middle, in one of its rounds or in any."""
        head, end, counter = self.label(), self.label(), f"c{len(self.counters)}"
        self.counters.append(counter)
        trips = self.rng.choice((1, 2, 3, 3, 5, 10, 12, 17) if depth > 1 else (1, 2, 3))
        self.body += [Move(counter, 0), Label(head)]
        if self.chance(0.5):
            self.body.append(Move(self.register(), counter))
        self.block(depth - 1)
        left = self.chance(0.5)
        if left:
            if self.chance(0.5):
                on = self.label()
                self.body += [
                    Compare("ne", _SCRATCH, counter, self.rng.randrange(trips)),
                    Jump(on, Guard(_SCRATCH, False)),
                    Jump(end, self.guard(1)),
                    Label(on),
                ]
            else:
                self.body.append(Jump(end, self.guard(1)))
            if self.chance(0.4):
                self.block(depth - 1)
        self.body += [
            Compute("add.u32", counter, counter, 1),
            Compare("lt", _SCRATCH, counter, trips),
            Jump(head, Guard(_SCRATCH, False)),
            Label(end),
        ]

    def wild(self) -> None:
        """Branches to anywhere."""
        size = self.rng.randrange(6, 22)
        labels = [self.label() for _ in range(self.rng.randrange(2, 6))]
        places = [self.rng.randrange(size) for _ in labels]
        for number in range(size):
            self.body += [Label(label) for label, place in zip(labels, places, strict=True) if place == number]
            if self.chance(0.3):
                self.body.append(Jump(self.rng.choice(labels), self.guard(0.9)))
            elif self.chance(0.05):
                self.body.append(Indexed(self.register(), (self.rng.choice(labels), self.rng.choice(labels))))
            else:
                self.body.append(self.simple())


def kernel(number: int) -> Kernel:
    """The kernel with this number."""
    rng = random.Random(number)
    initial = tuple(
        (rng.randrange(3),) if rng.random() < 1 / 3 else rng.randrange(4) for _ in REGISTERS
    )  # fmt: skip
    memory = tuple(rng.randrange(4) for _ in range(WORDS))
    maker = _Maker(rng)
    if rng.random() < 0.55:
        maker.block(rng.choice((1, 2, 2, 3)))
    else:
        maker.wild()
    return Kernel(number, initial, memory, tuple(maker.body))


# -- what they mean ------------------------------------------------------------------------------------------------


def _mix(first: int, second: int) -> int:
    return first - second if first > second else 2 * second + 1


def final(kernel: Kernel) -> Final | None:
    """Where the kernel ends; None if it takes more than some hundred instructions."""
    values: dict[str, int] = {}
    for name, given in zip(REGISTERS, kernel.initial, strict=True):
        values[name] = given if isinstance(given, int) else kernel.memory[given[0]]
    flags = {"p0": values["r0"] == 1, "p1": False, "p2": False}
    memory = {"inp": list(kernel.memory), "out": [OUT] * WORDS}
    labels = {item.name: place for place, item in enumerate(kernel.body) if isinstance(item, Label)}
    loads = place = steps = 0
    ended = True

    def value(operand: Operand) -> int:
        return operand if isinstance(operand, int) else values[operand]

    while place < len(kernel.body):
        steps += 1
        if steps > _STEPS:
            return None
        item = kernel.body[place]
        place += 1
        guard = None if isinstance(item, Label | Indexed) else item.guard
        if guard is not None and flags[guard.predicate] == guard.negated:
            continue
        match item:
            case Compute(op, target, first, second):
                values[target] = _ALU[op](value(first), value(second)) & _MASK
            case Move(target, source):
                values[target] = value(source)
            case Compare(op, target, first, second, _, combine):
                found = _COMPARE[op](value(first), value(second))
                flags[target] = found if combine is None else _COMBINE[combine[0]](found, flags[combine[1]])
            case Choose(target, first, second, predicate):
                values[target] = value(first if flags[predicate] else second)
            case Read(target, where, index):
                values[target] = memory[where][values[index] & 3]
                loads += 1
            case Write(index, source):
                memory["out"][values[index] & 3] = value(source)
            case Invoke(target, first, second):
                values[target] = _mix(value(first), value(second)) & _MASK
            case Leave():
                ended = False
                break
            case Jump(label):
                place = labels[label]
            case Indexed(index, targets):
                place = labels[targets[values[index] & 1]]
    registers = {name: values[name] for name in REGISTERS}
    return Final(tuple(memory["out"]), tuple(registers.values()) if ended else None, registers, loads)


# -- their text ----------------------------------------------------------------------------------------------------

_FUNCTION = """.func (.param .b32 result) mix(.param .b32 a, .param .b32 b)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  ld.param.b32 %r1, [a];
  ld.param.b32 %r2, [b];
  setp.gt.u32 %p1, %r1, %r2;
  @%p1 bra MORE;
  mad.lo.u32 %r3, %r2, 2, 1;
  st.param.b32 [result], %r3;
  ret;
MORE:
  sub.u32 %r3, %r1, %r2;
  st.param.b32 [result], %r3;
  ret;
}
"""


def _shown(operand: Operand) -> str:
    return str(operand) if isinstance(operand, int) else f"%{operand}"


def _text(item: Item, number: int) -> str:
    """One item; ``number`` tells it from the others."""
    guard = "" if isinstance(item, Label | Indexed) or item.guard is None else str(item.guard)
    match item:
        case Label(name):
            return f"{name}:"
        case Compute(op, target, first, second):
            return f"{guard}{op} %{target}, {_shown(first)}, {_shown(second)};"
        case Move(target, source):
            return f"{guard}mov.b32 %{target}, {_shown(source)};"
        case Compare(op, target, first, second, _, combine):
            word, last = ("", "") if combine is None else (f".{combine[0]}", f", %{combine[1]}")
            return f"{guard}setp.{op}{word}.u32 %{target}, {_shown(first)}, {_shown(second)}{last};"
        case Choose(target, first, second, predicate):
            return f"{guard}selp.b32 %{target}, {_shown(first)}, {_shown(second)}, %{predicate};"
        case Read(target, where, index):
            return (
                f"and.b32 %t0, %{index}, 3; mul.wide.u32 %rd4, %t0, 4; add.s64 %rd5, %{where}, %rd4; "
                f"{guard}ld.global.u32 %{target}, [%rd5];"
            )
        case Write(index, source):
            return (
                f"shl.b32 %t1, %{index}, 2; and.b32 %t1, %t1, 12; cvt.u64.u32 %rd6, %t1; add.s64 %rd7, %rd6, %out; "
                f"{guard}st.global.u32 [%rd7], {_shown(source)};"
            )
        case Invoke(target, first, second):
            return (
                f"{{ .param .b32 a; .param .b32 b; .param .b32 c; st.param.b32 [a], %{first}; st.param.b32 [b], "
                f"%{second}; {guard}call.uni (c), mix, (a, b); {guard}ld.param.b32 %{target}, [c]; }}"
            )
        case Leave():
            return f"{guard}exit;"
        case Jump(label):
            return f"{guard}bra {label};"
        case Indexed(index, labels):
            return (
                f"T{number}: .branchtargets {', '.join(labels)}; and.b32 %t2, %{index}, 1; brx.idx %t2, T{number};"
            )  # fmt: skip


def text(kernel: Kernel, condition: str, block: int = 1) -> str:
    """The module with its launch in comments; ``condition``: of the launch."""
    counters = len({item.target for item in kernel.body if isinstance(item, Move) and item.target.startswith("c")})
    rows = [
        '// ptxmm: args = ["inp", "out", "end"]',
        f"// ptxmm: block = {block}",
        "// ptxmm: [objects]",
        f'// ptxmm: inp = {{ type = "u32", count = {WORDS}, init = {list(kernel.memory)} }}',
        f'// ptxmm: out = {{ type = "u32", count = {WORDS}, init = {[OUT] * WORDS} }}',
        f'// ptxmm: end = {{ type = "u32", count = {len(REGISTERS)}, init = {[UNWRITTEN] * len(REGISTERS)} }}',
        "// ptxmm: [check]",
        f"// ptxmm: condition = '{condition}'",
        ".version 8.5\n.target sm_90\n.address_size 64",
        _FUNCTION + ".visible .entry k(.param .u64 a0, .param .u64 a1, .param .u64 a2)\n{",
        f"  .reg .pred %p<3>; .reg .pred %q; .reg .b32 %r<6>; .reg .b32 %c<{counters + 1}>; .reg .b32 %t<3>;",
        "  .reg .b64 %inp; .reg .b64 %out; .reg .b64 %end; .reg .b64 %rd<8>;",
        "  ld.param.u64 %inp, [a0]; ld.param.u64 %out, [a1]; ld.param.u64 %end, [a2];",
    ]
    for name, given in zip(REGISTERS, kernel.initial, strict=True):
        load = f"ld.relaxed.gpu.global.u32 %{name}, [%inp+{4 * given[0]}]" if isinstance(given, tuple) else ""
        rows.append(f"  {load or f'mov.u32 %{name}, {given}'};")
    rows.append("  setp.eq.u32 %p0, %r0, 1; setp.ne.u32 %p1, 0, 0; setp.ne.u32 %p2, 0, 0;")
    rows += ["  " + _text(item, number) for number, item in enumerate(kernel.body)]
    rows += [f"  st.global.u32 [%end+{4 * number}], %{name};" for number, name in enumerate(REGISTERS)]
    return "\n".join([*rows, "  ret;", "}", ""])


def condition(end: Final, observed: Sequence[str]) -> str:
    """That the kernel ends so; ``observed``: the registers that it names too."""
    terms = [f"out[{number}] == {value}" for number, value in enumerate(end.out)]
    stored = end.stored or (UNWRITTEN,) * len(REGISTERS)
    terms += [f"end[{number}] == {value}" for number, value in enumerate(stored)]
    terms += [f"P0:%{name} == {end.registers[name]}" for name in observed]
    return "forall (" + " /\\ ".join(terms) + ")"


def observed(kernel: Kernel) -> tuple[str, ...]:
    """Some registers, for the condition."""
    rng = random.Random(7 * kernel.number + 1)
    return rng.choice(((), ("r0",), ("r1", "r4"), REGISTERS))
