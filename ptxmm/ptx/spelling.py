"""How operands are written, in PTX and in the untyped dialect."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from msgspec import Struct

from ptxmm.errors import PtxmmError
from ptxmm.ptx import ops
from ptxmm.ptx.ops import Op, Type

_BITS = Type("b", 64)


class Spelling(Struct, frozen=True):
    """How to write labels, variables and registers."""

    label: Callable[[int], str]
    name: Callable[[str], str]
    variables: Container[str]

    def register(self, register: ops.Reg | ops.Guard) -> str:
        """A register; with ``%`` where the bare name would be a variable."""
        name = register.name if isinstance(register, ops.Reg) else register.register
        return f"%{name}" if name in self.variables else name

    def sink(self, register: ops.Reg | None) -> str:
        """A register, or ``_``."""
        return "_" if register is None else self.register(register)

    def operand(self, item: ops.Operand, typ: Type = _BITS) -> str:
        """A source operand of ``typ``: constants of floating-point types are written as their bits."""
        match item:
            case ops.Reg():
                return self.register(item)
            case ops.Imm(value):
                if typ.kind == "f":
                    return f"0f{value:08X}" if typ.bits == 32 else f"0d{value:016X}"
                return str(value)
            case ops.Sym(name, offset):
                return self.name(name) + (f"{offset:+d}" if offset else "")

    def value(self, item: ops.Operand) -> str:
        """A source operand of the dialect, where addresses are written ``&x``."""
        return ("&" if isinstance(item, ops.Sym) else "") + self.operand(item)

    def address(self, address: ops.Address) -> str:
        """An address without brackets."""
        return self.operand(address.base) + (f"{address.offset:+d}" if address.offset else "")

    def place(self, address: ops.Address) -> str:
        """An address in brackets."""
        return f"[{self.address(address)}]"

    def result(self, op: ops.Atomic) -> list[str]:
        """The destination of an atomic, if it has that operand."""
        if not op.returns:
            return []
        return [self.registers(op.dst) if any(op.dst) else "_"]

    def registers(self, items: Sequence[ops.Reg | None]) -> str:
        """Destinations: one register or a vector."""
        return listed([self.sink(r) for r in items])

    def operands(self, items: Sequence[ops.Operand]) -> str:
        """Source operands: one or a vector."""
        return listed([self.operand(v, _BITS) for v in items])


def listed(texts: Sequence[str]) -> str:
    """One operand as it is, several as a vector."""
    return texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"


def dotted(*parts: str | None) -> str:
    """An opcode with its qualifiers, those that are None left out."""
    return ".".join(part for part in parts if part is not None)


def refuse(op: Op, message: str, hint: str | None = None) -> PtxmmError:
    """The error (kind ``unsupported``) for what cannot be said or followed, at the instruction."""
    return PtxmmError(message, kind="unsupported", hint=hint).at(op.source.span)
