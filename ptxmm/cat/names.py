"""The vocabulary of models: the base sets and relations that the events of an execution supply."""

from __future__ import annotations

UNIVERSE = frozenset(("_", "E"))
"""Names of the set of all events."""

EMPTY_SETS = frozenset(("emptyset",))

EMPTY_RELATIONS = frozenset(("0",))

SETS = frozenset(
    (
        "R", "W", "M", "IW", "F", "FSC", "FAR", "PF", "AF", "BA", "BW", "B", "STRONG", "REL", "ACQ", "NORET", "AMO",
        "GEN", "SUR", "TEX", "CON", "ASY", "TMP", "RLX", "ACQ_REL", "SC", "WEAK", "VOL", "MMIO", "ALIAS", "CTA",
        "CLUSTER", "GPU", "SYS", "HOST", "CA", "CW", "MBA", "MBW", "MBI", "MBX", "FMBI", "TMREL", "TMACQ", "ISS",
        "FA", "FL", "FRR", "FRA", "ASREL", "ASACQ", "TEN", "TCC", "TCM", "TCB", "TCA",
        "TCX", "STA", "AW", "API", "PFR", "EX",
    )
)
"""Base sets: kinds of events, orders, scopes, proxies."""

RELATIONS = frozenset(
    (
        "po", "rf", "co", "fr", "fsc", "rmw", "addr", "data", "ctrl", "inscope", "scta", "loc", "ovl", "vloc", "vovl",
        "barphase", "warpphase", "cluphase", "mbphase", "exitphase", "mbnext", "mbcount", "mbobj", "mblate", "mbpassed",
        "issue", "issue-all", "aord", "acomp", "tmcov", "rcov", "lives", "api", "api-indirect", "trigger", "pfence",
        "int", "ext", "po-loc", "syncbar", "sync_barrier", "sr", "sync_fence",
    )
)
"""Base relations. The identity ``id`` is built in."""
