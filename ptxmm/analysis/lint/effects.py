"""What an instruction does to memory, as far as a C++ compiler has to know (PTX ISA 8, 9.7; Inline PTX 2.3)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmm.cuda import Instruction

_CLOCKS = ("%clock", "%globaltimer", "%pm")
ORDERS = ("relaxed", "acquire", "release", "acq_rel", "volatile", "sc")
SCOPES = ("cta", "cluster", "gpu", "sys")


def effect(instruction: Instruction) -> str:
    """One of: ``none``; ``read`` of memory that others may write; ``write``; ``order`` of other accesses (fences,
    barriers, acquire, release, waits); ``copy`` (non-bulk asynchronous copies, which a barrier orders); ``matrix``
    (ldmatrix and the like, which a barrier or fence orders); ``collective`` (an exchange between lanes)."""
    opcode, words = instruction.opcode, frozenset(instruction.qualifiers)
    match opcode:
        case "ld":
            if words & {"nc", "const", "param", "param::entry", "param::func", "local"}:
                return "none"
            return "order" if "acquire" in words else "read"
        case "st" | "red" | "atom" | "sust" | "sured" | "discard":
            if words & {"param", "param::func", "local"}:
                return "none"
            return "order" if words & {"release", "acquire", "acq_rel"} else "write"
        case "multimem":
            if words & {"release", "acquire"}:
                return "order"
            return "read" if "ld_reduce" in words else "write"
        case "bar" | "barrier" if "relaxed" in words:
            return "none"  # barrier.cluster.arrive.relaxed orders nothing (9.7.14.3)
        case "fence" | "membar" | "bar" | "barrier":
            return "order"
        case "mbarrier":
            if words & {"pending_count", "relaxed"}:
                return "none"  # the C++ program has no access to the object that could be out of order
            return "write" if words & {"init", "inval"} else "order"
        case "cp":
            return _copy(words)
        case "wgmma":
            return "order" if words & {"fence", "wait_group"} else "matrix"
        case "griddepcontrol":
            return "order" if "wait" in words else "none"
        case "ldmatrix" | "stmatrix" | "tensormap" | "wmma" | "tcgen05":
            return "matrix" if opcode != "wmma" or words & {"load", "store"} else "none"
        case "shfl" | "vote" | "match" | "redux":
            return "collective"  # `elect` gives the same for the same mask (9.7.14.14): nothing is lost
        case _:
            return "none"


def _copy(words: frozenset[str]) -> str:
    if "prefetch" in words or "commit_group" in words:
        return "none"
    if "bulk" not in words:
        return "copy"
    return "order" if "wait_group" in words else "write"


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
