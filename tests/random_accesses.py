"""Random programs: addresses of every state space, in every form, passed on through memory and used by any instruction.

About half of them access in some execution what they may not; then the engines have to agree that they do.
"""

from __future__ import annotations

import random

from tests.random_families import Kit, program
from tests.random_programs import Line, Program

_PLACES = ("cta 0, cluster 0", "cta 1, cluster 0", "cta 1, cluster 0", "cta 0, cluster 0", "cta 1, cluster 1")
_SPACES = {"s": "shared", "t": "shared", "l": "local", "c": "const", "k": "param", "x": "global"}
_READS = ("ld.u32", "ld.u32", "ld.volatile.u32", "ld.relaxed.cluster.u32")
_WRITES = ("st.u32", "st.relaxed.gpu.u32", "red.relaxed.gpu.add.u32")
_WINDOWS = ("shared", "shared::cta", "shared::cluster", "global", "local", "const")


def accesses(rng: random.Random) -> Program:
    """A thread that makes an address and gives it to another one, or follows it by itself."""
    kit = Kit(rng)
    name = kit.pick("ssssttlckxx")
    declarations = [
        ".shared .u32 s @ cta 0, cluster 0 = 7;",
        ".shared .u32 t = 3;",
        ".local .u32 l = 5;",
        ".const .u32 c = 6;",
        ".param .u32 k = 4;",
        ".global .u32 x = 0;",
        ".global .u64 p = 0;",
        ".global .u32 f = 0;",
    ]
    form = _make(kit, name)
    if kit.chance(0.4):
        _use(kit, "d1", name, form, "")
    kit.add("st", ".global.u64 [p], d1")
    kit.publish("f", "gpu")
    giver = _named(kit, kit.take(), "l" if name != "l" else "t")
    label = kit.subscribe("f", "gpu", guarded=True)
    kit.add("ld", ".global.u64 d2, [p]", "weak")
    if kit.chance(0.07):
        name_of = kit.pick(("cvta.shared", "cvta.to.shared", "cvta.local"))
        kit.add(name_of, ".u64 d2, d2")
    _use(kit, "d2", name, form, "")
    kit.label(label)
    taker = _named(kit, kit.take(), "t")
    place = kit.pick(_PLACES[1:])
    return program(declarations, [(_PLACES[0], giver), (place, taker)], "f == 1")


def _make(kit: Kit, name: str) -> str:
    """Put an address of ``name`` in ``d1``; which form it has."""
    space = _SPACES[name]
    form = kit.pick(("window", "generic", "generic", "mapped" if space == "shared" else "generic"))
    if form == "mapped":
        kit.add("mapa.shared::cluster", f".u64 d1, {name}, {kit.pick((0, 0, 1))}")
        if kit.chance(0.5):
            kit.add("cvta.shared::cluster", ".u64 d1, d1")
            form = "generic"
    elif form == "generic":
        kit.add(f"cvta.{space}", f".u64 d1, {name}")
    else:
        kit.add("mov", f".u64 d1, {name}")
    return form


def _use(kit: Kit, register: str, name: str, form: str, guard: str) -> None:
    """An access at an address; in most cases one that takes addresses of its form."""
    space = _SPACES[name]
    wanted = "" if form == "generic" else ".shared::cluster" if form == "mapped" else f".{space}"
    if kit.chance(0.07):
        wanted = "." + kit.pick(_WINDOWS)
    if kit.chance(0.05):
        wanted = ""
    if kit.chance(0.6):
        head, _, tail = kit.pick(_READS).rpartition(".")
        if wanted in (".local", ".const", ".param"):
            head = "ld"
        kit.add(head, f"{wanted}.{tail} {kit.fresh()}, [{register}]")
        return
    head, _, tail = kit.pick(_WRITES).rpartition(".")
    if wanted in (".local", ".const", ".param"):
        head, wanted = "st", ".local" if wanted == ".local" else ""
    kit.add(head, f"{wanted}.{tail} [{register}], 1")


def _named(kit: Kit, lines: tuple[Line, ...], name: str) -> tuple[Line, ...]:
    """``lines`` after an access to a variable of the thread or of its CTA, so that it has one."""
    kit.load("u32", name, space=f".{_SPACES[name]}")
    return (*kit.take(), *lines)
