"""Tests as one CUDA source that runs all of them: what is the same for every test (``skeleton.cuh``), and for each test
a class with its threads."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from importlib.resources import files

from msgspec import Struct

from ptxmm.analysis.observe import memory_name, register_name
from ptxmm.engines.result import Observed
from ptxmm.errors import PtxmmError
from ptxmm.hardware.blocking import check_barriers
from ptxmm.hardware.looked_at import looked_at
from ptxmm.hardware.refusal import refused
from ptxmm.hardware.seats import Seating, seating
from ptxmm.hardware.threads import Body, Places, body, check_ops
from ptxmm.program.shared.mbarriers import mbarriers
from ptxmm.program.test import MemoryObject, Test
from ptxmm.ptx import ops
from ptxmm.ptx.spelling import refuse

_ASYNCHRONOUS = (ops.CopyAsync, ops.CopyAsyncArrive, ops.BulkCopy, ops.AsyncStore)
_ID = "TEST_ID"
MOST = {"threads": 8, "objects": 12, "values": 24, "initial values": 32, "accesses": 96}
"""What the arrays of the skeleton have room for."""


class Emitted(Struct, frozen=True):
    """A test as CUDA. ``id``: a name that depends on ``text`` alone, which has ``_ID`` where that name goes; ``names``:
    of the values that are looked at, registers first (``what``); ``seats``: where the threads run."""

    id: str
    text: str
    names: tuple[str, ...]
    what: Observed
    seats: Seating


def emit(test: Test) -> Emitted:
    """``test`` as CUDA.

    Raises ``PtxmmError`` (kind ``unsupported``) at the first thing in it that is not run on a GPU.
    """
    try:
        check_ops(test)
        what = looked_at(test)
        seats = seating(test)
        check_barriers(test, seats)
        _check_ranks(test, seats)
        text = _text(test, what, seats, _places(test, what))
    except PtxmmError as error:
        raise error.place(test.file, test.text) from None
    names = [register_name(test, term) for term in what.registers] + [memory_name(test, term) for term in what.memory]
    return Emitted(f"t{hashlib.sha256(text.encode()).hexdigest()[:12]}", text, tuple(names), what, seats)


def source(tests: Iterable[tuple[str, Emitted]]) -> str:
    """The CUDA source that runs ``tests``, each with a comment that says which it is; every one once."""
    skeleton = files("ptxmm.hardware").joinpath("skeleton.cuh").read_text(encoding="utf-8")
    comments: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for comment, test in tests:
        comments.setdefault(test.id, []).append(re.sub(r"[^\x20-\x7e]|\\$", "?", comment))
        texts[test.id] = test.text
    parts = [skeleton]
    for name, text in texts.items():
        parts.append("".join(f"// {comment}\n" for comment in comments[name]) + text.replace(_ID, name))
    cases = ", ".join(f"{{&meta_{name}, ptxmm::play<{name}>}}" for name in texts)
    parts.append(
        f"int main(int count, char** arguments) {{\n  return ptxmm::main_of(count, arguments, {{{cases}}});\n}}\n"
    )
    return "\n".join(parts)


# -- memory ------------------------------------------------------------------------------------------------------------


def _places(test: Test, what: Observed) -> Places:
    """The objects of ``test``. Raises ``PtxmmError`` (kind ``unsupported``) for those that are not on a GPU so."""
    own = tuple(item for item in test.objects.values() if item.physical == item.key)
    offsets: dict[str, int] = {}
    named: dict[str, int] = {}  # a variable that several CTAs have lies at the same place in each
    end = 0
    for item in test.objects.values():
        _check_object(test, item)
        if item.space == "shared" and item.physical == item.key:
            size = alignment(item)
            if item.name not in named:
                named[item.name] = -(-end // size) * size
                end = named[item.name] + item.size
            offsets[item.key] = named[item.name]
    aliases: dict[str, int] = {}
    for item in test.objects.values():
        number = sum(other.physical == item.physical for other in test.objects.values() if other.key in aliases)
        aliases[item.key] = number
        if number > 3:
            raise refused(test, item.name, "more than 3 aliases of a location are not run")
    barriers = mbarriers(test.threads, test.objects)
    for term in what.memory:
        if term.key in barriers or test.objects[term.key].mbarrier:
            raise refused(test, test.objects[term.key].name, "the value of an mbarrier is not looked at on a GPU")
        if term.type.bytes > 8:
            raise refused(test, test.objects[term.key].name, "a value of more than 64 bits is not looked at")
    names = {
        op.barrier.value
        for _, op in test.instructions
        if isinstance(op, ops.Barrier) and isinstance(op.barrier, ops.Imm)
    }
    return Places(
        own, {item.key: n for n, item in enumerate(own)}, offsets, -(-end // 16) * 16, aliases, tuple(sorted(names))
    )


def _multicast(op: object) -> bool:
    return isinstance(op, ops.BulkCopy) and op.mask is not None


def _check_ranks(test: Test, seats: Seating) -> None:
    """Raise ``PtxmmError`` (kind ``unsupported``) where a mask of CTAs would name others on a GPU."""
    for _, op in test.instructions:
        if _multicast(op) and any(cta.path[3] != seat.rank for cta, seat in seats.ctas.items()):
            raise refuse(op, "multicast is run where the CTAs of a cluster have the numbers from 0")


def _check_object(test: Test, item: MemoryObject) -> None:
    why = None
    if item.space not in ("global", "shared"):
        why = f"a variable in .{item.space} memory is not run on a GPU yet"
    elif item.proxy != "generic" or item.tensormap is not None or item.replicas:
        why = "a variable of this kind is not run on a GPU yet"
    elif item.alias_of is not None and item.space != "global":
        why = "an alias of shared memory is not run on a GPU"
    elif item.mbarrier and item.space == "global" and any(item.mbarrier):
        why = "an mbarrier in global memory is not run on a GPU"
    elif item.type.bits == 64 and any(value and test.locate(value) for value in item.initial):
        why = "an initial value that is an address is not run on a GPU yet"
    elif item.size > 1 << 12:
        why = f"a variable of {item.size} bytes is more than an instance has on a GPU (4096)"
    if why is not None:
        raise refused(test, item.name, why)


def alignment(item: MemoryObject) -> int:
    """The alignment that an object has on the GPU: enough for vectors and bulk copies of all of it."""
    return min(16, max(item.type.bytes, item.alignment or 1, 1 << (item.size - 1).bit_length()))


def _initials(places: Places) -> list[tuple[int, int, int, int, int, int]]:
    """The initial values that are not 0: place, offset, size, kind, value, pending bytes."""
    found = []
    for number, item in enumerate(places.objects):
        for index, value in enumerate(item.initial):
            at = index * item.type.bytes
            state = item.mbarrier[index] if item.mbarrier else None
            if state is not None:
                found.append((number, at, 8, 1, state[0], state[1]))
            elif value:
                for part in range(0, item.type.bytes, 8):
                    size = min(8, item.type.bytes - part)
                    found.append((number, at + part, size, 0, value >> 8 * part & (1 << 8 * size) - 1, 0))
    return found


# -- text --------------------------------------------------------------------------------------------------------------


def _text(test: Test, what: Observed, seats: Seating, places: Places) -> str:
    values = {(term.thread, term.register): n for n, term in enumerate(what.registers)}
    bodies: list[Body] = []
    first = 0
    for number in range(len(test.threads)):
        shown = {register: n for (thread, register), n in values.items() if thread == number}
        bodies.append(body(test, number, seats, places, shown, first))
        first += len(bodies[-1].inputs)
    _check_sizes(test, what, places, first)
    made = [op for _, op in test.instructions]
    arrives = any(isinstance(op, ops.Barrier) and op.kind == "arrive" for op in made)
    facts = {
        "ROLES": len(test.threads),
        "PLACES": len(places.objects),
        "DEVICES": seats.devices,
        "UNITS": seats.units,
        "RANKS": seats.ranks,
        "SEATS": seats.width,
        "LANES": seats.lanes,
        "ARRIVES": int(arrives),
        "BARRIERS": len(places.barriers) + arrives,
        "SHARED_BYTES": places.shared_bytes,
        "GLOBAL": sum(1 << n for n, item in enumerate(places.objects) if item.space == "global"),
        "MOST_THREADS": 1024,
        "CLUSTER_BARRIER": int(any(isinstance(op, ops.ClusterBarrier) for op in made)),
        "DRAIN": int(any(isinstance(op, _ASYNCHRONOUS) for op in made)),
    }
    lines = [f"struct {_ID} {{"]
    lines += [f"  static constexpr unsigned {name} = {value};" for name, value in facts.items()]
    lines += _roles(seats)
    lines += [
        "  template <class C> static __device__ __forceinline__ void run(C& c, int role) {",
        "    switch (role) {",
    ]
    for number, one in enumerate(bodies):
        lines += _case(number, one)
    lines += ["    }", "  }"]
    lines += _prepare(places)
    lines += _finish(what, seats, places)
    lines += ["};", _meta(test, what, seats, places, facts)]
    return "\n".join(lines) + "\n"


def _check_sizes(test: Test, what: Observed, places: Places, accesses: int) -> None:
    """Raise ``PtxmmError`` (kind ``unsupported``) where the skeleton has no room."""
    sizes = {
        "threads": len(test.threads),
        "objects": len(places.objects),
        "values": len(what.registers) + len(what.memory),
        "initial values": len(_initials(places)),
        "accesses": accesses,
    }
    for name, size in sizes.items():
        if size > MOST[name]:
            raise refused(test, test.threads[0].name, f"{size} {name}: at most {MOST[name]} are run on a GPU")
    if len(places.barriers) > 7:
        raise refused(test, test.threads[0].name, "more than 7 named barriers are not run")


def _roles(seats: Seating) -> list[str]:
    """Which role the warp at a seat plays."""
    sizes = (seats.units, seats.ranks, seats.width, seats.lanes)
    lines = ["  static __device__ int role(int device, unsigned unit, unsigned rank, unsigned seat, unsigned lane) {"]
    place = f"(((device * {sizes[0]} + unit) * {sizes[1]} + rank) * {sizes[2]} + seat) * {sizes[3]} + lane"
    lines.append(f"    switch ({place}) {{")
    for number, seat in enumerate(seats.seats):
        at = (((seat.device * sizes[0] + seat.unit) * sizes[1] + seat.rank) * sizes[2] + seat.seat) * sizes[3]
        at += seat.lane
        lines.append(f"      case {at}: return {number};")
    return [*lines, "      default: return -1;", "    }", "  }"]


def _case(number: int, one: Body) -> list[str]:
    """A thread as a case of a switch. The ``asm`` statement ends on the line with the comment ``role``,
    which the machine code names as the place of its instructions."""
    outputs = len(one.shown) + len(one.kept)
    numbers = {f"o{n}": n for n in range(outputs)} | {"w": outputs}
    numbers |= {f"q{n}": outputs + 1 + n for n in range(len(one.inputs))}
    text = "".join(
        json.dumps(re.sub(r"%\[(\w+)\]", lambda m: f"%{numbers[m[1]]}", line) + "\n\t") + "\n        "
        for line in one.lines
    )
    lines = [f"      case {number}: {{"]
    for position, (letter, expression) in enumerate(one.inputs):
        lines.append(f"        const {'uint64_t' if letter == 'l' else 'uint32_t'} q{position} = {expression};")
    if outputs:
        lines.append(f"        uint64_t {', '.join(f'o{n}' for n in range(outputs))};")
    lines += ["        uint32_t lost;", f"        c.align({number});"]
    outs = ", ".join([*(f'"=l"(o{n})' for n in range(outputs)), '"=r"(lost)'])
    ins = ", ".join(f'"{letter}"(q{n})' for n, (letter, _) in enumerate(one.inputs))
    lines.append(
        f'        asm volatile("{{\\n\\t"\n        {text}"}}" /* {_ID} role {number} */ : {outs} : {ins} : "memory");'
    )
    for position, (value, _) in enumerate(one.shown):
        lines.append(f"        c.log({value}, o{position});")
    kept = " ^ ".join(f"o{n}" for n in range(len(one.shown), outputs)) or "0"
    lines += [f"        c.done({number}, lost, {kept});", "        break;", "      }"]
    return lines


def _prepare(places: Places) -> list[str]:
    """The shared memory of an instance before the test."""
    lines = ["  static __device__ void prepare(uint8_t* memory) {", "    (void)memory;"]
    shared = []
    for number, at, *rest in _initials(places):
        item = places.objects[number]
        if item.space == "shared":
            shared.append((at + places.offsets[item.key], *rest))
    for at, size, kind, value, tx in dict.fromkeys(shared):
        if kind:
            place = f'"r"((uint32_t)__cvta_generic_to_shared(memory + {at}))'
            texts = [f"mbarrier.init.shared::cta.b64 [%0], {max(1, value)};"]
            texts += [f"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], {tx};"] if tx else []
            texts += [] if value else ["mbarrier.arrive.shared::cta.b64 _, [%0];"]
            lines += [f'    asm volatile("{text}" ::{place} : "memory");' for text in texts]
        else:
            lines.append(f"    *(uint{8 * size}_t*)(memory + {at}) = {value}u{'ll' if size == 8 else ''};")
    return [*lines, "  }"]


def _finish(what: Observed, seats: Seating, places: Places) -> list[str]:
    """What is looked at in the shared memory of an instance after the test."""
    parameters = "C& c, int device, unsigned unit, unsigned rank, uint8_t* memory"
    lines = [f"  template <class C> static __device__ void finish({parameters}) {{", "    (void)memory;"]
    for number, term in enumerate(what.memory, len(what.registers)):
        item = next((one for one in places.objects if one.key == term.key), None)
        if item is None or item.space != "shared":
            continue
        at, own = places.offsets[item.key] + term.index * item.type.bytes, seats.owner(item)
        here = f"device == {own.device} && unit == {own.unit} && rank == {own.rank}"
        lines.append(f"    if ({here}) c.log({number}, *(volatile uint{term.type.bits}_t*)(memory + {at}));")
    return [*lines, "  }"]


def _meta(test: Test, what: Observed, seats: Seating, places: Places, facts: dict[str, int]) -> str:
    """The facts of the test for the host, and for the kernel that looks at what it left."""
    rows = []
    for item in places.objects:
        shared = item.space == "shared"
        own = seats.owner(item) if shared else None
        where = (own.device, own.unit, own.rank) if own is not None else (0, 0, 0)
        at = places.offsets.get(item.key, 0)
        numbers = ", ".join(map(str, where))
        rows.append(f"{{{item.size}, {alignment(item)}, 0, {str(shared).lower()}, {at}, {numbers}}}")
    values = ["{-1, 0, 8}"] * len(what.registers)
    for term in what.memory:
        item = test.objects[term.key]
        size = term.type.bytes
        values.append(f"{{{places.numbers[item.physical]}, {term.index * item.type.bytes}, {size}}}")
    initials = [
        f"{{{p}, {at}, {size}, {kind}, {value}ull, {tx}}}" for p, at, size, kind, value, tx in _initials(places)
    ]
    fixed = any(isinstance(op, ops.Mapa | ops.CtaRank) or _multicast(op) for _, op in test.instructions)
    counts = [len(test.threads), seats.devices, seats.units, seats.ranks, seats.width, seats.lanes]
    counts += [len(rows), len(values), len(initials), facts["BARRIERS"]]
    flags = [bool(facts["CLUSTER_BARRIER"]), fixed, bool(facts["DRAIN"]), seats.grids]
    each = [[getattr(seat, name) for seat in seats.seats] for name in ("device", "unit", "rank", "seat")]
    parts = [f'"{_ID}"', *map(str, counts), *(str(flag).lower() for flag in flags), str(places.shared_bytes)]
    parts += [f"{{{', '.join(items)}}}" for items in (rows, values, initials)]
    parts += [f"{{{', '.join(map(str, items))}}}" for items in each]
    return f"static const ptxmm::Meta meta_{_ID} = {{{', '.join(parts)}}};"
