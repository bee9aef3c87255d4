"""Multimem addresses: declarations, what they stand for, and what has no meaning (PTX ISA 8.2.3, 9.7.10.13)."""

from __future__ import annotations

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.cat import load
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse
from ptxmm.formats.writer import same, write
from ptxmm.program.shared.chunks import Chunks
from tests.support import ask, model_named

DECLARATIONS = ".global .u32 x = 0; .global .u32 y = 0; m @ multimem x, y;"
EVERY = "ptx-8.5"


def text_of(declarations: str, *bodies: str, condition: str = "exists (x == 0)", places: tuple[str, ...] = ()) -> str:
    """A litmus test in blocks; threads in CTAs of their own unless ``places`` says where."""
    threads = ""
    for i, body in enumerate(bodies):
        lines = body.replace(";", ";\n")
        threads += f" P{i} @ {places[i] if places else f'cta {i}'} {{\n {lines}\n }}\n"
    return f"PTX t\n{{\n {declarations}\n}}\n{threads}{condition}\n"


def states(text: str, model: str = EVERY) -> set[tuple[int, ...]]:
    """The final states, which both engines agree on."""
    (test,) = parse(text, "t.litmus")
    found = [ask(engine, test, model_named(model)) for engine in ("solve", "enumerate")]
    assert found[0].comparable() == found[1].comparable()
    return set(found[0].states)


def refusal(text: str, model: str = EVERY) -> PtxmmError:
    with pytest.raises(PtxmmError) as caught:
        (test,) = parse(text, "t.litmus")
        check(test, load(model))
    return caught.value


@pytest.mark.parametrize(
    ("declarations", "message", "kind"),
    [
        (".global .u32 x = 0; m @ multimem x;", "a multimem address stands for two or more locations", "syntax"),
        (".global .u32 x = 0; m @ multimem x, x;", "`x` is the same location as another one", "type"),
        (".global .u32 x = 0; z @ generic aliases x; m @ multimem x, z;", "`z` is the same location as another one",
         "type"),
        (".global .u32 x = 0; .global .u64 y = 0; m @ multimem x, y;", "`y` and `x` differ in type or size", "type"),
        (".global .u32 x = 0; .global .u32 y[2] = {0}; m @ multimem x, y;", "`y` and `x` differ in type or size",
         "type"),
        (".global .u32 x = 0; .shared .u32 y @ cta 0 = 0; m @ multimem x, y;", "`y` is not in .global memory", "type"),
        (".global .u32 x = 0; m @ multimem x, y; .global .u32 y = 0;", "`y` is declared after `m`", "name"),
        (".global .u32 x = 0; m @ multimem x, w;", "no variable is called `w`", "name"),
        (f"{DECLARATIONS} n @ multimem m, x;", "`m` is itself a multimem address", "name"),
        (f"{DECLARATIONS} n @ generic aliases m;", "`m` is a multimem address", "type"),
        (f"{DECLARATIONS} s @ surface aliases x; n @ multimem y, s;", "`s` is a surface alias", "name"),
        (".global .u32 x = 0; m @ multimen x, x;",
         "expected a proxy (generic, surface, texture, constant) or `multimem`, found `multimen`", "syntax"),
    ],
)  # fmt: skip
def test_declarations_that_are_refused(declarations: str, message: str, kind: str) -> None:
    error = refusal(text_of(declarations, "st.global.u32 [x], 1;"))
    assert (error.message, error.kind) == (message, kind)
    assert error.line == 3 and error.column is not None and error.column > 1


def test_a_condition_names_the_locations() -> None:
    error = refusal(text_of(DECLARATIONS, "multimem.st.u32 [m], 1;", condition="exists (m == 0)"))
    assert error.message == "m is a multimem address of several locations" and error.hint == "name one of them: x, y"
    error = refusal(text_of(DECLARATIONS, "multimem.st.u32 [m], 1;", condition="locations [m;]\nexists (x == 0)"))
    assert error.hint == "name one of them: x, y"


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("multimem.st.u32 [m+4], 1", "the access at m+4 of 4 bytes is outside m"),
        ("multimem.st.f16x2 [m+2], 1", "an .f16 operand is a register, found `1`"),
        ("multimem.red.add.u32 [m+2], 1", "the access at m+2 of 4 bytes is outside m"),
        ("ld.shared.u32 r, [m]", "m is in .global, but the access is to .shared"),
    ],
)
def test_places_are_checked(instruction: str, message: str) -> None:
    assert refusal(text_of(DECLARATIONS, f"{instruction};")).message == message


