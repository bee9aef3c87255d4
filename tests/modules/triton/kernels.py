"""The kernels whose PTX is beside this file, as Triton 3.9 printed it (``python kernels.py``; no GPU is needed)."""

from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vector_add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def softmax(x, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + r * n + i, mask=i < n, other=-float("inf"))
    v = tl.exp(v - tl.max(v, axis=0))
    tl.store(o + r * n + i, v / tl.sum(v, axis=0), mask=i < n)


@triton.jit
def matmul(a, b, c, K, B: tl.constexpr, BK: tl.constexpr):
    m = tl.arange(0, B)
    n = tl.arange(0, B)
    k = tl.arange(0, BK)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for i in range(0, K, BK):
        left = tl.load(a + m[:, None] * K + (i + k)[None, :])
        right = tl.load(b + (i + k)[:, None] * B + n[None, :])
        acc += tl.dot(left, right)
    tl.store(c + m[:, None] * B + n[None, :], acc)


@triton.jit
def atomic(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    old = tl.atomic_add(o + tl.load(x + i), 1, sem="acq_rel", scope="gpu")
    tl.atomic_cas(o, 0, 1)
    while tl.atomic_cas(o + 1, 1, 1) == 0:
        pass
    tl.atomic_xchg(o + 2, tl.sum(old))


@triton.jit
def scan(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.cumsum(tl.load(x + i), axis=0))


def write(function, types, sizes, capability=90):
    signature = {**types, **dict.fromkeys(sizes, "constexpr")}
    source = ASTSource(fn=function, signature=signature, constexprs=sizes)
    kernel = triton.compile(source, target=GPUTarget("cuda", capability, 32))
    Path(f"{function.__name__}.sm_{capability}.ptx").write_text(kernel.asm["ptx"])


if __name__ == "__main__":
    write(vector_add, {"x": "*fp32", "y": "*fp32", "o": "*fp32", "n": "i32"}, {"B": 256})
    write(softmax, {"x": "*fp32", "o": "*fp32", "n": "i32"}, {"B": 256})
    write(matmul, {"a": "*fp16", "b": "*fp16", "c": "*fp32", "K": "i32"}, {"B": 32, "BK": 32})
    write(matmul, {"a": "*fp16", "b": "*fp16", "c": "*fp32", "K": "i32"}, {"B": 64, "BK": 32}, 80)
    write(atomic, {"x": "*i32", "o": "*i32"}, {"B": 128})
    write(scan, {"x": "*fp32", "o": "*fp32"}, {"B": 256})
