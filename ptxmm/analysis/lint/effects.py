"""What an instruction does to memory, as far as a C++ compiler has to know (PTX ISA 8, 9.7; Inline PTX 2.3)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmm.cuda import Instruction

_CLOCKS = ("%clock", "%globaltimer", "%pm")
ORDERS = ("relaxed", "acquire", "release", "acq_rel", "volatile", "sc")
SCOPES = ("cta", "cluster", "gpu", "sys")
FENCE_CALLS = frozenset({"__threadfence", "__threadfence_block", "__threadfence_system"})
"""The functions of CUDA C++ that are thread fences."""


_EFFECTS: dict[str, tuple[tuple[frozenset[str], str], ...]] = {
    opcode: tuple((frozenset(some.split()), what) for some, what in rows)
    for opcodes, rows in (
        ("ld", (("nc const param param::entry param::func local", "none"), ("acquire", "order"), ("", "read"))),
        ("st red atom sust sured discard", (
            ("param param::func local", "none"), ("release acquire acq_rel", "order"), ("", "write"),
        )),
        ("multimem", (("release acquire", "order"), ("ld_reduce", "read"), ("", "write"))),
        # barrier.cluster.arrive.relaxed orders nothing (9.7.14.3).
        ("bar barrier", (("relaxed", "none"), ("", "order"))),
        ("fence membar", (("", "order"),)),
        # The C++ program has no access to the object of a relaxed operation that could be out of order.
        ("mbarrier", (("pending_count relaxed", "none"), ("init inval", "write"), ("", "order"))),
        ("cp", (("prefetch commit_group", "none"), ("", "copy"))),
        ("cp.bulk", (("prefetch commit_group", "none"), ("wait_group", "order"), ("", "write"))),
        ("wgmma", (("fence wait_group", "order"), ("", "matrix"))),
        ("griddepcontrol", (("wait", "order"),)),
        ("ldmatrix stmatrix tensormap tcgen05", (("", "matrix"),)),
        ("wmma", (("load store", "matrix"),)),
        ("shfl vote match redux", (("", "collective"),)),  # `elect` gives the same for the same mask (9.7.14.14)
    )
    for opcode in opcodes.split()
}  # fmt: skip
"""For each opcode what it does with some of these qualifiers, or (the last) without."""


def effect(instruction: Instruction) -> str:
    """One of: ``none``; ``read`` of memory that others may write; ``write``; ``order`` of other accesses (fences,
    barriers, acquire, release, waits); ``copy`` (non-bulk asynchronous copies, which a barrier orders); ``matrix``
    (ldmatrix and the like, which a barrier or fence orders); ``collective`` (an exchange between lanes)."""
    words = frozenset(instruction.qualifiers)
    rows = _EFFECTS.get("cp.bulk" if instruction.opcode == "cp" and "bulk" in words else instruction.opcode, ())
    return next((what for some, what in rows if not some or words & some), "none")


def reads_clock(instruction: Instruction, text: str) -> bool:
    """Whether it reads a special register whose value changes with time (PTX ISA 10.23 to 10.28)."""
    return instruction.opcode == "mov" and any(clock in text for clock in _CLOCKS)


def carry(instructions: Sequence[Instruction]) -> tuple[str, Instruction] | None:
    """What a template does with the carry flag of another one, and where: it ``takes`` the flag that no instruction
    of it has set before, or ``gives`` it, as its only instruction sets it (PTX ISA 9.7.2)."""
    for instruction in instructions:
        if instruction.opcode in ("addc", "subc", "madc"):
            return "takes", instruction
        if "cc" in instruction.qualifiers:
            return ("gives", instruction) if len(instructions) == 1 else None
    return None


def order(instruction: Instruction) -> str | None:
    """The memory order of an access: ``weak`` without one, of ``atom`` and ``red`` ``relaxed``; None if it is no
    access of memory that threads share."""
    words = instruction.qualifiers
    if instruction.opcode not in ("ld", "st", "atom", "red", "multimem") or "async" in words or "bulk" in words:
        return None
    if {"nc", "const", "param", "local", "param::entry", "param::func"} & set(words):
        return None
    for word in ORDERS:
        if word in words:
            return word
    if "mmio" in words:
        return "relaxed"
    return "relaxed" if instruction.opcode in ("atom", "red") else "weak"


def scope(instruction: Instruction) -> str | None:
    """The scope that a fence or an access is written with."""
    if instruction.opcode == "membar":
        return {"cta": "cta", "gl": "gpu", "sys": "sys"}.get(next(iter(instruction.qualifiers), ""))
    if instruction.opcode in ("ld", "st", "atom", "red", "fence", "multimem", "mbarrier"):
        return next((word for word in instruction.qualifiers if word in SCOPES), None)
    return None


def fences(instruction: Instruction) -> bool:
    """Whether it is a thread fence: ``membar``, or ``fence`` with an order and a scope."""
    words = instruction.qualifiers
    if instruction.opcode == "membar":
        return "proxy" not in words
    return instruction.opcode == "fence" and "proxy" not in words and "mbarrier_init" not in words
