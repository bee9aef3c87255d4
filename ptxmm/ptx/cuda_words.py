"""What is written in CUDA C++ in the place of PTX, and the PTX for it."""

from __future__ import annotations

import re

from ptxmm.ptx.origin import clip

_ATOMICS = {
    "Add": "atom.relaxed.gpu.global.add.u32 r0, [x], 1",
    "Sub": "atom.relaxed.gpu.global.add.u32 r0, [x], -1",
    "Exch": "atom.relaxed.gpu.global.exch.b32 r0, [x], 1",
    "CAS": "atom.relaxed.gpu.global.cas.b32 r0, [x], 0, 1",
    "Inc": "atom.relaxed.gpu.global.inc.u32 r0, [x], 9",
    "Dec": "atom.relaxed.gpu.global.dec.u32 r0, [x], 9",
    "Min": "atom.relaxed.gpu.global.min.u32 r0, [x], 1",
    "Max": "atom.relaxed.gpu.global.max.u32 r0, [x], 1",
    "And": "atom.relaxed.gpu.global.and.b32 r0, [x], 1",
    "Or": "atom.relaxed.gpu.global.or.b32 r0, [x], 1",
    "Xor": "atom.relaxed.gpu.global.xor.b32 r0, [x], 1",
}
_SCOPES = {"": "gpu", "_block": "cta", "_system": "sys"}
_CALLS = {
    "__threadfence": "`membar.gl`, which is `fence.sc.gpu`",
    "__threadfence_block": "`membar.cta`, which is `fence.sc.cta`",
    "__threadfence_system": "`membar.sys`, which is `fence.sc.sys`",
    "__syncthreads": "`bar.sync 0`",
    "__syncwarp": "`bar.warp.sync 0xffffffff`",
    "atomic_thread_fence": "`fence.acq_rel.gpu`, or `fence.sc.gpu` for memory_order_seq_cst",
    "__nanosleep": "`nanosleep.u32 100`",
}
_MEMBERS = {
    "load": "`ld.acquire.gpu.global.u32 r0, [x]`",
    "store": "`st.release.gpu.global.u32 [x], 1`",
    "exchange": f"`{_ATOMICS['Exch']}`",
    "fetch_add": f"`{_ATOMICS['Add']}`",
    "fetch_sub": f"`{_ATOMICS['Sub']}`",
    "compare_exchange_strong": f"`{_ATOMICS['CAS']}`",
    "compare_exchange_weak": f"`{_ATOMICS['CAS']}`",
    "sync": "`bar.sync 0`",
    "arrive_and_wait": "`bar.sync 0`",
}
_STATEMENT = re.compile(r"(if|else|while|for|do|switch|return)\b(?!\s*[.:])")
_CALL = re.compile(r"((?:[A-Za-z_]\w*(?:::|\.|->))*)([A-Za-z_]\w*)\s*(?:<[^<>;]*>\s*)?\(")
_ATOMIC = re.compile(r"atomic(Add|Sub|Exch|CAS|Inc|Dec|Min|Max|And|Or|Xor)(_block|_system)?")
_ASSIGNMENT = re.compile(r"\*?\s*[%A-Za-z_][\w.]*(?:\[[^][;|]*\])?\s*(?:\+\+|--|(?:[-+*/|&^]|<<|>>)?=(?!=))")
_DECLARED = re.compile(
    r"(?:const\s+|volatile\s+|unsigned\s+)*(?:int|unsigned|float|double|auto|bool|u?int\d+_t)\s+\w+\s*[=;(]"
)


def meant(statement: str) -> tuple[str, int, str] | None:
    """A message, its width and the mend for a statement of C++ at the start of ``statement``; None for another text."""
    message = "`{}` is CUDA C++: a thread is written in PTX"
    keyword = _STATEMENT.match(statement)
    if keyword is not None:
        mend = "compare and branch, `setp.eq.u32 p, r0, 1; @p bra LABEL;`, or guard an instruction: `@p st...`"
        if keyword[1] == "return":
            mend = "write `exit`"
        return message.format(keyword[1]), len(keyword[1]), mend
    call = _CALL.match(statement)
    if call is not None:
        name = call[2]
        hint = _CALLS.get(name) or (_MEMBERS.get(name) if call[1] else None) or _atomic(name)
        shown = clip(f"{call[1]}{name}({')' if statement[call.end() :].lstrip().startswith(')') else '...)'}")
        mend = f"write {hint}" if hint else "a call can't be said in a litmus test"
        return message.format(shown), call.end() - 1, mend
    made = _DECLARED.match(statement) or _ASSIGNMENT.match(statement)
    if made is not None:
        mend = "write `mov.u32 r0, 1`, `ld.global.u32 r0, [x]` or `st.global.u32 [x], 1`"
        return message.format(clip(" ".join(made[0].split()))), made.end(), mend
    return None


def _atomic(name: str) -> str | None:
    match = _ATOMIC.fullmatch(name)
    if match is None:
        return None
    return f"`{_ATOMICS[match[1]].replace('.gpu.', f'.{_SCOPES[match[2] or str()]}.')}`"