@pytest.mark.parametrize("model", ["ptx-6.0", "ptx-7.5"])
def test_older_models_have_no_multimem(model: str) -> None:
    error = refusal(text_of(DECLARATIONS, "multimem.st.u32 [m], 1;"), model)
    assert error.kind == "unsupported" and error.message == f"{model} has no multimem instructions"


def test_not_in_a_host_thread() -> None:
    error = refusal(text_of(DECLARATIONS, "multimem.st.u32 [m], 1;", places=("host",)))
    assert error.message == "`multimem.st.u32` in a host thread"


def test_floating_point_sums_of_three() -> None:
    declarations = ".global .f32 x = 0.0; .global .f32 y = 0.0; .global .f32 z = 0.0; m @ multimem x, y, z;"
    error = refusal(text_of(declarations, "multimem.ld_reduce.add.f32 r, [m];", condition="exists (x == 0.0)"))
    assert error.kind == "unsupported" and error.line is not None
    assert "the order in which more than two floating-point numbers are added" in error.message
    stored = text_of(declarations, "multimem.red.add.f32 [m], 0f3F800000;", condition="forall (z == 1.0)")
    assert len(states(stored)) == 1


def test_every_location_of_three() -> None:
    declarations = ".global .u32 x = 1; .global .u32 y = 2; .global .u32 z = 4; m @ multimem x, y, z;"
    body = "multimem.ld_reduce.add.u32 r, [m]; multimem.red.xor.b32 [m], 7; multimem.ld_reduce.or.b32 s, [m];"
    (test,) = parse(text_of(declarations, body, condition="forall (P0:r == 7 /\\ P0:s == 7)"), "t.litmus")
    for engine in ("z3", "enumerate"):
        assert check(test, load(EVERY), engine=engine).observation == "always"
    assert states(text_of(declarations, body)) == {(7, 7, 6, 5, 3)}


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ("add.u32", 4), ("min.u32", 5), ("min.s32", 0xFFFFFFFF), ("max.u32", 0xFFFFFFFF), ("and.b32", 5),
        ("or.b32", 0xFFFFFFFF), ("xor.b32", 0xFFFFFFFA),
    ],
)  # fmt: skip
def test_operations(operation: str, result: int) -> None:
    """Of 5 and -1."""
    declarations = ".global .u32 x = 5; .global .u32 y = 0xffffffff; m @ multimem x, y;"
    loaded = states(text_of(declarations, f"multimem.ld_reduce.{operation} r, [m];", condition="forall (P0:r == 0)"))
    assert {value & 0xFFFFFFFF for value, *_ in loaded} == {result}
    changed = states(text_of(declarations, f"multimem.red.{operation} [m], 0xffffffff;"))
    assert {value & 0xFFFFFFFF for value, *_ in changed} == {result}


def test_subnormal_numbers_are_kept() -> None:
    """Unlike atom and red of .f32 in .global memory (9.7.14.5), of which nothing is said here."""
    declarations = ".global .f32 x = 0f00000001; .global .f32 y = 0f00000001; m @ multimem x, y;"
    body = "multimem.ld_reduce.add.f32 r, [m]; multimem.red.add.f32 [m], 0f00000001;"
    assert states(text_of(declarations, body, condition="exists (x == 0.0)")) == {(2, 2, 2)}


UNDEFINED = [
    "ld.global.u32 r, [m]", "st.relaxed.gpu.u32 [m], 1", "atom.add.u32 r, [m], 1", "red.add.u32 [m], 1",
    "multimem.st.u32 [x], 1", "multimem.ld_reduce.add.u32 r, [x]", "multimem.red.add.u32 [z], 1",
    "mov.u64 d, m; ld.u32 r, [d]", "mov.u64 d, x; multimem.st.u32 [d], 1", "ldu.global.u32 r, [m]",
    "cp.async.ca.shared.global [s], [m], 4", "multimem.st.u32 [0], 1",
]  # fmt: skip


