"""Instructions and forms that are known without a row (9.7): said to be not supported, and not taken for slips of the
pen."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ptxmm.ptx.tables.form import SM100, Version, words

# Of an opcode with rows: its other forms.
INSTRUCTIONS = frozenset(
    words("""
    alloca brkpt brx call clusterlaunchcontrol istypep movmatrix pmevent stackrestore
    stacksave suld suq sured sust tcgen05 tex tld4 trap txq vabsdiff vabsdiff2 vabsdiff4 vadd
    vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vset vset2 vset4 vshl vshr vsub vsub2 vsub4""")
)
# The versions of those that are later than PTX ISA 8.5.
LATER_INSTRUCTIONS: Mapping[str, Version] = MappingProxyType({"tcgen05": SM100, "clusterlaunchcontrol": SM100})
# Of the others, the ones with something to say: opcode -> (what it is, hint).
NOT_YET: Mapping[str, tuple[str, str | None]] = MappingProxyType(
    {
        "tcgen05": ("not supported yet", "tensor memory is declared instead of allocated: `.tmem .b32 t[4] @ cta 0;`"),
    }
)  # fmt: skip

Entry = tuple[str, tuple[str, ...], tuple[int, int]]


def _entries(opcode: str, first: str, names: str, version: tuple[int, int]) -> list[Entry]:
    return [(opcode, (*words(first), name), version) for name in words(names)]


# Forms of PTX ISA 9.0 and later: (first word of the opcode, qualifiers that are all there, version). A qualifier stands
# for `name::...` too.
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
