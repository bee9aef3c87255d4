"""Writes message passing through an mbarrier in every form that a wait and the access after it can have, and what frees
a slot of shared memory that is filled again, by a copy or by a store.

python -m tests.benchmarks.hardware_waits FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

LOAD = "ld.shared.u32 r0, [s];"
FORMS = {
    "straight": "WAIT; " + LOAD,
    "relaxed-load": "WAIT; ld.relaxed.cta.shared.u32 r0, [s];",
    "atom": "WAIT; atom.relaxed.cta.shared.add.u32 r0, [s], 0;",
    "store": "WAIT; st.shared.u32 [s], 1;",
    "global": "WAIT; ld.global.u32 r0, [s];",
    "guarded": "WAIT; @p " + LOAD,
    "branch": "WAIT; @!p bra end; " + LOAD + " end:",
    "loop": "again: WAIT; @!p bra again; " + LOAD,
    "fence": "WAIT; fence.acq_rel.cta; " + LOAD,
    "cluster-acquire": "WAIT; " + LOAD,
    "relaxed-wait": "WAIT; " + LOAD,
    "relaxed-wait-loop": "again: WAIT; @!p bra again; " + LOAD,
}
"""What the consumer does, by what is special about it."""
WAIT = "mbarrier.{}.parity.{}.shared::cta.b64 p, [b], 0"
SEEN = "P1:p == 1 /\\ P1:r0 == 0"


ARRIVE = "mbarrier.arrive.release.cta.shared::cta.b64 _, [empty];"
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [full];"
REFILLS = {
    "straight": ("ld.shared.u32 r0, [s]; " + ARRIVE, COPY),
    "used": ("ld.shared.u32 r0, [s]; setp.ne.u32 q, r0, 99; @q " + ARRIVE, COPY),
    "fence": ("ld.shared.u32 r0, [s]; fence.proxy.async.shared::cta; " + ARRIVE, COPY),
    "store": ("ld.shared.u32 r0, [s]; " + ARRIVE, "st.shared.u32 [s], 7;"),
}
"""Who reads the slot and frees it, and who fills it again."""


def family() -> Iterator[tuple[str, str]]:
    """The name and the text of each test."""
    for wait in ("test_wait", "try_wait"):
        for form, text in FORMS.items():
            yield f"{wait}-{form}", _in_a_cta(f"{wait}-{form}", wait, form, text)
    for name, wait, form in (
        ("straight", "try_wait", "straight"),
        ("test_wait", "test_wait", "straight"),
        ("guarded", "try_wait", "guarded"),
        ("loop", "try_wait", "loop"),
    ):
        yield f"st.async-{name}", _across_ctas(f"st.async-{name}", FORMS[form], WAIT.format(wait, "acquire.cta"))
    for name, (reader, writer) in REFILLS.items():
        yield f"refill-{name}", _refill(f"refill-{name}", reader, writer)


def _refill(name: str, reader: str, writer: str) -> str:
    return (
        f"PTX {name}\n\n"
        "{ .shared .align 16 .u32 s[4] = {0, 0, 0, 0}; .global .align 16 .u32 g[4] = {7, 0, 0, 0};\n"
        "  .shared .b64 full @ cta 0 = mbarrier(0, 16); .shared .b64 empty @ cta 0 = mbarrier(1); }\n"
        f"P0 @ cta 0 {{ {reader} }}\n"
        f"P1 @ cta 0 {{ {WAIT.format('try_wait', 'acquire.cta').replace('[b]', '[empty]')}; @p {writer} }}\n"
        "exists (P0:r0 == 7)\n"
    )


def _in_a_cta(name: str, wait: str, form: str, text: str) -> str:
    order = "acquire.cluster" if form == "cluster-acquire" else "acquire.cta"
    if form.startswith("relaxed-wait"):
        order = "relaxed.cta"
    space = "global" if form == "global" else "shared"
    before, condition = f"st.{space}.u32 [s], 1;", SEEN
    if form == "store":
        before, condition = "ld.shared.u32 r0, [s];", "P1:p == 1 /\\ P0:r0 == 1"
    return (
        f"PTX {name}\n{'ISA=8.6' if 'relaxed.cta' in order else ''}\n"
        f"{{ .{space} .u32 s = 0; .shared .b64 b @ cta 0 = mbarrier(1); }}\n"
        f"P0 @ cta 0 {{ {before} mbarrier.arrive.release.cta.shared::cta.b64 _, [b]; }}\n"
        f"P1 @ cta 0 {{ {text.replace('WAIT', WAIT.format(wait, order))} }}\n"
        f"exists ({condition})\n"
    )


def _across_ctas(name: str, text: str, wait: str) -> str:
    start = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [s], 1, [b];"
    return (
        f"PTX {name}\n\n"
        "{ .shared .u32 s @ cta 0, cluster 0 = 0; .shared .b64 b @ cta 0, cluster 0 = mbarrier(0, 4); }\n"
        f"P0 @ cta 1, cluster 0 {{ {start} }}\n"
        f"P1 @ cta 0, cluster 0 {{ {text.replace('WAIT', wait)} }}\n"
        f"exists ({SEEN})\n"
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in family():
        (folder / f"{name}.litmus").write_text(text, encoding="utf-8")
