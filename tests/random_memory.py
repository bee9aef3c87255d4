"""Random programs: vectors, accesses of mixed sizes, cluster barriers, warp barriers, grids."""

from __future__ import annotations

import random

from msgspec.structs import replace

from tests.random_families import Kit, program
from tests.random_programs import Program

WEAK = ("weak", "weak", "relaxed")
LOADS = ("weak", "relaxed", "acquire")
STORES = ("weak", "relaxed", "release")
SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}


def few_bytes(kit: Kit, size: int, most: int = 2) -> int:
    """A value of which one or two bytes are not zero (each byte of a racy read may come from another write)."""
    value = 0
    for _ in range(kit.pick((1, 1, most))):
        value |= kit.pick((1, 2, 3)) << 8 * kit.rng.randrange(size)
    return value


# ---- vectors ---------------------------------------------------------------------------------------------------------


def vectors(rng: random.Random) -> Program:
    """Vector loads, stores and atomic operations of one array, its elements one by one, and a flag."""
    kit = Kit(rng)
    kind, count = kit.pick((("u32", 2), ("u32", 2), ("u32", 4), ("u16", 2), ("u64", 2), ("u8", 4)))
    size = SIZES[kind]
    ctas = kit.pick(((0, 1), (0, 1), (0, 0), (0, 1, 2)))
    scopes = ("cta", "gpu", "gpu", "sys")
    atoms = kit.chance(0.25)
    kind_of_atoms = kit.pick(("v2.f32", "v4.f32", "v2.f16", "f16x2", "b128"))
    if atoms:
        ctas = ctas[:2]
        if kind_of_atoms == "v4.f32":  # what each of four elements may become without order multiplies
            scopes = ("gpu", "gpu", "gpu", "sys")
        kind, count = {"v2.f32": ("u32", 2), "v4.f32": ("u32", 4), "v2.f16": ("u16", 2), "f16x2": ("u16", 2)}.get(
            kind_of_atoms, ("u64", 2)
        )
        size = SIZES[kind]
    flagged = kit.chance(0.4)
    declared = [f".global .align 16 .{kind} x[{count}] = {{{', '.join(['0'] * count)}}};"]
    if flagged:
        declared.append(".global .u32 f = 0;")
    # with many elements, one vector access each is enough
    most = 2 if count == 2 and len(ctas) == 2 else 1

    def vector(write: bool) -> None:
        sem = kit.pick(STORES if write else LOADS)
        scope = None if sem == "weak" else kit.pick(scopes)
        width = 2 if count == 2 or kit.chance(0.3) else count
        at = "x" if width == count else kit.pick(("x", f"x+{2 * size}"))
        if write:
            same = kit.pick((1, 2))
            values = ", ".join(str(same if kit.chance(0.7) else kit.pick((0, 1, 2, 3))) for _ in range(width))
            kit.add("st", f".global.v{width}.{kind} [{at}], {{{values}}}", sem, scope)
        else:
            registers = [kit.fresh() for _ in range(width)]
            kit.add("ld", f".global.v{width}.{kind} {{{', '.join(registers)}}}, [{at}]", sem, scope)

    def scalar(write: bool) -> None:
        at = f"x+{size * rng.randrange(count)}"
        sem = kit.pick(STORES if write else LOADS)
        if write:
            kit.store(kind, at, kit.pick((1, 2, 3)), sem, kit.pick(scopes), ".global")
        elif kind in ("u32", "u64") and kit.chance(0.15):
            kit.add("atom", f".global.exch.b{8 * size} {kit.fresh()}, [{at}], {kit.pick((1, 2))}", "relaxed", "gpu")
        else:
            kit.load(kind, at, sem, kit.pick(scopes), ".global")

    def atomic() -> None:
        sem, scope = kit.pick(("relaxed", "relaxed", "acq_rel", "release")), kit.pick(scopes)
        if kind_of_atoms == "b128":
            a, q, old = kit.fresh("d"), kit.fresh("q"), kit.fresh("q")
            kit.add("mov", f".b64 {a}, {kit.pick((1, 2))}")
            kit.add("mov", f".b128 {q}, {{{a}, {a}}}")
            kit.add("atom", f".global.exch.b128 {old}, [x], {q}", sem, scope)
            lo, hi = kit.fresh("d"), kit.fresh("d")
            kit.add("mov", f".b128 {{{lo}, {hi}}}, {old}")
            return
        # 1.0, 2.0, 0.5, -1.0
        if kind_of_atoms in ("v2.f32", "v4.f32"):
            width = int(kind_of_atoms[1])
            sources = [kit.fresh("t") for _ in range(width)]
            for source in sources:
                kit.add("mov", f".b32 {source}, {kit.pick(('0x3f800000', '0x40000000', '0xbf800000', '0x3f000000'))}")
            results = ", ".join(kit.fresh() for _ in range(width))
            kit.add("atom", f".global.add.{kind_of_atoms} {{{results}}}, [x], {{{', '.join(sources)}}}", sem, scope)
        elif kind_of_atoms == "v2.f16":
            sources = [kit.fresh("t") for _ in range(2)]
            for source in sources:
                kit.add("mov", f".b16 {source}, {kit.pick(('0x3c00', '0x4000', '0xbc00'))}")
            op = kit.pick(("add", "add", "max", "min"))
            results = ", ".join(kit.fresh() for _ in range(2))
            kit.add("atom", f".global.{op}.noftz.v2.f16 {{{results}}}, [x], {{{', '.join(sources)}}}", sem, scope)
        else:
            source = kit.fresh("t")
            kit.add("mov", f".b32 {source}, {kit.pick(('0x3c003c00', '0x40003c00', '0xbc004000'))}")
            if kit.chance(0.3):
                kit.add("red", f".global.add.noftz.f16x2 [x], {source}", sem if sem != "acq_rel" else "release", scope)
            else:
                kit.add("atom", f".global.add.noftz.f16x2 {kit.fresh()}, [x], {source}", sem, scope)

    def thread(index: int) -> None:
        write = index == 0 if kit.chance(0.8) else kit.chance(0.5)
        if atoms and kit.chance(0.75):
            atomic()
            if kit.chance(0.3):
                (scalar if kit.chance(0.6) else vector)(False)
            return
        order = ["vector", *["scalar"] * rng.randrange(2)]
        rng.shuffle(order)
        if not write and most == 2 and kit.chance(0.4):
            order = ["scalar", "scalar"]
        if flagged and not write:
            kit.subscribe("f", kit.pick(("cta", "gpu", "gpu")))
        for k, what in enumerate(order[:most]):
            (vector if what == "vector" else scalar)(write if kit.chance(0.75) or k == 0 else not write)
            if kit.chance(0.1):
                kit.fence(scopes)
        if flagged and write:
            kit.publish("f", kit.pick(("cta", "gpu", "gpu")))

    threads = []
    for i, cta in enumerate(ctas):
        thread(i)
        threads.append((f"cta {cta}", kit.take()))
    return program(declared, threads, "x[0] == 1")


