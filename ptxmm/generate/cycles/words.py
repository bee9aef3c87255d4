"""What the test of a cycle is, in words."""

from __future__ import annotations

from ptxmm.generate.cycles.cycle import Cycle, distance, named, place_name
from ptxmm.generate.cycles.edges import LEVELS, Access

_FAR = {
    "cta": "in one CTA",
    "cluster": "in different CTAs of one cluster",
    "gpu": "in different CTAs of one GPU, not in one cluster",
    "sys": "on different GPUs",
}
_VIA = {
    "addr": "at an address that depends on what it read",
    "ctrl": "only if it read that value",
    "data": "with a value that depends on what it read",
    "proxy": "after fence.proxy.alias",
}
_OUT = {
    "Rfe": "{u} reads from this write",
    "Fre": "the write of {u} is later than the one read from",
    "Coe": "the write of {u} is later in coherence order",
    "Bar": "bar.sync lets {u} go on",
    "Cluster": "barrier.cluster lets {u} go on",
    "Mbar": "an arrival on an mbarrier ends the wait of {u}",
}


def described(cycle: Cycle, names: list[str]) -> str:
    """One paragraph: where the threads are, what each does, and what the condition asks for. ``names``: of the
    location of each access."""
    usual = named(cycle)
    parts = [f"{'A test' if usual is None else usual} of {len(cycle.threads)} threads {_places(cycle)}."]
    parts += [_thread(cycle, t, names) for t in range(len(cycle.threads))]
    whole = ", vector accesses being made in one piece" if any(one.kind == "Vec" for one in cycle.edges) else ""
    parts.append(f"The condition asks for all of this, a cycle that no sequentially consistent execution has{whole}.")
    return " ".join(parts)


def _places(cycle: Cycle) -> str:
    where = place_name(cycle.places)
    if where in LEVELS:
        return _FAR[where]
    n = len(cycle.places)
    pairs = [f"P{t} and P{(t + 1) % n} {_FAR[distance(cycle.places[t], cycle.places[(t + 1) % n])]}" for t in range(n)]
    return f"({', '.join(pairs)})"


def _thread(cycle: Cycle, t: int, names: list[str]) -> str:
    threads = cycle.threads
    done: list[str] = []
    for k, i in enumerate(threads[t]):
        one = cycle.edges[i - 1] if k else None
        what = "reads" if cycle.directions[i] == "R" else "writes"
        text = f"{what} {names[i]}{_access(cycle.accesses[i])}"
        if one is not None and one.kind == "Rmw":
            text = f"writes it in the same atomic operation ({one.via})"
        elif one is not None and one.kind == "Vec":
            text = f"{what} {names[i]} with the same instruction"
        elif one is not None and one.via:
            text += f" {_VIA.get(one.via, f'after {one.via}')}"
        done.append(text)
    out = _OUT[cycle.edges[threads[t][-1]].kind].format(u=f"P{(t + 1) % len(threads)}")
    return f"P{t} {', then '.join(done)}; {out}."


def _access(at: Access) -> str:
    words = [f"{at.order}.{at.scope}" if at.scope else at.order if at.order != "weak" else ""]
    words += ["by its second address" if at.alias else "", "as 64 bits" if at.wide else ""]
    said = ", ".join(word for word in words if word)
    return f" ({said})" if said else ""
