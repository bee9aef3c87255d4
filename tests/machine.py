"""Results of single instructions on an NVIDIA GPU: ``computation_h200.txt``, one line for each operation and type.

``python -m tests.machine`` writes it anew, with a GPU and its driver: operands near limits are drawn, the driver
compiles the instructions as ``ptxmm`` prints them, and what they give is noted. Left out is what the ISA leaves open
and where the machine differs from it (``left_open``); any other difference ends it with a message.
"""

from __future__ import annotations

import ctypes
import itertools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from ptxmm.errors import PtxmmError, Span
from ptxmm.events.explicit.values import arithmetic
from ptxmm.ptx.isa import resolve
from ptxmm.ptx.ops import Alu, AluPair, Convert, Imm, Op, Operand, Reg, SetPredicate, Source, Type
from ptxmm.ptx.ops.signatures import CARRY, result_type, source_types
from ptxmm.ptx.parser import parse_statements
from ptxmm.ptx.printer import instruction_text
from ptxmm.ptx.qualifiers import parse_type
from ptxmm.ptx.syntax import Instruction

FILE = Path(__file__).with_name("computation_h200.txt")
HEAD = """\
# What single instructions give on an NVIDIA H200 (sm_90): an operation and its type, then operands = result, all in
# hexadecimal.
# Written by `python -m tests.machine`, which says what is left out.
"""
ROWS = 10
INTEGERS = "u16 u32 u64 s16 s32 s64"
WIDE = "u32 s32 u64 s64"
COMPARISONS = "eq ne lt le gt ge"
REAL_COMPARISONS = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"
ROUNDING = ("rn", "rz", "rm", "rp")


def operations() -> Iterator[tuple[str, Type]]:
    """Every operation in every type that it has."""
    rounding = ("add", "sub", "mul", "fma", "div", "rcp", "sqrt")
    properties = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    table: list[tuple[str, str]] = [
        ("add sub mul.lo mul.hi mad.lo mad.hi sad div rem min max shr", INTEGERS),
        ("mul.wide", "u16 s16 u32 s32"),
        ("add.sat sub.sat mad.hi.sat mad24.hi.sat min.relu max.relu", "s32"),
        ("mul24.lo mul24.hi mad24.lo mad24.hi szext.clamp szext.wrap", "u32 s32"),
        ("dp4a.u32 dp4a.s32 dp2a.lo.u32 dp2a.lo.s32 dp2a.hi.u32 dp2a.hi.s32", "u32 s32"),
        ("neg abs", "s16 s32 s64"),
        ("popc clz brev bfi", "b32 b64"),
        ("bfind bfind.shiftamt bfe", WIDE),
        ("fns bmsk.clamp bmsk.wrap lop3 lop3.and lop3.or shf.l.clamp shf.r.clamp shf.l.wrap shf.r.wrap", "b32"),
        ("prmt prmt.f4e prmt.b4e prmt.rc8 prmt.ecl prmt.ecr prmt.rc16", "b32"),
        ("add.u16x2 add.s16x2 min.u16x2 min.s16x2 max.u16x2 max.s16x2 min.relu.s16x2 max.relu.s16x2", "b32"),
        (" ".join(f"cvt.pack.{t}" for t in ("u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2")), "b32"),
        ("add.cc sub.cc addc subc addc.cc subc.cc", WIDE),
        ("mad.lo.cc mad.hi.cc madc.lo madc.hi madc.lo.cc madc.hi.cc", WIDE),
        ("and or xor not cnot shl", "b16 b32 b64"),
        ("shr", "b16 b32 b64"),
        ("and or xor not", "pred"),
        *((f"{c} set.{c}.u32 set.{c}.and.s32 set.{c}.or_not.f32 set.{c}.xor.u32", f"{INTEGERS} f32 f64")
          for c in COMPARISONS.split()),
        *((f"{c} set.{c}.u32 set.{c}.and.f32", "f32 f64") for c in REAL_COMPARISONS.split()),
        *((f"{c}.ftz set.{c}.ftz.u32", "f32") for c in REAL_COMPARISONS.split()),
        ("slct.s32 slct.f32 slct.ftz.f32", "u32 b64 f32 f64"),
        *((" ".join(f"{op}.{r}" for op in rounding), "f32 f64") for r in ROUNDING),
        *((" ".join(f"{op}.{r}.ftz" for op in rounding), "f32") for r in ROUNDING),
        *((f"add.{r}.sat mul.{r}.ftz.sat fma.{r}.sat", "f32") for r in ROUNDING),
        ("neg abs min max copysign", "f32 f64"),
        (" ".join(f"testp.{p}" for p in properties), "f32 f64"),
        ("neg.ftz abs.ftz min.ftz max.NaN min.ftz.xorsign.abs max.xorsign.abs min.NaN.xorsign.abs", "f32"),
    ]  # fmt: skip
    seen: dict[tuple[str, str], None] = {}
    for names, types in table:
        seen |= dict.fromkeys(itertools.product(names.split(), types.split()))
    for op, name in seen:
        yield op, parse_type(name)