# ---- mixed sizes -----------------------------------------------------------------------------------------------------


def mixed_sizes(rng: random.Random) -> Program:
    """Accesses of all sizes to one object of 4 or 8 bytes, ordered in some programs by a flag or a barrier."""
    kit = Kit(rng)
    whole = kit.pick(("u32", "u32", "u64"))
    total = SIZES[whole]
    bytes_ = 2 if total == 4 else 1
    kinds = [k for k, n in SIZES.items() if n <= total]
    shared = kit.chance(0.3)
    space = ".shared" if shared else ".global"
    ctas: tuple[int, ...] = (0, 0) if shared else kit.pick(((0, 1), (0, 0), (0, 1)))
    if kit.chance(0.15):
        ctas = (*ctas, 0 if shared else 2)
    scopes = ("cta", "gpu", "gpu")
    declared = [f"{space} .{whole} x = {few_bytes(kit, total, bytes_) if kit.chance(0.3) else 0};"]
    order = kit.pick(("none", "none", "flag", "flag", "barrier" if len(set(ctas)) == 1 else "flag"))
    if order == "flag":
        declared.append(f"{space} .u32 f = 0;")
    favourite = rng.sample(kinds, 2)
    atomics = kit.chance(0.2)

    def place(kind: str) -> str:
        offset = SIZES[kind] * rng.randrange(total // SIZES[kind])
        return f"x+{offset}" if offset else "x"

    def access(write: bool) -> None:
        kind = kit.pick(favourite) if kit.chance(0.8) else kit.pick(kinds)
        roll = rng.random()
        if roll < (0.7 if atomics else 0.1):
            kind = "u64" if total == 8 and kit.chance(0.5) else "u32"
            op = kit.pick(("add", "add", "exch", "or", "cas", "cas"))
            bits = f"b{8 * SIZES[kind]}"
            value = few_bytes(kit, SIZES[kind], bytes_)
            scope = kit.pick(scopes)
            if op == "cas":
                if kit.chance(0.5):
                    kind, bits, value = "u16", "b16", few_bytes(kit, 2, bytes_)
                kit.add("atom", f"{space}.cas.{bits} {kit.fresh()}, [{place(kind)}], 0, {value}", "relaxed", scope)
            else:
                suffix = kind if op == "add" else bits
                sem = kit.pick(("relaxed", "relaxed", "acq_rel"))
                kit.add("atom", f"{space}.{op}.{suffix} {kit.fresh()}, [{place(kind)}], {value}", sem, scope)
        elif roll > 0.9 and total == 8:
            kind, width = kit.pick((("u32", 2), ("u16", 2), ("u16", 4)))
            at = "x" if width * SIZES[kind] == 8 else kit.pick(("x", "x+4"))
            if write:
                values = ", ".join(str(few_bytes(kit, SIZES[kind], bytes_)) for _ in range(width))
                kit.add("st", f"{space}.v{width}.{kind} [{at}], {{{values}}}", "weak")
            else:
                registers = ", ".join(kit.fresh() for _ in range(width))
                kit.add("ld", f"{space}.v{width}.{kind} {{{registers}}}, [{at}]", "weak")
        elif write:
            kit.store(kind, place(kind), few_bytes(kit, SIZES[kind], bytes_), kit.pick(WEAK), kit.pick(scopes), space)
        else:
            kit.load(kind, place(kind), kit.pick(WEAK), kit.pick(scopes), space)

    threads = []
    for i, cta in enumerate(ctas):
        write = i == 0 or (i == 2 and kit.chance(0.5))
        if order == "flag" and not write:
            label = kit.subscribe("f", kit.pick(scopes), space, guarded=kit.chance(0.4))
        else:
            label = None
        accesses = 1 + (rng.randrange(2) if write or (len(ctas) == 2 and total == 4) else 0)
        barrier = rng.randrange(accesses + 1) if order == "barrier" else None
        for k in range(accesses):
            if k == barrier:
                kit.add("bar.sync", " 0")
            access(write if kit.chance(0.8) else not write)
        if barrier == accesses:
            kit.add("bar.sync", " 0")
        if order == "flag" and write:
            kit.publish("f", kit.pick(scopes), space)
        kit.label(label)
        threads.append((f"cta {cta}", kit.take()))
    return program(declared, threads, "x == 1")


# ---- clusters --------------------------------------------------------------------------------------------------------


def cluster(rng: random.Random) -> Program:
    """Cluster barriers with and without release, fences, shared memory of other CTAs, mapped addresses."""
    kit = Kit(rng)
    ctas = kit.pick(((0, 1), (0, 1), (0, 0), (0, 1, 1), (0, 1, 2), (0, 0, 1)))
    clusters = [0] * len(ctas)
    if kit.chance(0.12):
        clusters[-1] = 1
    names = ["x", "y"][: kit.pick((1, 2, 2))]
    owners = {n: rng.choice(ctas[:1] + ctas[1:2]) if kit.chance(0.5) and not any(clusters) else None for n in names}
    declared = [
        f".global .u32 {n} = 0;" if owner is None else f".shared .u32 {n} @ cta {owner}, cluster 0 = 0;"
        for n, owner in owners.items()
    ]
    scopes = ("cta", "cluster", "cluster", "gpu")
    rounds = kit.pick((1, 1, 1, 2, 0))

    def space(name: str, cta: int) -> str:
        owner = owners[name]
        if owner is None:
            return kit.pick((".global", ".global", ""))
        return kit.pick((".shared::cluster", ".shared::cta", "")) if owner == cta else ".shared::cluster"

    def address(name: str) -> str:
        owner = owners[name]
        if owner is None or kit.chance(0.8):
            return name
        d = kit.fresh("d")
        kit.add("mapa", f".shared::cluster.u64 {d}, {name}, {owner}")
        return d

    def access(cta: int, write: bool) -> None:
        name = kit.pick(names)
        where = space(name, cta)
        at = address(name)
        if at != name:
            where = ".shared::cluster"
        if kit.chance(0.12):
            kit.add("atom", f"{where}.add.u32 {kit.fresh()}, [{at}], 1", "relaxed", kit.pick(scopes))
        elif write:
            kit.store(
                "u32", at, kit.pick((1, 2)), kit.pick(("weak", "weak", "relaxed", "release")), kit.pick(scopes), where
            )
        else:
            kit.load("u32", at, kit.pick(("weak", "weak", "relaxed", "acquire")), kit.pick(scopes), where)

    def barrier(cta: int) -> None:
        if kit.chance(0.3):
            kit.fence(scopes)
        kit.add("barrier.cluster.arrive", "", kit.pick(("release", "relaxed", None)))
        if kit.chance(0.2):
            access(cta, kit.chance(0.5))
        if not kit.chance(0.04):
            kit.add("barrier.cluster.wait", "", kit.pick(("acquire", None)))
            if kit.chance(0.15):
                kit.fence(scopes)

    threads = []
    for i, cta in enumerate(ctas):
        write = i == 0 or kit.chance(0.3)
        for k in range(rounds + 1):
            if len(ctas) == 2 or k == (0 if write else rounds) or kit.chance(0.3):
                access(cta, write if kit.chance(0.85) else not write)
            if k < rounds and not kit.chance(0.03):
                barrier(cta)
        if not rounds:
            kit.fence(scopes)
            access(cta, not write)
        threads.append((f"cta {cta}, cluster {clusters[i]}", kit.take()))
    return program(declared, threads, f"{names[0]} == 1")


# ---- warps -----------------------------------------------------------------------------------------------------------


def warps(rng: random.Random) -> Program:
    """Warp barriers of one or two warps with several masks, beside barriers of the CTA."""
    kit = Kit(rng)
    placed = kit.pick(
        (["warp 0, cta 0"] * 2, ["warp 0, cta 0"] * 3, ["warp 0, cta 0", "warp 0, cta 0", "warp 1, cta 0"],
         ["warp 0, cta 0", "warp 0, cta 0", "cta 1"], ["warp 0, cta 0", "cta 0", "warp 0, cta 0"])
    )  # fmt: skip
    names = ["x", "y"][: kit.pick((1, 2, 2))]
    shared = all(p.endswith("cta 0") for p in placed) and kit.chance(0.5)
    where = ".shared" if shared else ".global"
    declared = [f"{where} .u32 {n}{' @ cta 0' if shared else ''} = 0;" for n in names]
    masks = kit.pick((("0xffffffff",), ("0xffffffff",), ("0x3",), ("0x7", "0x3"), ("0x3", "0x5", "0xffffffff")))
    rounds = kit.pick((1, 1, 2))
    cta_barrier = kit.chance(0.2)

    def access(write: bool) -> None:
        name = kit.pick(names)
        scope = kit.pick(("cta", "cta", "gpu"))
        if kit.chance(0.1):
            kit.add("atom", f"{where}.add.u32 {kit.fresh()}, [{name}], 1", kit.pick(("relaxed", "acq_rel")), scope)
        elif write:
            kit.store("u32", name, kit.pick((1, 2)), kit.pick(("weak", "weak", "relaxed", "release")), scope, where)
        else:
            kit.load("u32", name, kit.pick(("weak", "weak", "relaxed", "acquire")), scope, where)

    threads = []
    for i, place in enumerate(placed):
        write = i == 0 or kit.chance(0.3)
        for k in range(rounds + 1):
            if len(placed) == 2 or k == (0 if write else rounds) or kit.chance(0.3):
                access(write if kit.chance(0.85) else not write)
            if k < rounds and not kit.chance(0.03):
                if cta_barrier and kit.chance(0.5):
                    kit.add("bar.sync", " 0")
                elif "warp" in place or kit.chance(0.3):
                    kit.add("bar.warp.sync", f" {kit.pick(masks) if 'warp' in place else '0xffffffff'}")
        threads.append((place, kit.take()))
    return program(declared, threads, f"{names[0]} == 1")


# ---- grids -----------------------------------------------------------------------------------------------------------


def grids(rng: random.Random) -> Program:
    """Grids one after the other or overlapping, of one or two GPUs, with the waits of programmatic launches; some in
    PTX 9.2, with fences before ``launch_dependents``."""
    kit = Kit(rng)
    triggers = kit.chance(0.3)
    count = kit.pick((2, 2, 3))
    names = ["x", "y"][: kit.pick((1, 2))]
    aliased = kit.chance(0.2)
    declared = [f".global .u32 {n} = 0;" for n in names] + (["s @ generic aliases x;"] if aliased else [])
    copied = kit.chance(0.2)
    if copied:
        declared += [
            ".global .align 16 .u64 g[2] = {0, 0};",
            ".shared .align 16 .u64 z[2] @ grid 0, cta 0 = {1, 2};",
        ]
    overlap = [kit.chance(0.5) for _ in range(4)]
    threads = []
    for i in range(count):
        grid = i if kit.chance(0.8) else max(0, i - 1)
        gpu = 1 if kit.chance(0.06) else 0
        late = grid > 0 and overlap[grid]
        wait = rng.randrange(3) if late and kit.chance(0.8) else None
        write = i == 0 or kit.chance(0.3)
        copies = copied and i == 0
        if copies and grid == 0 and gpu == 0:
            kit.add("cp.async.bulk.global.shared::cta.bulk_group", " [g], [z], 16")
            kit.add("cp.async.bulk.commit_group")
            if kit.chance(0.3):
                kit.add("cp.async.bulk.wait_group", " 0")
        for k in range(2):
            if wait == k:
                kit.add("griddepcontrol.wait")
            if copied and not copies and k == 1 and kit.chance(0.7):
                kit.load("u64", kit.pick(("g", "g+8")), space=".global")
            elif k == 0 or kit.chance(0.6):
                name = kit.pick([*names, "s"] if aliased else names)
                scope = kit.pick(("gpu", "sys", "cta"))
                if write if kit.chance(0.85) else not write:
                    sem = kit.pick(("weak", "weak", "relaxed", "release"))
                    kit.store("u32", name, kit.pick((1, 2)), sem, scope, ".global")
                else:
                    kit.load("u32", name, kit.pick(("weak", "weak", "relaxed", "acquire")), scope, ".global")
            if kit.chance(0.3 if triggers else 0.15 if i == 0 else 0):
                if triggers and kit.chance(0.8):
                    kit.add(kit.pick(("fence.acq_rel.gpu", "fence.release.sys", "fence.sc.gpu", "fence.acq_rel.cta")))
                kit.add("griddepcontrol.launch_dependents")
        if wait == 2:
            kit.add("griddepcontrol.wait")
        place = f"cta {0 if copies or kit.chance(0.7) else 1}, grid {grid}{' overlap' if late else ''}"
        if copies:
            place = "cta 0, grid 0"
        threads.append((f"{place}{f', gpu {gpu}' if gpu and not copies else ''}", kit.take()))
    return replace(program(declared, threads, f"{names[0]} == 1"), isa="9.2" if triggers else "")


def zeros(rng: random.Random) -> Program:
    """Two threads of a CTA that store, load and fill with zeros the same bytes of its shared memory."""
    kit = Kit(rng)
    declared = [
        f".shared .align 16 .u32 x[8] @ cta 0 = {{{kit.pick((0, 1))}, 1, 1, 1}};",
        ".shared .u32 f @ cta 0 = 0;",
    ]
    if kit.chance(0.2):
        declared[0] = ".shared .align 16 .u32 x[8] @ cta 0;"
    kind = kit.pick(("u8", "u16", "u32", "u32", "u64"))

    def access(write: bool) -> None:
        at = kit.pick(("x", "x", "x+8", "x+16"))
        sem = kit.pick(("weak", "weak", "weak", "relaxed"))
        if write:
            kit.store(kind, at, 2, sem, "cta", ".shared")
        else:
            kit.load(kind, at, sem, "cta", ".shared")

    def fill() -> None:
        size = kit.pick(("8", "16", "24"))
        if kit.chance(0.2):
            kit.add("mov", f".u64 n, {size}")
            if kit.chance(0.5):
                kit.add("setp.eq", f".u32 n1, {kit.load('u32', 'f', space='.shared')}, 0")
                kit.add("selp", f".u64 n, n, {kit.pick((0, 8, 12))}, n1")
            size = "n"
        head = "st.bulk" + kit.pick(("", ".weak")) + kit.pick((".shared::cta", ""))
        kit.add(head, f" [{kit.pick(('x', 'x', 'x+8'))}], {size}, 0")

    for i in range(2):
        for part in (fill, lambda: access(True), lambda: access(False)):
            if kit.chance(0.7 if (part is fill) == (i == 0) else 0.3):
                part()
        if i == 0:
            if kit.chance(0.7):
                kit.publish("f", "cta", ".shared")
            first = kit.take()
    label = kit.subscribe("f", "cta", ".shared", guarded=kit.chance(0.3)) if kit.chance(0.7) else None
    access(False)
    if kit.chance(0.5):
        access(kit.chance(0.5))
    kit.label(label)
    threads = [("cta 0, warp 0", first), ("cta 0, warp 1", kit.take())]
    return replace(program(declared, threads, "x[0] == 1"), isa="8.6")