@pytest.mark.parametrize("body", UNDEFINED)
def test_no_meaning(body: str) -> None:
    """Other operations on a multimem address, and multimem operations on other addresses, by both engines."""
    declarations = f"{DECLARATIONS} z @ generic aliases x; .shared .u32 s @ cta 0 = 0;"
    (test,) = parse(text_of(declarations, f"{body};"), "t.litmus")
    said = set()
    for engine in ("z3", "enumerate"):
        result = check(test, load(EVERY), engine=engine)
        assert result.status == "undefined"
        said.add(tuple(result.notes))
    assert len(said) == 1


def test_an_address_of_either_kind() -> None:
    """Where only some values of a register are multimem addresses, those executions have a meaning."""
    declarations = f"{DECLARATIONS} .global .u64 p = 0; .global .u32 a = 5; .global .u32 b = 6; n @ multimem a, b;"
    chosen = "mov.u64 d, m; mov.u64 e, n; ld.relaxed.gpu.u64 t, [p]; setp.eq.u64 q, t, 0; selp.u64 d, d, e, q;"
    writer = f"{chosen} multimem.st.u32 [d], 1;"
    other = "st.relaxed.gpu.u64 [p], 1;"
    (test,) = parse(text_of(declarations, writer, other), "t.litmus")
    found = [ask(engine, test, model_named(EVERY)) for engine in ("solve", "enumerate")]
    assert found[0].comparable() == found[1].comparable()
    assert len(found[0].states) == 2


def test_a_location_by_a_non_coherent_load() -> None:
    error = refusal(text_of(DECLARATIONS, "ld.global.nc.u32 r, [y];", "multimem.st.u32 [m], 1;"))
    assert error.kind == "unsupported" and "non-coherent load" in error.message


def test_vectors_are_divided_as_each_location_is() -> None:
    declarations = ".global .align 8 .f32 x[2] = {0.0}; .global .align 8 .f32 y[2] = {0.0}; m @ multimem x, y;"
    body = "multimem.st.v2.f32 [m], {0f3F800000, 0f40000000};"
    text = text_of(declarations, body, "ld.global.u16 r, [y+2];", condition="exists (x[0] == 0.0)")
    (test,) = parse(text, "t.litmus")
    chunks = Chunks(test)
    assert chunks.of("x", 0, 8) == ((0, 4), (4, 4)) and chunks.of("y", 0, 4) == ((0, 2), (2, 2))
    found = [ask(engine, test, model_named(EVERY)) for engine in ("solve", "enumerate")]
    assert found[0].comparable() == found[1].comparable()


def test_a_spin_loop() -> None:
    loop = "L: multimem.ld_reduce.acquire.sys.min.u32 r, [m]; setp.eq.u32 p, r, 0; @p bra L; ld.global.u32 t, [d];"
    writer = "st.global.u32 [d], 1; multimem.st.release.sys.u32 [m], 1;"
    text = text_of(f"{DECLARATIONS} .global .u32 d = 0;", loop, writer, condition="exists (P0:t == 0)")
    (test,) = parse(text, "t.litmus")
    for engine in ("z3", "enumerate"):
        assert check(test, load(EVERY), engine=engine).observation == "never"


def test_unknown_values() -> None:
    """A reduction computes with what is unknown at any of the locations."""
    declarations = ".param .u32 c; .global .u32 x = 0; .global .u32 y = 0; m @ multimem x, y;"
    body = "ld.param.u32 r, [c]; multimem.st.u32 [m], r; multimem.ld_reduce.or.b32 s, [m];"
    (test,) = parse(text_of(declarations, body, condition="exists (P0:s == 3)"), "t.litmus")
    notes = check(test, load(EVERY)).notes
    assert any("ld_reduce" in note.text for note in notes), notes


def test_written_and_read_again() -> None:
    declarations = f"{DECLARATIONS} n @ multimem y, x;"
    body = "multimem.ld_reduce.acquire.gpu.add.u32 r, [m]; multimem.red.max.s32 [n], -1; mov.u64 d, n;"
    body += " multimem.st.weak.b32 [d], r;"
    (test,) = parse(text_of(declarations, body), "t.litmus")
    text = write(test)
    assert "m @ multimem x, y;" in text and "n @ multimem y, x;" in text
    (again,) = parse(text, "t.litmus")
    assert same(test, again)