def sources_of(op: str, type_: Type) -> tuple[Type, ...]:
    return (type_, type_) if arithmetic.is_comparison(op) else source_types(op, type_)


def drawn(rng: random.Random, op: str, type_: Type) -> list[int]:
    """Operands near limits."""
    found = [value_of(rng, t) for t in sources_of(op, type_)]
    if op.startswith("lop3"):
        found[3] &= 0xFF
    if op == "fns":
        found[1] &= 31
    if op in ("div", "rem") and found[1] == 0:
        found[1] = 1
    return found


def value_of(rng: random.Random, type_: Type) -> int:
    bits = type_.bits
    if type_.kind in ("f", "bf") and rng.random() < 0.7:
        digits = {("f", 16): 10, ("bf", 16): 7, ("f", 32): 23, ("f", 64): 52}[type_.kind, bits]
        infinity = (1 << bits - 1) - (1 << digits)
        one = infinity >> 1 & infinity
        near = rng.choice((0, 1, 1 << digits, one, one + (rng.randint(-digits, digits) << digits), infinity))
        return max(0, near + rng.randint(-2, 2)) | rng.getrandbits(1) << bits - 1
    if rng.random() < 0.3:
        return rng.randint(0, 70) & ((1 << bits) - 1)
    if rng.random() < 0.6:
        return ((1 << rng.randint(0, bits)) - rng.randint(0, 2)) & ((1 << bits) - 1)
    return rng.getrandbits(bits)


Form = tuple[str, str]
"""An operation and its type, or the types to and from which is converted."""


def conversions() -> Iterator[Form]:
    """Every conversion that there is, but those of bf16 and 8 bits, which the assembler does not know."""
    names = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "bf16", "f32", "f64")
    roundings = (None, *ROUNDING, *(f"{r}i" for r in ROUNDING))
    for to, frm in itertools.product(names, repeat=2):
        if "bf16" in (to, frm) and {to, frm} & {"u8", "s8"}:
            continue
        for modes in itertools.product(roundings, (None, "ftz"), (None, "sat")):
            form = ".".join(("cvt", *filter(None, modes))), f"{to}.{frm}"
            try:
                (item,) = parse_statements(f"{'.'.join(form)} d, a;")
                assert isinstance(item, Instruction)
                resolve(item, dialect=False, variables=(), labels={})
            except PtxmmError:
                continue
            yield form


def forms() -> list[Form]:
    """All that the file has, in its order."""
    wide = (("mad.wide", name) for name in ("u16", "s16", "u32", "s32"))
    return [*((op, type_.name) for op, type_ in operations()), *wide, *conversions()]


def types_of(form: Form) -> tuple[Type, tuple[Type, ...]]:
    """Those of the result and of the operands."""
    op, types = form
    if is_conversion(form):
        to, frm = map(parse_type, types.split("."))
        return to, (frm,)
    type_ = parse_type(types)
    pred = Type("pred", 1)
    return pred if arithmetic.is_comparison(op) else result_type(op, type_), sources_of(op, type_)


def is_conversion(form: Form) -> bool:
    return form[0].partition(".")[0] == "cvt" and ".pack" not in form[0]


def modes_of(op: str) -> tuple[bool, str | None, bool]:
    """Of a conversion: whether it saturates, its rounding, whether it flushes."""
    words = op.split(".")[1:]
    return "sat" in words, next((w for w in words if w not in ("ftz", "sat")), None), "ftz" in words


