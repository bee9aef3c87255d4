"""Whole PTX modules: as nvcc 13.0 and Triton print them (tests/modules), as people write them, and with errors."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxmm.errors import PtxmmError
from ptxmm.ptx import syntax
from ptxmm.ptx.module import parse_module
from ptxmm.ptx.module_syntax import BranchTargets, Call, Function, Module, Place, SymbolAddress
from ptxmm.ptx.ops import Type

MODULES = Path(__file__).resolve().parent / "modules"
FILES = sorted(MODULES.glob("**/*.ptx"))
HEAD = ".version 8.5\n.target sm_90\n.address_size 64\n"
SPECIAL = re.compile(
    r"(tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)\.[xyz]|clock(64)?|laneid|"
    r"lanemask_\w\w|smid|warpid|gridid|cluster_(n?)ctarank|is_explicit_cluster|dynamic_smem_size|envreg\d|globaltimer|reserved_smem_offset_1"
)
DIRECTIVES = frozenset(
    ("version", "visible", "extern", "weak", "func", "global", "const", "shared", "local", "param", "reg", "pragma")
)


def read(path: Path) -> Module:
    return parse_module(path.read_text(encoding="utf-8"), path.name)


def kernel(body: str) -> Function:
    """The function whose body is ``body``, with a parameter and a few registers."""
    head = ".entry k(.param .u64 p)\n{.reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .f64 %fd<2>; .reg .pred %p<3>;\n"
    return parse_module(f"{HEAD}.global .u32 a[8];\n{head}{body}\n}}\n").functions["k"]


def instructions(function: Function) -> list[syntax.Instruction]:
    return [x.statement for x in function.body or () if isinstance(x.statement, syntax.Instruction)]


def named(node: object) -> Iterator[syntax.Name]:
    """All names in an operand."""
    match node:
        case syntax.Name():
            yield node
        case syntax.Sum(base) | syntax.AddressOf(base) | syntax.Negated(base):
            yield base
        case syntax.Memory(base, coordinates=coordinates):
            yield from named(base)
            yield from named(coordinates)
        case syntax.Pair(first, second):
            yield first
            yield second
        case syntax.Vector(items):
            for item in items:
                yield from named(item)


def names_of(statement: object) -> Iterator[syntax.Name]:
    """All names that a statement uses."""
    match statement:
        case syntax.Instruction(operands=operands, guard=guard):
            for operand in operands:
                yield from named(operand)
        case Call(function, returns, arguments, targets, guard):
            yield from (function, *returns, *([targets] if targets else []))
            for operand in arguments:
                yield from named(operand)
        case _:
            return
    if guard is not None:
        yield guard.name


# -- what compilers print ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_name_is_declared(path: Path) -> None:
    """In what assembles every name is declared, so none is left after the reader made names unique."""
    module = read(path)
    symbols = {v.name for v in module.variables} | set(module.functions)
    assert module.functions
    for function in module.functions.values():
        statements = [x.statement for x in function.body or ()]
        labels = {s.name for s in statements if isinstance(s, syntax.Label | BranchTargets)}
        variables = [v.name for v in (*function.parameters, *function.returns, *function.variables)]
        assert len(variables) == len(set(variables))
        assert not labels & set(variables) and not labels & set(function.registers)
        for statement in statements:
            for name in names_of(statement):
                known = name.name in function.registers or name.name in labels | symbols or name.name in variables
                special = (name.percent and SPECIAL.fullmatch(name.name)) or name.text in ("WARP_SZ", "_")
                assert known or special, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_text_and_span_are_those_of_the_file(path: Path) -> None:
    module = read(path)
    lines = module.text.splitlines()
    for function in module.functions.values():
        for line in function.body or ():
            statement = line.statement
            source = lines[statement.span.line - 1][statement.span.column - 1 : statement.span.end_column - 1]
            if isinstance(statement, syntax.Instruction | Call) and "/*" not in source:
                written = " ".join(source.partition("//")[0].split())
                assert statement.text.startswith(written) and written


@pytest.mark.parametrize("path", [p for p in FILES if p.stem != "hand"], ids=lambda path: path.stem)
def test_opcodes(path: Path) -> None:
    """The opcodes are those that the text has between semicolons."""
    text = path.read_text(encoding="utf-8")
    found: Counter[str] = Counter()
    for function in parse_module(text).functions.values():
        for line in function.body or ():
            if isinstance(line.statement, syntax.Instruction):
                found[line.statement.opcode] += 1
            elif not isinstance(line.statement, syntax.Label):
                found["call" if isinstance(line.statement, Call) else line.statement.kind] += 1
    text = re.sub(r"//[^\n]*|\.section[^{]*\{[^}]*\}|\.(?:loc|file)\b[^\n]*", "", text)
    # A brace at the end of a line is a scope, or the end of the list of an operand.
    chunks = re.split(r";|\{\s*\n|\n\s*\{(?=\s)", text)
    starts = (re.match(r"(?:[\s{}]|[\w$]+\s*:(?!:))*(?:@!?[%\w]+\s+)?\.?([a-z][a-z0-9]*)", chunk) for chunk in chunks)
    expected = Counter(start[1] for start in starts if start is not None)
    for word in DIRECTIVES:
        del expected[word]
    assert found == expected


def test_kernels_of_nvcc() -> None:
    module = read(MODULES / "nvcc" / "sync.ptx")
    assert module.version == (9, 0) and module.targets == ("sm_90",) and module.address_size == 64
    variables = {v.name: v for v in module.variables}
    table, pointer, dyn = variables["table"], variables["pointer"], variables["dyn"]
    assert (table.space, table.type, table.count, table.alignment) == ("const", Type("b", 8), 32, 4)
    assert table.initial is not None and table.initial[:5] == (1, 0, 0, 0, 2) and len(table.initial) == 32
    assert pointer.initial is not None and isinstance(pointer.initial[0], SymbolAddress)
    assert (pointer.initial[0].name, pointer.initial[0].generic) == ("counter", True)
    assert (dyn.space, dyn.linkage, dyn.count) == ("shared", "extern", 0)
    block = module.functions["_Z9lastBlockPKfPfi4Pair"]
    assert block.entry and block.linkage == "visible" and len(block.parameters) == 4
    assert block.parameters[3].type == Type("b", 8) and block.parameters[3].count == 24
    assert block.registers["p6"] == Type("pred", 1) and "p7" not in block.registers
    calls = [x.statement for x in block.body or () if isinstance(x.statement, Call)]
    assert [c.function.name for c in calls] == ["_Z6squarei4Pair"]
    assert [c.returns[0].name for c in calls] == ["retval0"]
    assert not module.functions["vprintf"].body and module.functions["vprintf"].linkage == "extern"


def test_each_call_has_its_own_parameters() -> None:
    """nvcc declares ``param0`` in a scope of each call."""
    module = read(MODULES / "nvcc" / "control-O0.ptx")
    choose = next(f for name, f in module.functions.items() if "choose" in name)
    calls = [x.statement for x in choose.body or () if isinstance(x.statement, Call) and x.statement.arguments]
    first = [c.arguments[0] for c in calls]
    assert len(first) > 3 and len({n.name for n in first if isinstance(n, syntax.Name)}) == len(first)
    indirect = [c for c in calls if c.targets is not None]
    assert [c.function.percent for c in indirect] == [True]
    targets = [x.statement for x in choose.body or () if isinstance(x.statement, BranchTargets)]
    assert [t.kind for t in targets] == ["callprototype"] and targets[0].name == indirect[0].targets.name  # type: ignore[union-attr]


def test_directives_of_nvcc() -> None:
    functions = read(MODULES / "nvcc" / "control-lineinfo.ptx").functions
    bounded = next(f for name, f in functions.items() if "bounded" in name)
    clustered = next(f for name, f in functions.items() if "clustered" in name)
    assert bounded.directives["maxntid"] == (256,) and bounded.directives["minnctapersm"] == (2,)
    assert clustered.directives["reqnctapercluster"] == (2, 1, 1) and clustered.directives["explicitcluster"] == ()


def test_places_of_nvcc() -> None:
    """Files come last in what nvcc prints. The line of an instruction is the line of the source that says it."""
    module = read(MODULES / "nvcc" / "sync-lineinfo.ptx")
    spin = next(f for name, f in module.functions.items() if "4spin" in name)
    source = (MODULES / "nvcc" / "sync.cu").read_text().splitlines()
    inlined = set()
    for line in spin.body or ():
        place = line.place
        assert place is not None
        while place.inlined is not None:
            inlined.add(place.file.rpartition("/")[2])
            place = place.inlined
        assert place.file.endswith("/sync.cu")
        if isinstance(line.statement, Call):
            assert "printf" in source[place.line - 1]
    assert inlined


def test_scopes_of_inline_assembly() -> None:
    """Two ``asm`` statements with a label and registers of the same names in braces, and one that nests them."""
    module = read(MODULES / "nvcc" / "copies.ptx")
    shadow = next(f for name, f in module.functions.items() if "shadow" in name)
    labels = [x.statement.name for x in shadow.body or () if isinstance(x.statement, syntax.Label)]
    assert {"WAIT", "WAIT$1"} <= set(labels)
    found = {i.text: i for i in instructions(shadow)}
    stores = [i for i in instructions(shadow) if i.mnemonic in ("st.b32", "st.release.gpu.b32")]
    inner, outer = (i.operands[1] for i in stores)
    assert isinstance(inner, syntax.Name) and isinstance(outer, syntax.Name) and inner.name != outer.name
    load = next(i for text, i in found.items() if "ld.relaxed.sys.b32" in text)
    assert load.operands[0] == syntax.Name(outer.name, load.operands[0].span)


def test_places_of_triton() -> None:
    module = read(MODULES / "triton" / "atomic.sm_90.ptx")
    function = module.functions["atomic"]
    assert function.directives["reqntid"] == (128,)
    source = (MODULES / "triton" / "kernels.py").read_text().splitlines()
    lines = {x.place.line for x in function.body or () if x.place is not None and "kernels.py" in x.place.file}
    assert any("atomic_add" in source[n - 1] for n in lines)


# -- what people write ---------------------------------------------------------------------------------------------


def test_variables() -> None:
    """Each value follows from PTX ISA 5.4.3 and 5.4.4."""
    variables = {v.name: v for v in read(MODULES / "hand.ptx").variables}
    ones = 0xFFFFFFFF
    assert variables["offset"].initial == (ones, 0, 0, ones, 1, 0, 0, 0) and variables["offset"].count == 8
    kernel_ = variables["kernel"]
    assert kernel_.initial == (0x3D4CCCCD, 0x3DCCCCCD, 0x3D4CCCCD, 0xBE19999A, 0, 0) and kernel_.alignment == 8
    assert variables["third"].initial == (0x3FD0000000000000,)
    assert variables["quad"].count == 4 and variables["wrapped"].initial == (255,)
    where = variables["where"].initial
    assert where is not None and where[2] == 16
    assert [(x.name, x.offset, x.generic) for x in where if isinstance(x, SymbolAddress)] == [
        ("offset", 8, True),
        ("offset", 0, False),
    ]
    assert (variables["image"].opaque, variables["sampler"].opaque) == ("texref", "samplerref")
    assert (variables["far"].linkage, variables["common"].linkage) == ("extern", "common")
    assert variables["tile1"].alignment == 16 and variables["far"].initial is None


def test_functions() -> None:
    functions = read(MODULES / "hand.ptx").functions
    k, inc, again = functions["k"], functions["inc_ptr"], functions["again"]
    assert k.directives == {"maxntid": (16, 16, 4), "minnctapersm": (2,), "reqnctapercluster": (2,)}
    assert [p.space for p in inc.parameters] == ["reg", "reg"] and inc.registers["ptr"] == Type("u", 32)
    assert inc.directives == {"noreturn": ()} and again.body == functions["twice"].body
    assert functions["other"].body is None and functions["other"].parameters[0].count == 0
    assert k.parameters[0].alignment is None  # .ptr .align is that of the object (5.1.6.3)
    assert {v.name: v.count for v in k.variables} == {"local_array": 16, "arg": None, "arg$1": None}


def test_operands() -> None:
    k = read(MODULES / "hand.ptx").functions["k"]
    found = {i.text: i.operands for i in instructions(k)}

    def texts(text: str) -> list[object]:
        return [x.text if isinstance(x, syntax.Name) else x for x in found[text]]

    assert texts("mov.u32 laneid, %laneid") == ["laneid$1", "%laneid"]
    assert texts("mov.u32 x, %tid.x") == ["x", "%tid.x"] and texts("mov.u32 %x, WARP_SZ") == ["%x$1", "WARP_SZ"]
    assert texts("add.f32 v.r, v.y, 0f3F800000")[:2] == ["v.x", "v.y"]
    address = found["ld.global.u32 %r2, offset[1+2]"][1]
    assert isinstance(address, syntax.Memory) and address.offset == 12  # the fourth element of four bytes
    element = found["mov.u64 %rd2, offset[2]"][1]
    assert isinstance(element, syntax.Sum) and element.offset == 8
    vector = found["ld.v4.f32 v, [%rd1]"][0]
    assert [n.name for n in named(vector)] == ["v.x", "v.y", "v.z", "v.w"]
    number = found["mov.u32 %r0, (WARP_SZ*2 - 1) & ~3U"][1]
    assert isinstance(number, syntax.Number) and number.value == 60
    calls = [x.statement for x in k.body or () if isinstance(x.statement, Call)]
    assert [(c.function.text, len(c.returns), len(c.arguments)) for c in calls] == [
        ("other", 0, 1),
        ("%rd1", 1, 4),
        ("inc_ptr", 1, 2),
        ("twice", 0, 1),
    ]
    assert calls[1].targets is not None and calls[1].targets.name == "proto" and calls[1].guard is not None
    lists = [x.statement for x in k.body or () if isinstance(x.statement, BranchTargets)]
    assert lists[0].labels == ("N0", "N1", "DONE") and lists[0].kind == "branchtargets"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("10 - 2 - 3", 5), ("7 / -2", -3), ("-7 / 2", -3), ("7 % 3", 1)),
        *(("1 << 4 | 1 << 2", 20), ("6 & 3 ^ 5", 7), ("!0", 1), ("!5", 0), ("1 < 2 && 3 == 3 || 0", 1)),
        *(("0 ? 1 : 1 ? 3 : 4", 3), ("- -4", 4), ("+3", 3), ("WARP_SZ * 2", 64), ("0x10U + 010 + 0b11", 27)),
        ("~0", 0xFFFFFFFFFFFFFFFF),  # `~` is unsigned (4.5.5)
        ("-1 > 0U", 1),  # the usual conversions
        ("(.s64) (0 - 1U) < 0", 1),
        ("-8 >> 1", -4),  # arithmetic for the signed
        ("(.u64) -8 >> 60", 15),  # and logical for the unsigned
        ("-42U > 0", 1),
        ("(0 - 4) % 3", 0),  # 2**64 - 4 is a multiple of 3
        ("0xfabc123400000000 / 2", 0xFABC123400000000 // 2),
        ("1.5 < 2.0", 1),
    ],
)
def test_constant_expressions(text: str, value: int) -> None:
    operand = instructions(kernel(f"mov.b64 %rd1, {text};"))[0].operands[1]
    assert isinstance(operand, syntax.Number) and operand.value == value


@pytest.mark.parametrize(
    ("text", "bits"),
    [("1.0/4.0", 0x3FD0000000000000), ("(1 ? -.5 : 2.0)", 0xBFE0000000000000), (".5", 0x3FE0000000000000)],
)
def test_constant_expressions_of_reals(text: str, bits: int) -> None:
    operand = instructions(kernel(f"mov.f64 %fd1, {text};"))[0].operands[1]
    assert isinstance(operand, syntax.Float) and operand.bits == bits and not operand.single


@pytest.mark.parametrize(
    ("address", "offset"),
    [
        *(("[%rd1]", 0), ("[%rd1+4]", 4), ("[%rd1+-4]", -4), ("[%rd1 - 4 + 8]", 4), ("[ %rd1 + 4*2 ]", 8)),
        *(("[%rd1 + 1 << 2]", 4), ("[a+(4)]", 4), ("a[1]", 4), ("a[WARP_SZ-30]", 8), ("[a]", 0), ("a[-1]", -4)),
    ],
)
def test_addresses(address: str, offset: int) -> None:
    """The sum has a whole constant expression; an index counts elements (ptxas agrees in both)."""
    operand = instructions(kernel(f"ld.u32 %r1, {address};"))[0].operands[1]
    assert isinstance(operand, syntax.Memory) and operand.offset == offset
    assert isinstance(operand.base, syntax.Name) and operand.base.name in ("rd1", "a")


def test_scopes() -> None:
    """A name means the innermost declaration before it; a label is known in all of its scope."""
    function = kernel("""
        .reg .b32 x;
        mov.b32 x, 1;
        { mov.b32 x, 2; .reg .b32 x; mov.b32 x, 3; bra L; L: }
        { .reg .b16 x; mov.b16 x, 4; { bra L; } bra L; L: mov.b16 x, 5; }
        L: bra L;
        mov.b32 x, 6;""")
    written = [i.operands[0].name for i in instructions(function) if isinstance(i.operands[0], syntax.Name)]
    assert written == ["x", "x", "x$1", "L$1", "x$2", "L$2", "L$2", "x$2", "L", "x"]
    assert [(n, t.bits) for n, t in function.registers.items() if n[0] == "x"] == [("x", 32), ("x$1", 32), ("x$2", 16)]


def test_names_of_the_module_are_not_taken() -> None:
    """A variable of a function and one of the module are two, whatever is in force where."""
    function = kernel("mov.u64 %rd1, a; { .shared .u32 a; mov.u64 %rd2, a; } .reg .b32 %a; mov.b32 %a, 1;")
    used = [x.name for i in instructions(function) for x in named(i.operands[1])]
    assert used == ["a", "a$1"] and [v.name for v in function.variables] == ["a$1"]
    assert "a$2" in function.registers


def test_special_registers_keep_their_names() -> None:
    function = kernel(".reg .b32 tid, clock; mov.b32 tid, %tid.x; mov.b32 clock, %clock;")
    texts = [[x.text for o in i.operands for x in named(o)] for i in instructions(function)]
    assert texts == [["tid", "%tid.x"], ["clock$1", "%clock"]]


def test_places() -> None:
    text = """.entry k { ret;
    .loc 1 21 3
    .loc 1 9 3, function_name info_string0, inlined_at 1 21 3
    bar.sync 0;
    .loc 1 15 5, function_name .debug_str+16, inlined_at 1 9 3
    .loc 3 1 1 ret; }
    .entry j { ret; }
    .section .debug_str { info_string0: .b8 95 // _ }
    .b8 0 }
    .file 1 "a.cu", 1, 2"""
    functions = parse_module(HEAD + text).functions
    places = [line.place for line in functions["k"].body or ()]
    call = Place("a.cu", 21, 3)
    assert places == [None, Place("a.cu", 9, 3, call), Place("<file 3>", 1, 1)]
    assert [line.place for line in functions["j"].body or ()] == [None]


def test_nested_places() -> None:
    """The place where something was inlined was itself in code that was inlined (PTX ISA 11.5.4)."""
    text = """.file 1 "a.cu"
    .entry k {
    .loc 1 10 5, function_name s, inlined_at 1 27 3
    .loc 1 15 3, function_name t, inlined_at 1 10 5
    ret; }"""
    place = (parse_module(HEAD + text).functions["k"].body or ())[0].place
    assert place == Place("a.cu", 15, 3, Place("a.cu", 10, 5, Place("a.cu", 27, 3)))


def test_circular_places() -> None:
    """A function that is inlined into itself: the chain of places ends."""
    loc = ".loc 1 1 1, function_name s, inlined_at 1 2 1\n.loc 1 2 1, function_name s, inlined_at 1 1 1\nret;\n"
    function = parse_module(f"{HEAD}.entry k {{\n{loc * 500}}}\n").functions["k"]
    for line in function.body or ():
        place, depth = line.place, 0
        while place is not None:
            place, depth = place.inlined, depth + 1
        assert 2 <= depth < 100


def test_deep_nesting_and_long_modules() -> None:
    depth = 3000
    text = ".entry k {" + "{ .reg .b32 x; mov.b32 x, 1;" * depth + "}" * depth + "}"
    function = parse_module(HEAD + text).functions["k"]
    assert len(function.registers) == depth and f"x${depth - 1}" in function.registers


@pytest.mark.benchmark
def test_speed() -> None:
    """20,000 lines with two memory accesses in three."""
    line = "\tld.global.v2.u32 \t{%r1, %r2}, [%rd1+16];\n\tadd.s32 \t%r1, %r2, 5;\n\tst.u32 \t[%rd2], %r1;\n"
    text = f"{HEAD}.entry k() {{\n.reg .b32 %r<9>; .reg .b64 %rd<9>;\n{line * 6667}ret;\n}}\n"
    start = time.process_time()
    parse_module(text)
    assert time.process_time() - start < 3


# -- errors --------------------------------------------------------------------------------------------------------

# text after the head, line, column, width, kind, message, hint
MODULE_ERRORS = [
    (".globl .u32 x;", 4, 1, 6, "syntax", "unknown directive `.globl` in a module", "did you mean .global?"),
    (".global .u31 x;", 4, 9, 4, "syntax", "`.u31` is not part of a declaration", "did you mean .u32?"),
    (".global .u32 x\n.global .u32 y;", 4, 14, 1, "syntax", "missing `;` after the declaration", None),
    (".global .u32 x; .global .u32 x;", 4, 30, 1, "name", "`x` is declared twice", None),
    (".global .u32 x[2] = {1, 2, 3};", 4, 26, 1, "syntax", "more elements than the array has", None),
    (".global .u32 x = 1.5;", 4, 18, 3, "syntax", "`.u32` is not initialized with a floating-point constant", None),
    (".global .u8 x[] = {0xff(y)};", 4, 20, 4, "unsupported", "`mask()` in an initializer is not supported", None),
    (".entry k {\n{ ret;\n}\n", 4, 10, 1, "syntax", "this `{` has no `}`", "close it with `}`"),
    (".entry k { ret; } }", 4, 19, 1, "syntax", "this `}` closes nothing", None),
    (".entry k .maxntd 4 {}", 4, 10, 7, "syntax", "unknown directive `.maxntd` of a function",
     "did you mean .maxntid?"),
    (".func f {} .func f {}", 4, 18, 1, "name", "the function `f` is defined twice", None),
    (".global .u32 f; .func f {}", 4, 23, 1, "name", "`f` is declared twice", None),
    (".reg .b32 x;", 4, 1, 4, "unsupported", "variables in `.reg` outside functions are not supported",
     "declare them in the function"),
    ("#define N 4", 4, 1, 1, "unsupported", "preprocessor lines are not supported", "run the C preprocessor first"),
    ("/* c", 4, 1, 2, "syntax", "the comment `/*` has no end", "close it with `*/`"),
    ('.file 1 "a', 4, 9, 1, "syntax", "the string has no end on its line", 'close it with `"`'),
    (".section .x {", 4, 1, 8, "syntax", "this section has no `}`, or `{` in it", None),
]  # fmt: skip
BODY_ERRORS = [
    (".reg .b32 x\nmov.u32 x, 1;", 5, 11, 1, "syntax", "missing `;` after the declaration", None),
    ("mov.u32 x, 1\nmov.u32 y, 1;", 5, 12, 1, "syntax", "missing `;` after the instruction", None),
    ("mov.u32 x, 1\n.reg .b32 t;", 5, 12, 1, "syntax", "missing `;` after the instruction", None),
    ("mov.u32 x, 1", 5, 12, 1, "syntax", "missing `;` after the instruction", None),
    ("mov.u32 x 1;", 5, 11, 1, "syntax", "missing `,` before `1`", None),
    ("ld.u32 x, [y;", 5, 13, 1, "syntax", "missing `]` before the end", None),
    ("mov.u32 x, (1+2;", 5, 16, 1, "syntax", "expected `)` in the constant expression, found `;`", None),
    ("mov.u32 x, 1/0;", 5, 13, 1, "syntax", "division of a constant by zero", None),
    ("mov.u32 x, 1 << 64;", 5, 14, 2, "unsupported", "a constant of 64 bits is shifted by 64", None),
    ("L: ret; L: ret;", 5, 9, 1, "name", "the label `L` is declared twice in this scope", None),
    (".reg .b32 %r<3>, %r2;", 5, 18, 3, "name", "`%r2` is declared twice in this scope", None),
    (".reg .b32 L; L: ret;", 5, 11, 1, "name", "`L` is declared twice in this scope", None),
    ("{ .reg .b32 t; } mov.u32 t, 1;", 5, 26, 1, "name", "`t` is declared only later or in another scope",
     "declare it before, in a scope that contains this"),
    ("bra L; { L: ret; }", 5, 5, 1, "name", "`L` is declared only later or in another scope",
     "declare it before, in a scope that contains this"),
    (".shred .b32 x;", 5, 1, 6, "syntax", "unknown directive `.shred` in a function", "did you mean .shared?"),
    (".reg .b32 %r<9999999>;", 5, 14, 7, "unsupported", "at most 1000000 names can be declared", None),
    ("call (a, f;", 5, 6, 1, "syntax", "`(` has no `)`", "close it with `)`"),
    ("call f (a);", 5, 8, 1, "syntax", "expected `,` after the function, found `(`", None),
    (".shared .b32 s; ld.u32 x, s[y];", 5, 29, 1, "unsupported",
     "an element whose index is in a register is not supported", "compute the address and write [r]"),
    ("ld.u32 x, y[1];", 5, 12, 1, "syntax", "`y` is no variable: only an array has elements",
     "an address in a register is [r+4]"),
    ("ret;;", 5, 5, 1, "syntax", "stray `;`: there is no instruction before it", None),
    (".loc 1 2;", 5, 9, 1, "syntax", "expected an integer constant (the column) after `.loc`, found `;`", None),
    ("mov.u32 x, 'a';", 5, 12, 1, "syntax", "unexpected character `'`", None),
]  # fmt: skip


def error_of(text: str) -> PtxmmError:
    with pytest.raises(PtxmmError) as found:
        parse_module(text, "t.ptx")
    return found.value


@pytest.mark.parametrize(("text", "line", "column", "width", "kind", "message", "hint"), MODULE_ERRORS)
def test_errors(text: str, line: int, column: int, width: int, kind: str, message: str, hint: str | None) -> None:
    e = error_of(HEAD + text)
    assert (e.message, e.line, e.column, e.width, e.kind, e.hint) == (message, line, column, width, kind, hint)
    assert e.file == "t.ptx" and e.source == (HEAD + text).splitlines()[line - 1]


@pytest.mark.parametrize(("text", "line", "column", "width", "kind", "message", "hint"), BODY_ERRORS)
def test_errors_in_bodies(
    text: str, line: int, column: int, width: int, kind: str, message: str, hint: str | None
) -> None:
    e = error_of(f"{HEAD}.entry k {{\n{text}\n}}\n")
    assert (e.message, e.line, e.column, e.width, e.kind, e.hint) == (message, line, column, width, kind, hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the module is empty"),
        (".target sm_90", "expected `.version` at the beginning of the module, found `.target`"),
        (".version 8", "`8` is not a version"),
        (".version 8.5\n", "missing `.target` after `.version`, found the end"),
        (".version 8.5\n.target sm_90\n.address_size 16", "the size of addresses is 32 or 64"),
        (HEAD + ".version 8.5", "`.version` is only at the beginning of the module"),
    ],
)
def test_errors_in_the_head(text: str, message: str) -> None:
    assert error_of(text).message == message


@pytest.mark.parametrize("text", ["(" * 500 + "1" + ")" * 500, "- " * 800 + "1", "1 ? 2 : " * 800 + "1"])
def test_deep_constant_expressions(text: str) -> None:
    error = error_of(f"{HEAD}.entry k {{ mov.u32 x, {text}; }}")
    assert error.message == "the constant expression is nested too deeply" and error.kind == "unsupported"


# -- any bytes -----------------------------------------------------------------------------------------------------

PIECES = (
    *("{", "}", ";", ",", "(", ")", "[", "]", ".reg .b32 %r<3>;", ".loc 1 2 3", ".section .x {", "call", "@", "!"),
    *("|", "&", "*", "/", "%", "<", ">", "<<", "?", ":", "=", "0f3F800000", ".5", "0x", "-", "+", '"', "//", "/*"),
    *("*/", "\n", "\x00", "é", "%tid.x", ".param", "L:", "generic(", "$", "_", ".branchtargets", ".callprototype"),
    *("@@DWARF", "#", "9" * 30, "inlined_at", "a[1]", "{a,b}|p", "\r\n", ".v4", ".align", "", ""),
)


@pytest.mark.parametrize("seed", range(6))
def test_mutants(seed: int) -> None:
    """Whatever the text, there is a module or an error with a place in it."""
    rng = random.Random(seed)
    texts = [path.read_text()[:9000] for path in FILES if "-G" not in path.stem]
    texts += [(MODULES / "hand.ptx").read_text()] * 4
    read_well = 0
    for _ in range(60):
        text = rng.choice(texts)
        if rng.random() < 0.3:
            text = text[: rng.randrange(len(text))]
        for _ in range(rng.choice((0, 1, 1, 2, 4))):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(PIECES) + text[at + rng.choice((0, 0, 1, 2, 5, 40)) :]
        try:
            parse_module(text)
            read_well += 1
        except PtxmmError as error:
            assert error.line is not None and 1 <= error.line <= text.count("\n") + 1
            assert error.column is not None and error.column >= 1 and error.message in str(error)
    assert read_well < 60
