"""The scanner of CUDA sources: which ``asm`` statements there are, their parts, and where every character stands."""

from __future__ import annotations

import random

import pytest

from ptxmm.analysis.lint import Options, lint_text
from ptxmm.cuda import AsmStatement, Reader, scan
from tests.support import ROOT

FOLDER = ROOT / "tests" / "lint"


def only(text: str) -> AsmStatement:
    (found,) = scan("x.cu", text).statements
    return found


def ptx(text: str) -> str:
    template = only(text).template
    assert template is not None
    return template.text


@pytest.mark.parametrize(
    "text",
    [
        'asm("ret;");',
        'asm volatile ("ret;");',
        '__asm__("ret;");',
        '__asm__ __volatile__("ret;" : : );',
        'asm("re" /* half */ "t;");',
        'asm(\n// a comment\n"ret;");',
        'asm("re\\\nt;");',
        'asm(R"(ret;)");',
        'asm(R"xy(ret;)xy" "");',
        'asm(u8"ret;");',
        'asm("\\x72" "et\\073");',
        'auto n = 1\'000; asm("ret;");',
        "char c = '\"'; asm(\"ret;\"); char d = '\\'';",
        '#define F "(" // "\nasm("ret;");',
        '#define F() asm("ret;")',
        '#define F(x) \\\n  do { \\\n asm("ret;"); \\\n  } while (x)',
        '#if 0\n#else\nasm("ret;");\n#endif',
    ],
)
def test_statements_are_found(text: str) -> None:
    assert ptx(text) == "ret;"


@pytest.mark.parametrize(
    "text",
    [
        '// asm("ret;");',
        '/* asm("ret;"); */',
        'const char* s = "asm(\\"ret;\\");";',
        'const char* s = R"(asm("ret;");)";',
        'x.asm("ret;");',
        'int assembler("ret;");',
        'asm goto("ret;" :::: label);',
        'asm("ret;"',
        "asm(",
        "asm",
        "#define asm",
    ],
)
def test_what_is_no_statement(text: str) -> None:
    assert scan("x.cu", text).statements == ()


@pytest.mark.parametrize(
    "text",
    ['asm("bar.sync " #x ";");', 'asm("ld" SUFFIX ".u32 %0, [%1];" : "=r"(x) : "l"(p));', 'asm(TEXT "ret;");'],
)
def test_macros_in_a_template_are_left_alone(text: str) -> None:
    assert only(text).template is None
    assert lint_text(text).unchecked == (1,)
    assert lint_text(text).findings == ()


def test_operands() -> None:
    inputs = '"n"(a ? b : c), "l"(N::p), LETTER(x)'
    text = f'asm volatile("" : "=r"(v.x), [sum] "+l"(t[f(1, 2)]) : {inputs} : "memory", "cc");'
    found = only(text)
    assert [(o.constraint, o.expression, o.output, o.name) for o in found.operands] == [
        ("=r", "v . x", True, None),
        ("+l", "t [ f ( 1 , 2 ) ]", True, "sum"),
        ("n", "a ? b : c", False, None),
        ("l", "N :: p", False, None),
        (None, "x", False, None),
    ]
    assert found.clobbers == ("memory", "cc")
    assert found.volatile


@pytest.mark.parametrize(
    ("template", "printed"),
    [
        ("%0 %1", "%$0 %$1"),
        ("%%r %0", "%r %$0"),
        ("%laneid", "%laneid"),
        ("%[b] %[a]", "%$1 %$0"),
        ("L%=: bra L%=", "L0: bra L0"),
        ("%{ x %}", " x "),
        ('\\t\\"\\\\ %0', '\t"\\ %$0'),
    ],
)
def test_escapes(template: str, printed: str) -> None:
    """As nvcc 13.0 prints them."""
    assert ptx(f'asm("{template}" : [a] "=r"(x) : [b] "r"(y));') == printed


def test_a_template_without_operands_is_not_changed() -> None:
    assert ptx('asm("%%r %0 %laneid");') == "%%r %0 %laneid"