def rows_of(form: Form) -> list[list[int]]:
    """Its operands: the same in every run."""
    rng = random.Random(".".join(form))
    if is_conversion(form):
        (frm,) = types_of(form)[1]
        return [[value_of(rng, frm)] for _ in range(ROWS)]
    return [drawn(rng, form[0], parse_type(form[1])) for _ in range(ROWS)]


def expected(form: Form, operands: Sequence[int]) -> int:
    """What ptxmm computes."""
    if is_conversion(form):
        to, (frm,) = types_of(form)
        return arithmetic.convert(operands[0], to, frm, *modes_of(form[0]))
    return arithmetic.compute(form[0], parse_type(form[1]), *operands)


# -- the file ----------------------------------------------------------------------------------------------------------


def read() -> dict[Form, list[tuple[list[int], int]]]:
    """The operands and the result of each row."""
    found: dict[Form, list[tuple[list[int], int]]] = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            form, _, rows = line.partition(": ")
            op, types = form.split()
            pairs = [row.partition(" = ") for row in rows.split(", ")]
            found[op, types] = [([int(v, 16) for v in given.split()], int(result, 16)) for given, _, result in pairs]
    return found


def write(found: dict[Form, list[tuple[list[int], int]]]) -> None:
    """One line for each operation and type."""
    lines = []
    for (op, types), rows in found.items():
        shown = ", ".join(f"{' '.join(f'{v:x}' for v in given)} = {result:x}" for given, result in rows)
        lines.append(f"{op} {types}: {shown}\n")
    FILE.write_text(HEAD + "".join(lines), encoding="utf-8")


# -- the machine -------------------------------------------------------------------------------------------------------

HERE = Source(Span(1, 1, 1), "")


def instructions(form: Form, operands: Sequence[int]) -> list[str]:
    """The PTX that leaves the result for the registers a, b, c, e and f in d."""
    op, types = form
    names: list[Operand] = [Reg(name) for name in "abcef"[: len(operands)]]
    d = Reg("d")
    if is_conversion(form):
        to, (frm,) = types_of(form)
        saturate, rounding, flush = modes_of(op)
        return [_text(Convert(d, names[0], to, frm, saturate, HERE, None, rounding, flush))]
    type_ = parse_type(types)
    if arithmetic.is_comparison(op):
        return [_text(SetPredicate(op, type_, d, None, names[0], names[1], HERE))]
    if op.startswith("lop3"):
        names[3] = Imm(operands[3])
        if op != "lop3":
            return [_text(AluPair("lop3", op, type_, None, d, tuple(names), HERE))]
    lines = []
    borrow = op.startswith("sub")
    if op.partition(".")[0] in ("addc", "subc", "madc"):
        carry = "abc"[len(names) - 1] if len(names) < 4 else "e"
        lines = [f"selp.u32 y, 1, 0, {carry};", "sub.cc.u32 t, 0, y;" if borrow else "add.cc.u32 t, y, 0xffffffff;"]
        names[-1] = Reg(CARRY)
    if op.endswith(".cc"):
        lines.append(_text(AluPair(op.removesuffix(".cc"), op, type_, Reg("x"), Reg(CARRY), tuple(names), HERE)))
        return [*lines, "subc.u32 y, 0, 0; and.b32 y, y, 1;" if borrow else "addc.u32 y, 0, 0;", "setp.ne.u32 d, y, 0;"]
    return [*lines, _text(Alu(op, type_, d, tuple(names), HERE))]


def _text(op: Op) -> str:
    return instruction_text(op, True, str) + ";"


def _register(type_: Type) -> str:
    return ".pred" if type_.kind == "pred" else f".b{max(16, type_.bits)}"


