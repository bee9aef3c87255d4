"""Forms of PTX ISA 9.0 and later, none of which is supported: said to be so, and not taken for slips of the pen."""

from __future__ import annotations

from ptxmm.ptx.tables.form import words

Entry = tuple[str, tuple[str, ...], tuple[int, int]]


def _entries(opcode: str, first: str, names: str, version: tuple[int, int]) -> list[Entry]:
    return [(opcode, (*words(first), name), version) for name in words(names)]


# (first word of the opcode, qualifiers that are all there, version). A qualifier stands for `name::...` too.
LATER_FORMS: tuple[Entry, ...] = (
    ("ld", ("volatile", "local"), (9, 1)),
    ("st", ("volatile", "local"), (9, 1)),
    ("ld", ("mmio", "acquire"), (9, 3)),
    ("ld", ("proxy::readonly",), (9, 4)),
    ("st", ("async", "b128"), (9, 2)),
    *_entries("cp", "async bulk", "ignore_oob", (9, 2)),
    *_entries("cp", "async bulk", "weak relaxed b128", (9, 3)),
    *_entries("cp", "reduce async bulk", "relaxed", (9, 3)),
    *_entries("cp", "async bulk", "override report_mechanism multicast::cluster::32b", (9, 4)),
    *_entries("cp", "reduce async bulk", "override report_mechanism", (9, 4)),
    ("multimem", ("cp",), (9, 1)),
    ("multimem", ("async",), (9, 3)),
    *_entries("mbarrier", "", "layout phase_type reportPredicate reportValue check_layout", (9, 3)),
    *_entries("mbarrier", "", "multicast", (9, 4)),
    *_entries("fence", "proxy", "generic::fabric fabric", (9, 3)),
    *_entries("fence", "proxy alias", "acquire release", (9, 4)),
    ("fence", ("proxy", "sync_restrict::shared::cluster::read"), (9, 4)),
    ("applypriority", ("async",), (9, 4)),
    *_entries("tcgen05", "commit", "sync_restrict::shared::read multicast::cluster::32b", (9, 4)),
    ("fabric", ("try_atom",), (9, 4)),
    ("fabric", (), (9, 3)),
)
