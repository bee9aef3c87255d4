"""Matrix instructions: loads and stores of matrices by a warp, products by a warpgroup (PTX ISA 9.7.15.4, 9.7.16)."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from ptxmm.ptx.ops.basic import CTA, Address, Guard, Imm, Operand, Reg, Rule, Source, Touch, Type, lies_in

MATRIX_ROW_BYTES = 16
_ELEMENT_BYTES, _PAIR_BYTES = 2, 4


def _rows(op: LoadMatrix | StoreMatrix, section: str, writes: bool) -> tuple[Touch, ...]:
    rule = Rule(op.space, lies_in(op.space, CTA), section, writes)
    if not op.fragments:
        return (Touch(op.address, MATRIX_ROW_BYTES, MATRIX_ROW_BYTES, rule, "row", near="shared::cta"),)
    size = fragment_bytes(op)
    return tuple(Touch(place, size, size, rule, "row", near="shared::cta") for place in op.fragments)


def fragment_bytes(op: LoadMatrix | StoreMatrix) -> int:
    """The bytes at each of the ``fragments`` of ``op``: of two elements of a row, or with ``.trans`` of one."""
    return _ELEMENT_BYTES if op.transposed else _PAIR_BYTES


class LoadMatrix(Struct, frozen=True):
    """``ldmatrix`` (9.7.15.4.15): a weak read of ``MATRIX_ROW_BYTES`` of shared memory, elements of 16 bits.

    ``address`` is that of the row that this lane names. The four lanes 4*i to 4*i+3 get 4 bytes each of row i of the
    matrix; ``dst`` has a register for each of the 1, 2 or 4 matrices, None for ``_``. ``transposed``: ``.trans``.
    ``fragments``: where what this lane gets of each matrix lies, in the rows that lanes of its warp name: a pair of
    elements, or with ``.trans`` one element after the other; none if these rows are not known.
    """

    opcode: ClassVar = "ldmatrix.sync.aligned.m8n8 x{dst} {transposed?trans} {space} b16"
    roles: ClassVar = "=dst:b32* [address]"
    dst: tuple[Reg | None, ...]
    address: Address
    space: str | None
    transposed: bool
    source: Source
    guard: Guard | None = None
    fragments: tuple[Address, ...] = ()

    @property
    def touches(self) -> tuple[Touch, ...]:
        return _rows(self, "9.7.15.4.15", False)


class StoreMatrix(Struct, frozen=True):
    """``stmatrix`` (9.7.15.4.16): a weak write of ``MATRIX_ROW_BYTES``; the rest as in ``LoadMatrix``."""

    opcode: ClassVar = "stmatrix.sync.aligned.m8n8 x{values} {transposed?trans} {space} b16"
    roles: ClassVar = "[address] values:b32*"
    address: Address
    values: tuple[Operand, ...]
    space: str | None
    transposed: bool
    source: Source
    guard: Guard | None = None
    fragments: tuple[Address, ...] = ()

    @property
    def touches(self) -> tuple[Touch, ...]:
        return _rows(self, "9.7.15.4.16", True)


class WgmmaFence(Struct, frozen=True):
    """``wgmma.fence`` (9.7.16.7.1): what a later ``wgmma.mma_async`` is issued after (A35)."""

    opcode: ClassVar = "wgmma.fence.sync.aligned"
    roles: ClassVar = ""
    source: Source
    guard: Guard | None = None


class Wgmma(Struct, frozen=True):
    """``wgmma.mma_async`` (9.7.16.5.2) and ``.sp`` (9.7.16.6.4): D = A*B + D, or A*B if ``scale`` is false.

    ``dst`` is this thread's part of D, in registers of ``type`` (f32, s32; b32 for pairs of f16). ``a`` is this
    thread's part of A in registers, or the descriptor of A in shared memory; ``b`` is the descriptor of B. In a litmus
    test a descriptor is not encoded as in 9.7.16.5.1.2.7: it is the 64-bit address of the first byte of the matrix.
    The matrices are read in the async proxy; the operation joins the next wgmma-group.

    ``shape`` is (M, N, K) and ``multiplicands`` the element types of A and B, such as ``bf16`` and ``e4m3``.
    ``scale`` is a predicate or constant, read as ``!p`` if ``scale_negated``; ``immediates``: imm-scale-a, imm-scale-b,
    imm-trans-a (if A is in shared memory), imm-trans-b, as many as the types take; ``metadata`` and ``selector`` are
    those of a sparse A (None, 0 if dense); ``saturate``: ``.satfinite``.
    """

    described: ClassVar = Rule("shared::cta", CTA, "9.7.16.5.2")
    dst: tuple[Reg, ...]
    a: tuple[Reg, ...] | Operand
    b: Operand
    scale: Operand
    type: Type
    shape: tuple[int, int, int]
    multiplicands: tuple[str, str]
    source: Source
    guard: Guard | None = None
    scale_negated: bool = False
    immediates: tuple[int, ...] = ()
    metadata: Reg | None = None
    selector: int = 0
    saturate: bool = False
    matrices: tuple[tuple[tuple[Address, int], ...], ...] = ()

    @property
    def touches(self) -> tuple[Touch, ...]:
        pieces = (piece for matrix in self.matrices for piece in matrix)
        return tuple(
            Touch(place, size, MATRIX_ROW_BYTES, self.described, "matrix", "matrix", "copy", near="shared::cta")
            for place, size in pieces
        )

    @property
    def opcode(self) -> str:
        m, n, k = self.shape
        first = f"wgmma.mma_async{'' if self.metadata is None else '.sp'}.sync.aligned.m{m}n{n}k{k}"
        dtype = "f16" if self.type.kind == "b" else "{type}"
        popc = "and.popc" if self.multiplicands == ("b1", "b1") else ""
        return f"{first} {{saturate?satfinite}} {dtype} {'.'.join(self.multiplicands)} {popc}"

    @property
    def roles(self) -> str:
        """As in ``record``; the accumulator is a source too, unless the constant ``scale`` says that it is not."""
        added = "" if self.scale == Imm(0) else "(dst:type) "
        a = "a:b32*" if isinstance(self.a, tuple) else "a:b64"
        sparse = "" if self.metadata is None else "metadata:b32 #selector "
        return f"{added}=dst:type* {a} b:b64 {sparse}scale:pred!scale_negated #immediates"


MatrixAccess = LoadMatrix | StoreMatrix
