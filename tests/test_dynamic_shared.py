"""All ``extern .shared`` arrays of a module are one: the dynamic shared memory of its CTA."""

from __future__ import annotations

import pytest

from ptxmm.errors import PtxmmError
from ptxmm.program.test import Test
from tests.decided import decided_tests
from tests.kernels import launched

ARRAYS = ".extern .shared .align 16 .b8 a[];\n.extern .shared .align 16 .b8 b[];\n"
TYPES = ".extern .shared .align 4 .u32 a[];\n.extern .shared .align 8 .f64 b[];\n"
STORE = "st.global.u32 [%rd0], %r1;"
FIRST = f"st.shared.u32 [a], 1; st.shared.u32 [b], 2; ld.shared.u32 %r1, [a]; {STORE}"


def kernel(body: str, check: str, before: str = ARRAYS, launch: str = "shared = 16", objects: str = "") -> list[Test]:
    return launched(body, {"out": '"u32"'}, check, launch=launch, others=objects, before=before)


def conclusions(body: str, check: str = "condition = 'forall (out == 2)'", **more: str) -> set[str]:
    return {found.conclusion for found in decided_tests(kernel(body, check, **more), 60, "both")}


@pytest.mark.parametrize("before", [ARRAYS, TYPES, ARRAYS.replace("[]", "[16]"), ARRAYS + ".shared .b32 c;"])
def test_they_begin_at_one_address(before: str) -> None:
    assert conclusions(FIRST, before=before) == {"expected"}
    assert conclusions(FIRST, "condition = 'forall (out == 1)'", before=before) == {"contradicted"}


def test_inside_a_function() -> None:
    body = ".extern .shared .align 4 .b8 c[]; st.shared.u32 [c+4], 2; ld.shared.u32 %r1, [a+4];" + STORE
    assert conclusions(body) == {"expected"}


def test_different_words_of_one_block() -> None:
    body = f"st.shared.u32 [a], 2; st.shared.u32 [b+4], 3; ld.shared.u32 %r1, [a]; {STORE}"
    assert conclusions(body) == {"expected"}


def test_types_of_different_sizes() -> None:
    """A word of the one is half of an element of the other."""
    body = f"mov.u64 %rd1, 0x200000001; st.shared.b64 [b], %rd1; ld.shared.u32 %r1, [a+4]; {STORE}"
    assert conclusions(body, before=TYPES) == {"expected"}


def test_static_shared_memory_is_beside_it() -> None:
    before = ARRAYS + ".shared .align 4 .b32 c;\n"
    body = f"st.shared.u32 [c], 2; st.shared.u32 [a], 1; st.shared.u32 [b], 1; ld.shared.u32 %r1, [c]; {STORE}"
    assert conclusions(body, before=before) == {"expected"}


def test_it_ends_where_the_launch_says() -> None:
    """The address of the end may be computed, but not accessed."""
    loop = (
        "mov.u32 %r2, a; add.u32 %r3, %r2, 16; mov.u32 %r1, 0;\nL: st.shared.u32 [%r2], 2; add.u32 %r2, %r2, 4;"
        f" setp.ne.u32 %p1, %r2, %r3; @%p1 bra L; ld.shared.u32 %r1, [b+12]; {STORE}"
    )
    assert conclusions(loop) == {"expected"}
    with pytest.raises(PtxmmError, match=r"the access at a\+16 of 4 bytes is outside a"):
        kernel("ld.shared.u32 %r1, [b+16];" + STORE, 'races = "none"')


RACE = "mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 0; @%p1 st.shared.u32 [a{}], 1; @!%p1 st.shared.u32 [b{}], 2;"
LANES = "block = 64\n// ptxmm: threads = 'lane 0'\n// ptxmm: shared = 16"


@pytest.mark.parametrize(("one", "other", "wanted"), [
    ("", "", "contradicted"), ("+4", "+4", "contradicted"), ("", "+4", "expected"), ("+12", "+8", "expected"),
])  # fmt: skip
def test_they_race(one: str, other: str, wanted: str) -> None:
    assert conclusions(RACE.format(one, other), 'races = "none"', launch=LANES) == {wanted}


def test_the_launch_names_one_of_them() -> None:
    (test,) = kernel(FIRST, "condition = 'forall (b[0] == 2)'", objects='b = { type = "u32" }')
    assert set(test.objects) == {"out", "b"}
    assert (test.objects["b"].type.name, test.objects["b"].count, test.objects["b"].alignment) == ("u32", 4, 16)
    assert conclusions(FIRST, "condition = 'forall (b[0] == 2)'", objects='b = { type = "u32" }') == {"expected"}
    both = "condition = 'forall (a[0] == 2 /\\ b[0] == 2)'"
    for check, objects in ((both, ""), ("condition = 'forall (a[0] == 2)'", 'b = { type = "u32" }')):
        with pytest.raises(PtxmmError, match="`a` and `b` begin at the same address") as error:
            kernel(FIRST, check, objects=objects)
        assert error.value.hint == "name only `a`" and error.value.line == (5 if objects else 6)