def test_every_character_knows_its_place() -> None:
    text = 'void f() {\n  asm("ab\\tc" // x\n      R"(d\n  e)" "%1%%"\n : "=r"(x) : "r"(y));\n}\n'
    unit = scan("x.cu", text)
    template = unit.statements[0].template
    assert template is not None
    assert template.text == "ab\tcd\n  e%$1%"
    places = [unit.source.place(offset) for offset in template.offsets]
    assert places[:4] == [(2, 8), (2, 9), (2, 10), (2, 12)]
    assert places[4] == (3, 10)
    assert places[8] == (4, 3)
    assert text[template.offsets[9]] == "%"
    assert template.span(9, 12)[1] == template.offsets[9] + 2


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("__global__ void __launch_bounds__(256, 2) kernel(int* p) {", "kernel"),
        ("template <int N, std::enable_if_t<(N > 1), int> = 0>\n__device__ void f(T (&a)[N]) noexcept(true) {", "f"),
        ("struct S : Base<(1)> { S(int a) : a_(a), b_{f(a)} {", "S"),
        ("template <> __device__ void wait<0>() {", "wait"),
        ("namespace n { class C { __device__ auto g() const -> int {", "g"),
        ("MACRO(x)\nstatic inline int h(int (*callback)(int)) {", "h"),
        ("int k() { auto l = [&](int i) {", "k"),
        ("#if A\nint m(int a) {\n#else\nint m() {\n#endif\n", "m"),
    ],
)
def test_the_function_around_a_statement(head: str, name: str) -> None:
    unit = scan("x.cu", f'{head} asm("ret;"); }}')
    number = unit.statements[0].function
    assert number is not None
    assert unit.functions[number].name == name


@pytest.mark.parametrize(
    ("text", "loop"),
    [
        ("void f() { ASM }", False),
        ("void f() { while (x) ASM }", True),
        ("void f() { for (int i = 0; i < 3; i++) { if (x) { ASM } } }", True),
        ("void f() { do { ASM } while (x); }", True),
        ("void f() { for (;;) { } ASM }", False),
        ("void f() { while (x) g([&](int y) { return y; }); ASM }", False),
    ],
)
def test_loops(text: str, loop: bool) -> None:
    assert only(text.replace("ASM", 'asm("ret;");')).loop is loop


@pytest.mark.parametrize(
    ("text", "least", "below"),
    [
        ("#if __CUDA_ARCH__ >= 900\nASM\n#endif", 900, 1 << 30),
        ("#if __CUDA_ARCH__ >= 900\n#else\nASM\n#endif", 0, 900),
        ("#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 700)\nASM\n#endif", 0, 700),
        ("#if __CUDA_ARCH__ >= 900\n#elif __CUDA_ARCH__ >= 800\nASM\n#endif", 800, 900),
        ("#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700\n#else\nASM\n#endif", 0, 700),
        ("#if __CUDA_ARCH__ >= 900 || X\nASM\n#endif", 0, 1 << 30),
        ("#if __CUDA_ARCH__ >= 900\n#endif\nASM", 0, 1 << 30),
        ("#if __CUDA_ARCH__ > 700\n#if X\nASM\n#endif\n#endif", 701, 1 << 30),
    ],
)
def test_architectures(text: str, least: int, below: int) -> None:
    assert only(text.replace("ASM", 'asm("ret;");')).architectures == (least, below)


def test_statements_with_conditions_inside() -> None:
    text = 'asm(\n#if A\n"st.u32 [%0], 1;" :: "l"(p),\n#else\n"st.u32 [%0], 2;" :: "l"(q),\n#endif\n"r"(x));'
    found = scan("x.cu", text).statements
    assert [s.template.text[-2] for s in found if s.template] == ["1", "2"]
    assert [s.operands[0].expression for s in found] == ["p", "q"]


def test_bodies() -> None:
    text = R"""asm("{ .reg .pred p<2>; .reg .b32 a, %b; loop: @p0 bra loop; { ld.u32 %0, [%1+4]; } }"
        : "=r"(x) : "l"(y));"""
    body = Reader().read(only(text))
    assert body is not None
    assert [(d.name, d.type, d.depth) for d in body.declarations] == [
        ("p0", "pred", 1), ("p1", "pred", 1), ("a", "b32", 1), ("%b", "b32", 1)
    ]  # fmt: skip
    assert [name for name, _, _ in body.labels] == ["loop"]
    assert [(i.mnemonic, i.guarded, i.depth) for i in body.instructions] == [("bra", True, 1), ("ld.u32", False, 2)]
    assert [(u.number, u.reads, u.writes, u.space) for u in body.instructions[1].uses] == [
        (0, False, True, None), (1, True, False, "generic")
    ]  # fmt: skip


