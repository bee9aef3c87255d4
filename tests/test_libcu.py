"""Objects of libcu++ in a launch: ``cuda::barrier(2)`` is laid out as nvcc lays it out."""

from __future__ import annotations

import pytest

from ptxmm.errors import PtxmmError
from ptxmm.formats import parse
from ptxmm.program.test import Test
from tests.support import ROOT

COMPILED = ROOT / "tests" / "modules" / "nvcc" / "libcu.ptx"
LIKE = {
    "barrier_of_3": '"cuda::barrier(3)"',
    "latch_of_4": '"cuda::latch(4)"',
    "semaphore_of_5": '"cuda::counting_semaphore(5)"',
    "bounded_semaphore_of_6": '"cuda::counting_semaphore<cuda::thread_scope_device, 7>(6)"',
    "binary_semaphore_of_1": '"cuda::binary_semaphore(1)"',
    "atomic_of_7": '"cuda::atomic<unsigned>(7)"',
    "atomic_of_8": '{ type = "cuda::std::atomic<s64>", init = 8 }',
    "atomic_of_1_5": '"cuda::atomic<float, cuda::thread_scope_device>(1.5)"',
    "atomic_of_9": '"cuda::atomic<uint8_t>(9)"',
}
"""Each variable of the module, and an object of a launch that is to be the same."""

KERNEL = """.version 8.0
.target sm_90
.address_size 64
{0}
.visible .entry k(.param .u64 p)
{{
  .reg .b64 %rd<3>; .reg .b32 %r<2>;
  ld.param.u64 %rd1, [p];
  ld.global.u32 %r1, [%rd1];
  ret;
}}
"""


def launched(value: str, module: str = "", name: str = "x") -> Test:
    head = f'// ptxmm: args = ["x"]\n// ptxmm: [objects]\n// ptxmm: x = "u32"\n// ptxmm: {name} = {value}\n'
    head = head.replace('// ptxmm: x = "u32"\n', "") if name == "x" else head
    (test,) = parse(head + KERNEL.format(module), "k.ptx")
    return test


def content(test: Test, name: str) -> bytes:
    item = test.objects[name]
    return b"".join(value.to_bytes(item.type.bytes, "little") for value in item.initial)


@pytest.mark.parametrize("name", LIKE)
def test_as_nvcc_lays_it_out(name: str) -> None:
    arguments = '// ptxmm: args = ["out"]\n// ptxmm: [objects]\n// ptxmm: out = { type = "u64", count = 16 }\n'
    (compiled,) = parse(arguments + COMPILED.read_text(encoding="utf-8"), "libcu.ptx")
    made = launched(LIKE[name])
    assert content(made, "x") == content(compiled, name)


def test_all_of_them_are_compiled() -> None:
    text = COMPILED.read_text(encoding="utf-8")
    assert [row.split()[4].partition("[")[0] for row in text.splitlines() if row.startswith(".global")] == list(LIKE)


def test_several_and_a_variable_of_the_module() -> None:
    several = launched('{ type = "cuda::barrier", count = 2, init = 2 }')
    assert several.objects["x"].initial == (0x7FFFFFFE7FFFFFFE,) * 2
    each = launched('{ type = "cuda::latch", init = [2, 3] }')
    assert each.objects["x"].initial == (2, 3)
    own = launched('"cuda::counting_semaphore(4)"', ".global .align 8 .b8 y[8];", "y")
    assert own.objects["y"].initial == (4,)
    assert launched('"cuda::counting_semaphore"').objects["x"].initial == (0,)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('"cuda::barrier"', "a cuda::barrier is made with a number"),
        ('"cuda::barrier(-1)"', "made of a number from 0 to 2147483647, not -1"),
        ('"cuda::latch(1.5)"', "not 1.5"),
        ('"cuda::binary_semaphore(2)"', "from 0 to 1, not 2"),
        ('"cuda::counting_semaphore<3>(4)"', "from 0 to 3, not 4"),
        ('"cuda::atomic(4)"', "does not say of what type it is"),
        ('"cuda::atomic<thing>(4)"', "`thing` is not the type of an atomic"),
        ('"cuda::atomic<u32>(four)"', "`four` is not a number"),
        ('"cuda::mutex(1)"', "is not an object of libcu\\+\\+ that is known"),
        ('"cuda::barrier<thing>(1)"', "`thing` is not known there"),
        ('{ type = "cuda::latch", count = 3, init = [2, 3] }', "2 values for 3 objects"),
    ],
)
def test_what_is_none(value: str, message: str) -> None:
    with pytest.raises(PtxmmError, match=message) as caught:
        launched(value)
    assert caught.value.line == 3


def test_a_barrier_in_shared_memory_is_an_mbarrier() -> None:
    with pytest.raises(PtxmmError, match="is an mbarrier: the kernel initialises it"):
        launched('"cuda::barrier(2)"', ".shared .align 8 .b8 y[8];", "y")
