"""A cycle as a litmus test: the accesses of each thread, the values that make the cycle, and the condition."""

from __future__ import annotations

from itertools import zip_longest

from msgspec import Struct

from ptxmm.generate.cycles.cycle import Cycle, locations_of_objects
from ptxmm.generate.cycles.edges import DEPENDENCIES, KINDS
from ptxmm.generate.cycles.words import described

_NAMES = "xyzwvutsabcdefgh"


def litmus(cycle: Cycle, title: str | None = None, remark: str = "", barriers: bool = True) -> str:
    """The text of the test of a cycle in canonical form. Its condition holds exactly where every edge is what it
    says, as far as values and the last write to each location tell. ``remark``: what is said of it besides. Without
    ``barriers`` no thread waits."""
    test = _Test(cycle, barriers)
    heads = [f"P{t} @ {place}" for t, place in enumerate(placed(cycle))]
    columns = [[head, *lines] for head, lines in zip(heads, test.bodies, strict=True)]
    rows = list(zip_longest(*columns, fillvalue=""))
    widths = [max(map(len, column)) for column in columns]
    body = [" " + " | ".join(f"{c:{w}}" for c, w in zip(row, widths, strict=True)) + " ;" for row in rows]
    head = [f"PTX {title or cycle.name}", f'"{described(cycle, test.names())}{remark and " "}{remark}"']
    memory = ["{", *(f"  {line}" for line in test.memory()), "}"]
    return "\n".join([*head, *memory, *body, f"exists ({test.condition()})", ""])


def values(cycle: Cycle) -> list[int]:
    """What each access reads or writes: the writes of a location count up in the order of the cycle, from where it
    comes to the location, or from the edge that breaks a cycle of one location."""
    edges, n = cycle.edges, len(cycle.edges)
    one_location = all(one.same for one in edges)
    starts = [i for i, e in enumerate(edges) if (not KINDS[e.kind].follows if one_location else not e.same)]
    found = [0] * n
    at = starts[0] + 1
    value = 0
    for i in (k % n for k in range(at, at + n)):
        if not one_location and not edges[i - 1].same:
            value = 0
        value += cycle.directions[i] == "W"
        found[i] = value
    return found


def placed(cycle: Cycle) -> list[str]:
    """The place of each thread as a litmus test has it, with what tells threads apart."""
    ctas = {place: number for number, place in enumerate(dict.fromkeys(cycle.places))}
    clusters = {place[:2]: number for number, place in enumerate(dict.fromkeys(p[:2] for p in cycle.places))}
    gpus = len({place[0] for place in cycle.places}) > 1
    shared = len(clusters) < len(ctas)
    return [
        f"cta {ctas[place]}"
        + (f", cluster {clusters[place[:2]]}" if shared else "")
        + (f", gpu {place[0]}" if gpus else "")
        for place in cycle.places
    ]


class Location(Struct, frozen=True):
    """Where a location is: its variable, and the bytes from the beginning of that."""

    variable: str
    offset: int


