"""The readings of the text that the events of an execution follow; a model's own text follows the others."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Readings(Struct, frozen=True):
    """``simplify``: not dep=syn, false dependencies are broken (A21). ``essential``: dep=value, and so are those on
    values that make no difference (A55). ``tear``: tear=on, a racy read may mix the bytes of several writes (A11).
    ``split``: b128=split (A13). ``failing_writes``: cas-failure=write, a compare-and-swap that fails writes the old
    value (A14). ``transitive``: co=transitive, coherence order is closed (A5). ``whole``: vector=whole, what ld and st
    access of a vector is one access (A57). ``next_grid``: griddep=direct, ``griddepcontrol.wait`` waits for the grid
    before its own only (A50). ``copies``: wgmma-mov=free, copies of registers of products are no accesses (A63).
    ``told``: loads come after the stores of barrier phases before them (8.10.6)."""

    simplify: bool = True
    tear: bool = False
    split: bool = False
    failing_writes: bool = False
    transitive: bool = True
    essential: bool = False
    whole: bool = False
    next_grid: bool = True
    copies: bool = False
    told: bool = False


def readings(given: Mapping[str, str], told: bool = False) -> Readings:
    """The event-level readings among those of a model, and what else it says."""
    return Readings(
        given.get("dep") != "syn",
        given.get("tear", "off") == "on",
        given.get("b128", "scalar") == "split",
        given.get("cas-failure", "none") == "write",
        given.get("co", "transitive") == "transitive",
        given.get("dep") == "value",
        given.get("vector", "elements") == "whole",
        given.get("griddep", "direct") == "direct",
        given.get("wgmma-mov", "access") == "free",
        told,
    )