def test_other_assembly_languages_are_left_alone() -> None:
    for line in ("mfence", "lock; xaddl %0, %1", "mov %%rsp, %0", "dmb ish", "b.ne 1b", "rdtsc", "ldr x0, [x1]"):
        assert lint_text(f'void f() {{ asm("{line}" : "=r"(x) : "r"(y)); }}').findings == ()
    # RISC-V with extensions, MIPS: opcodes of PTX, other qualifiers.
    for line in ("mova.x.m %0", "mov.m.x m0, x0, 1\\n addi t0, t0, 1", "mov.d $f0, $f2", "add.s %0, %1, %1"):
        assert lint_text(f'void f() {{ asm volatile("{line}" : "=r"(x) : "r"(y)); }}').findings == ()


@pytest.mark.parametrize(
    "text",
    [
        "cp.async.bulk.prefetch.L2.global.L2::evict_last [%0], 16;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster::32b"
        " [%1], [%0], 16, [%1], %1;",
        "fence.alias.sync_restrict::read.release.sys;",
        "fence.proxy.alias.acquire.sys;",
        "mbarrier.check_layout.b64 [%0];",
        "tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {%1, %1}, %1, [%1];",
        "max.f32 %1, %1, %1, %1;",
    ],
)
def test_what_a_later_version_may_have_is_not_reported(text: str) -> None:
    source = f'__device__ void f() {{ asm volatile("{text}" : : "l"(p), "r"(x) : "memory"); }}'
    assert lint_text(source, options=Options(select=("PTX2",))).findings == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mbarrier.ival.shared.b64 [%0];", "`mbarrier` has no form `.ival`"),
        ("barrier.cluster.sync;", "`barrier` takes no `.cluster`"),
        ("cp.async.arrive.shared.b64 [%0];", "`cp.async` takes no `.arrive`"),
        ("fence.acquire.gpuu;", "`fence` has no qualifier `.gpuu`"),
        ("ld.volatile.sys.global.b32 %0, [%1];", "`ld.volatile` takes no scope: `.sys`"),
        ("red.acq_rel.gpu.global.or.b32 [%1], %0;", "`red` takes no `.acq_rel`"),
    ],
)
def test_what_no_version_will_have_is_reported(text: str, message: str) -> None:
    source = f'__device__ void f() {{ asm volatile("{text}" : : "r"(x), "l"(p) : "memory"); }}'
    assert [r.message for r in lint_text(source, options=Options(select=("PTX2",))).findings] == [message]


def test_garbage_neither_fails_nor_hangs() -> None:
    """Truncations and mutations of real sources, and texts that repeat what opens something."""
    sources = [path.read_text() for path in sorted(FOLDER.glob("*.cu"))]
    random_ = random.Random(5)
    everything = Options(enable=("ALL",), isa=(7, 0), arch=70)
    marks = [*"{}()\"'\\\n:;%,", "/*", "*/", "//", "#if", "#endif", 'R"(', "asm("]
    for _ in range(60):
        text = random_.choice(sources)
        start = random_.randrange(len(text))
        text = text[start : start + random_.randrange(3000)]
        for _ in range(random_.randrange(12)):
            at = random_.randrange(len(text) + 1)
            text = text[:at] + random_.choice(marks) + text[at + random_.randrange(3) :]
        lint_text(text, options=everything)
    more = ['asm("', "asm volatile(", "\\\n", "#define asm(", 'asm("{" : ', 'asm(":', "\0", "\u2028", 'R"x(']
    for mark in (*marks, *more, 'asm(""::"r"('):
        lint_text(mark * 4000, options=everything)
        lint_text('asm("' + mark.replace('"', '\\"').replace("\n", "\\n") * 4000 + '");', options=everything)