class _Test:
    """What is written for the accesses of a cycle. ``bodies``: the lines of each thread."""

    def __init__(self, cycle: Cycle, barriers: bool) -> None:
        self.cycle = cycle
        self.barriers = barriers
        self.values = values(cycle)
        self.objects = locations_of_objects(cycle)
        self.where = self._where()
        self.arrays = {self.objects[self._after(i)] for i, one in enumerate(cycle.edges) if one.via == "addr"}
        self.width = max(self.values).bit_length()
        """No value that the test can make, by a dependency as well, has more bits."""
        self.registers: dict[int, str] = {}
        self.waits: list[str] = []
        self.bodies = [self._body(t) for t in range(len(cycle.threads))]

    def _after(self, i: int) -> int:
        return (i + 1) % len(self.cycle.edges)

    def _where(self) -> dict[int, Location]:
        """Each location of the cycle: those of one variable follow each other."""
        found: dict[int, Location] = {}
        names: dict[int, str] = {}
        for location, variable in zip(self.cycle.locations, self.objects, strict=True):
            name = names.setdefault(variable, _NAMES[len(names)] if len(names) < len(_NAMES) else f"v{len(names)}")
            found[location] = Location(name, 4 if location != variable else 0)
        return found

    # -- memory --

    def _wide(self, variable: int) -> bool:
        return any(at.wide and x == variable for at, x in zip(self.cycle.accesses, self.objects, strict=True))

    def _elements(self, variable: int) -> int:
        """How many elements a variable has: two of a vector, and room for addresses that depend on a value."""
        vector = len({x for x, of in zip(self.cycle.locations, self.objects, strict=True) if of == variable})
        return vector * ((1 << self.width) if variable in self.arrays else 1)

    def memory(self) -> list[str]:
        """The declarations."""
        lines = []
        for variable in dict.fromkeys(self.objects):
            name, count = self.where[variable].variable, self._elements(variable)
            vector = " .align 8" if self._vector(variable) else ""
            kind = ".u64" if self._wide(variable) else ".u32"
            shape = f"{name}[{count}] = {{{', '.join('0' * count)}}}" if count > 1 else f"{name} = 0"
            lines.append(f".global{vector} {kind} {shape};")
        for t, thread in enumerate(self.cycle.threads):
            if self.barriers and self.cycle.edges[thread[-1]].kind == "Mbar":
                waiting = placed(self.cycle)[(t + 1) % len(self.cycle.threads)]
                lines.append(f".shared .b64 b{t} @ {waiting} = mbarrier(1);")
        for variable in dict.fromkeys(self.objects):
            if any(at.alias and x == variable for at, x in zip(self.cycle.accesses, self.objects, strict=True)):
                name = self.where[variable].variable
                lines.append(f"{name}2 @ generic aliases {name};")
        return lines

    def _vector(self, variable: int) -> bool:
        return any(one.kind == "Vec" and self.objects[i] == variable for i, one in enumerate(self.cycle.edges))

    def names(self) -> list[str]:
        """What each access accesses."""
        return [self._term(x) for x in self.cycle.locations]

    # -- threads --

    def _body(self, t: int) -> list[str]:
        threads, edges = self.cycle.threads, self.cycle.edges
        thread = threads[t]
        lines = self._waited(t) if self.barriers else []
        for k, i in enumerate(thread):
            self.registers[i] = f"r{sum(self.cycle.directions[j] == 'R' for j in thread[:k])}"
        k = 0
        while k < len(thread):
            i = thread[k]
            single = edges[i].kind in ("Rmw", "Vec")
            before = edges[thread[k - 1]] if k else None
            lines += self._instruction(i, thread[k - 1] if before and before.via in DEPENDENCIES else None, len(lines))
            k += 2 if single else 1
            last = edges[thread[k - 1]]
            if last.via and last.via not in DEPENDENCIES:
                lines.append("fence.proxy.alias" if last.via == "proxy" else last.via)
        return lines + self._arrived(t) if self.barriers else lines

    def _instruction(self, i: int, source: int | None, tag: int) -> list[str]:
        """The access ``i``, with the one it is one instruction with, after what makes it depend on ``source``."""
        one, at, value = self.cycle.edges[i], self.cycle.accesses[i], str(self.values[i])
        where = self.where[self.cycle.locations[i]]
        if one.kind == "Vec":
            where = min((where, self.where[self.cycle.locations[self._after(i)]]), key=lambda w: w.offset)
        name = where.variable + ("2" if at.alias else "")
        address = f"{name}+{where.offset}" if where.offset else name
        lines: list[str] = []
        guard = ""
        if source is not None:
            via = self.cycle.edges[source].via
            if via == "addr":
                lines, address = self._address(source, i, name, where.offset, tag)
            elif via == "data":
                lines, value = self._data(source, i, tag)
            else:
                lines = [f"setp.eq.{self._type(source, 'u')} p{tag}, {self.registers[source]}, {self.values[source]}"]
                guard = f"@p{tag} "
        return [*lines, guard + self._access(i, address, value)]

    def _access(self, i: int, address: str, value: str) -> str:
        one, at = self.cycle.edges[i], self.cycle.accesses[i]
        order = f"{at.order}.{at.scope}" if at.scope else at.order
        if one.kind == "Rmw":
            new = self.values[self._after(i)]
            return f"atom.{one.via}.global.exch.b{self._bits(i)} {self.registers[i]}, [{address}], {new}"
        if one.kind == "Vec":
            ends = sorted((i, self._after(i)), key=lambda j: self.where[self.cycle.locations[j]].offset)
            if self.cycle.directions[i] == "W":
                return f"st.{order}.global.v2.u32 [{address}], {{{', '.join(str(self.values[j]) for j in ends)}}}"
            return f"ld.{order}.global.v2.u32 {{{', '.join(self.registers[j] for j in ends)}}}, [{address}]"
        kind = self._type(i, "u")
        if self.cycle.directions[i] == "W":
            return f"st.{order}.global.{kind} [{address}], {value}"
        return f"ld.{order}.global.{kind} {self.registers[i]}, [{address}]"

    def _bits(self, i: int) -> int:
        return 64 if self.cycle.accesses[i].wide else 32

    def _type(self, i: int, letter: str) -> str:
        return f"{letter}{self._bits(i)}"

    def _address(self, source: int, i: int, name: str, offset: int, tag: int) -> tuple[list[str], str]:
        """An address that is that of the access iff ``source`` reads its value; of another element of the variable,
        otherwise."""
        index, base = f"a{tag}", f"c{tag}"
        read = self.registers[source]
        stride = 8 if self._wide(self.objects[i]) or self._vector(self.objects[i]) else 4
        lines = [f"mov.u64 {index}, {read}" if self._bits(source) == 64 else f"cvt.u64.u32 {index}, {read}"]
        if self.values[source]:
            lines.append(f"xor.b64 {index}, {index}, {self.values[source]}")
        lines.append(f"shl.b64 {index}, {index}, {stride.bit_length() - 1}")
        lines += [f"mov.u64 {base}, {name}", f"add.u64 {base}, {base}, {index}"]
        return lines, f"{base}+{offset}" if offset else base

    def _data(self, source: int, i: int, tag: int) -> tuple[list[str], str]:
        """A value that is the one to be written iff ``source`` reads its value."""
        read, change, made = self.registers[source], self.values[source] ^ self.values[i], f"d{tag}"
        lines: list[str] = []
        if self._bits(source) != self._bits(i):
            lines.append(f"cvt.{self._type(i, 'u')}.{self._type(source, 'u')} {made}, {read}")
            read = made
        if change:
            lines.append(f"xor.b{self._bits(i)} {made}, {read}, {change}")
            read = made
        return lines, read

    def _waited(self, t: int) -> list[str]:
        """How a thread begins, after the one before it in the cycle."""
        before = t - 1 if t else len(self.cycle.threads) - 1
        match self.cycle.edges[self.cycle.threads[before][-1]].kind:
            case "Bar":
                return ["bar.sync 0"]
            case "Cluster":
                return ["barrier.cluster.arrive", "barrier.cluster.wait"]
            case "Mbar":
                self.waits.append(f"P{t}:p == 1")
                scope = self._scope(before)
                return [f"mbarrier.try_wait.parity.acquire.{scope}.shared::cta.b64 p, [b{before}], 0"]
        return []

    def _arrived(self, t: int) -> list[str]:
        """How a thread ends, before the next one in the cycle."""
        match self.cycle.edges[self.cycle.threads[t][-1]].kind:
            case "Bar":
                return ["bar.sync 0"]
            case "Cluster":
                return ["barrier.cluster.arrive", "barrier.cluster.wait"]
            case "Mbar":
                scope = self._scope(t)
                return [f"mbarrier.arrive.release.{scope}.shared::{scope}.b64 _, [b{t}]"]
        return []

    def _scope(self, t: int) -> str:
        places = self.cycle.places
        return "cta" if places[t] == places[(t + 1) % len(places)] else "cluster"

    # -- the condition --

    def condition(self) -> str:
        """Every read has its value, every wait is over, and the last write to a location with several is the last."""
        threads = {i: t for t, thread in enumerate(self.cycle.threads) for i in thread}
        reads = [
            f"P{threads[i]}:{self.registers[i]} == {self.values[i]}"
            for i, direction in enumerate(self.cycle.directions)
            if direction == "R"
        ]
        writes: dict[int, list[int]] = {}
        for i, location in enumerate(self.cycle.locations):
            if self.cycle.directions[i] == "W":
                writes.setdefault(location, []).append(self.values[i])
        last = [f"{self._term(x)} == {max(found)}" for x, found in sorted(writes.items()) if len(found) > 1]
        return " /\\ ".join([*self.waits, *reads, *last])

    def _term(self, location: int) -> str:
        where = self.where[location]
        variable = next(v for x, v in zip(self.cycle.locations, self.objects, strict=True) if x == location)
        return f"{where.variable}[{where.offset // 4}]" if self._elements(variable) > 1 else where.variable
