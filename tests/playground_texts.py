"""Texts for the editor of the playground that are no litmus tests."""

from __future__ import annotations

from tests.support import ROOT

ROWS = """.global x;
.global flag;
d0.b0.t0 {
  st [x], 2;
  st.release$0 [flag], 1;
}
d0.b1.t0 {
  ld.acquire$0 r0, [flag] == 1;
  ld r1, [x];
}
$1(r1 == 2) as r1;
$$
.gpu | assert
.cta | permit
"""
"""A ``.test`` file with two rows."""

_CUDA = ROOT / "tests" / "cuda" / "mp_release_acquire_gpu.wrong_relaxed_store.cu"
_LAUNCH = [line for line in _CUDA.read_text(encoding="utf-8").splitlines() if line.startswith("// ptxmm:")]
KERNEL = "\n".join((*_LAUNCH, _CUDA.with_suffix(".ptx").read_text(encoding="utf-8")))
"""A PTX module that says how its kernel is launched."""