def kernel(name: str, rows: Sequence[tuple[Form, list[int]]]) -> str:
    """A kernel that computes ``rows`` from the words at ``p``, eight for each: its operands, and last the result."""
    lines = [f".visible .entry {name}(.param .u64 memory) {{", ".reg .b64 p, w; ld.param.u64 p, [memory];"]
    for row, (form, operands) in enumerate(rows):
        result, sources = types_of(form)
        lines.append("{ .reg .b32 t, y; .reg .b64 z;")
        lines += [f".reg {_register(t)} {n};" for n, t in zip(("d", *"abcef"), (result, *sources), strict=False)]
        lines.append(f".reg .b{sources[0].bits} x;" if form[0].endswith(".cc") else "")
        for at, (n, t) in enumerate(zip("abcef", sources, strict=False)):
            taken = {"pred": f"setp.ne.u64 {n}, w, 0;"}.get(t.kind, f"cvt.u{max(16, t.bits)}.u64 {n}, w;")
            lines.append(f"ld.global.u64 w, [p+{64 * row + 8 * at}]; {taken}")
        lines += instructions(form, operands)
        given = {"pred": "selp.u64 z, 1, 0, d;"}.get(result.kind, f"cvt.u64.u{max(16, result.bits)} z, d;")
        lines.append(f"{given} st.global.u64 [p+{64 * row + 56}], z; }}")
    return "\n".join([*lines, "ret; }", ""])


def ask(rows: Sequence[tuple[Form, list[int]]]) -> list[int]:
    """What the GPU gives for ``rows``. Raises ``OSError`` without a driver."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *arguments: object) -> None:
        code = getattr(cuda, name)(*arguments)
        if code:
            raise OSError(f"{name}: error {code} of the CUDA driver")

    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    found: list[int] = []
    for some in (rows[first : first + 400] for first in range(0, len(rows), 400)):
        text = f".version 8.5\n.target sm_90\n.address_size 64\n{kernel('k', some)}"
        call("cuModuleLoadData", ctypes.byref(module), text.encode() + b"\0")
        call("cuModuleGetFunction", ctypes.byref(function), module, b"k")
        words = (ctypes.c_uint64 * (8 * len(some)))()
        for row, (_, operands) in enumerate(some):
            for at, operand in enumerate(operands):
                words[8 * row + at] = operand
        memory = ctypes.c_uint64()
        size = ctypes.c_size_t(ctypes.sizeof(words))
        call("cuMemAlloc_v2", ctypes.byref(memory), size)
        call("cuMemcpyHtoD_v2", memory, words, size)
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
        call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, parameters, None)
        call("cuMemcpyDtoH_v2", words, memory, size)
        call("cuMemFree_v2", memory)
        call("cuModuleUnload", module)
        found += [words[8 * row + 7] & (1 << types_of(form)[0].bits) - 1 for row, (form, _) in enumerate(some)]
    return found


def left_open(form: Form, operands: Sequence[int]) -> bool:
    """Whether the ISA leaves the result open: a NaN of any payload, the field of bfe.b64 and bfi.b64 beyond 255, NaNs
    that are converted to integers of 64 bits or from .f64; or the machine differs: .ftz of cvt.f16.f32."""
    op, types = form
    result, sources = types_of(form)
    if op in ("bfe", "bfi") and types.endswith("64"):
        return any(v > 255 for v in operands[-2:])
    if is_conversion(form) and result.kind not in ("f", "bf"):
        nan = sources[0].kind in ("f", "bf") and is_nan(sources[0], operands[0])
        return nan and 64 in (result.bits, sources[0].bits)
    if types in ("f16.f32", "bf16.f32") and "ftz" in op:
        return True
    return result.kind in ("f", "bf") and is_nan(result, expected(form, operands))


def is_nan(type_: Type, value: int) -> bool:
    digits = {("f", 16): 10, ("bf", 16): 7, ("f", 32): 23, ("f", 64): 52}[type_.kind, type_.bits]
    return value & (1 << type_.bits - 1) - 1 > (1 << type_.bits - 1) - (1 << digits)


def main() -> None:
    rows = [(form, operands) for form in forms() for operands in rows_of(form)]
    found: dict[Form, list[tuple[list[int], int]]] = {}
    wrong = 0
    for (form, operands), result in zip(rows, ask(rows), strict=True):
        if result == expected(form, operands):
            if (operands, result) not in found.setdefault(form, []):
                found[form].append((operands, result))
        elif not left_open(form, operands):
            wrong += 1
            print(*form, *map(hex, operands), "gives", hex(result), "and not", hex(expected(form, operands)))
    if wrong:
        raise SystemExit(f"{wrong} results are others than those of ptxmm: nothing was written")
    write(found)


if __name__ == "__main__":
    main()
