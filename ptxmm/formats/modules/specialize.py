"""The instructions that one thread of a launch can execute: a kernel specialised to what is known before it runs.

Registers whose value follows from the launch (its arguments, the numbers of the thread) are replaced by it, branches
that it decides are taken, and loops whose rounds it tells apart are unrolled. What is left depends on memory.

``propagate`` finds what is known at every node; here the instructions that are left are put in a row. The result is
complete whatever the bounds are: a loop that is left in it is bounded by the engines, which say so.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from functools import cache
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.formats.modules.evaluate import Generic, Half, Known, Placed
from ptxmm.formats.modules.flow import Flow, live_registers, matters
from ptxmm.formats.modules.lower import Code
from ptxmm.formats.modules.matrices import matrices
from ptxmm.formats.modules.objects import Object
from ptxmm.formats.modules.propagate import Environment, Fetch, Held, Node, Propagation, Shown
from ptxmm.formats.modules.prune import pruned
from ptxmm.formats.modules.rows import Lanes, fragments
from ptxmm.formats.text import at
from ptxmm.program.edit import retarget
from ptxmm.program.graph import graph_of, reach
from ptxmm.program.shared.legality import meets, rule
from ptxmm.program.shared.windows import SPACES
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_read, names_written
from ptxmm.ptx.spelling import refuse

_ROLES: dict[str, ops.Role] = {"dst": "destination", "src": "source", "mbarrier": "mbarrier", "tensormap": "tensor map"}
_NAMES_VARIABLES = (ops.Mapa, ops.CtaRank, ops.ConvertAddress)
# What finds its matrices by descriptors (PTX ISA 9.7.16.5.1.2.7).
_BY_DESCRIPTOR = {ops.TensorProduct: "tcgen05.mma", ops.TensorCopy: "tcgen05.cp"}


class Residue(Struct, frozen=True):
    """What is left of a kernel for one thread. ``origin[i]``: the index in the kernel of instruction i."""

    body: tuple[ops.Op, ...]
    origin: tuple[int, ...]


def specialize(
    code: Code,
    flow: Flow,
    known: Mapping[str, Known],
    observed: Collection[str],
    variables: Mapping[str, Object],
    lane: int = 0,
    lanes: Lanes | None = None,
    fetch: Fetch = lambda pc, place, size: None,
) -> Residue:
    """``code`` for a thread in which the registers ``known`` have these values at the start.

    ``flow``: that of ``code``. ``observed``: the registers whose final values count. ``variables``: all that the
    kernel may name. ``lane``: that of the thread in its warp; ``lanes``: what the lanes of this name, which matters
    where the kernel has matrices with rows. ``fetch``: what is known of memory. Raises ``PtxmmError`` (kind
    ``unsupported``) where an instruction that can't be modelled is left, or more than ``MAX_INSTRUCTIONS``.
    """
    analysis = Propagation(code, flow, known, variables, fetch)
    analysis.run()
    chunks = _Emission(analysis, observed, variables, lane, lanes).run()
    return _checked(code, _trimmed(chunks, observed, code), known)


def settled(
    code: Code,
    flow: Flow,
    known: Mapping[str, Known],
    observed: Collection[str],
    variables: Mapping[str, Object],
    fetch: Fetch,
) -> Code | None:
    """``code`` of a thread without the loads whose values are known by ``fetch`` wherever it comes to them, without the
    branches that are decided so, and without what is not needed then; None if no load is known. A loop that would not
    end so waits for what its loads return: these stay. The arguments are those of ``specialize``."""
    polls: set[int] = set()
    while True:
        analysis = Propagation(code, flow, known, variables, _but(polls, fetch))
        analysis.run()
        chunks, folded = _decided(analysis)
        if not folded:
            return None
        origin = [pc for pc, chunk in enumerate(chunks) for _ in chunk]
        body = retarget([*chunks, []])
        graph = graph_of(body)
        endless = reach(graph.after, [0]) - reach(graph.before, [graph.end])
        waiting = {origin[at] for at in endless if at in reach(graph.after, graph.after[at])} & folded
        if not endless:
            refused = {number: code.refused[pc] for number, pc in enumerate(origin) if pc in code.refused}
            return pruned(replace(code, body=body, refused=refused), observed)
        if not waiting:
            return None
        polls |= waiting


def _but(polls: Collection[int], fetch: Fetch) -> Fetch:
    """``fetch`` for all loads but those at ``polls``."""
    return lambda pc, place, size: None if pc in polls else fetch(pc, place, size)


def _decided(analysis: Propagation) -> tuple[list[list[ops.Op]], set[int]]:
    """What becomes of each instruction, and the loads among them that are known."""
    code = analysis.code
    emission = _Emission(analysis, (), analysis.variables, 0, None)
    environments: dict[int, list[Environment]] = {}
    for (pc, _), environment in analysis.entry.items():
        environments.setdefault(pc, []).append(environment)
    chunks: list[list[ops.Op]] = []
    folded: set[int] = set()
    for pc, op in enumerate(code.body):
        found = environments.get(pc, [])
        ways = {analysis.holds(environment, op.guard) for environment in found}
        if not ways - {False} or pc in code.refused:
            chunks.append([op] if found and pc in code.refused else [])
            continue
        if ways == {True}:
            op = replace(op, guard=None)
        if isinstance(op, ops.Load) and ways == {True}:
            values = [analysis.fetched(pc, op, environment) for environment in found]
            if values[0] and all(value == values[0] for value in values):
                folded.add(pc)
                chunks.append([_moved(code, name, value, op.source) for name, value in values[0].items()])
                continue
        first, *others = found
        common = {name: value for name, value in first.items() if all(o.get(name) == value for o in others)}
        chunks.append([emission.substituted(op, common)])
    return chunks, folded


def _moved(code: Code, name: str, value: Known, source: ops.Source) -> ops.Op:
    type_ = code.registers[name]
    assert isinstance(value, int | ops.Sym)
    operand = value if isinstance(value, ops.Sym) else ops.Imm(value & ((1 << type_.bits) - 1))
    return ops.Alu("mov", ops.Type("b", type_.bits), ops.Reg(name), (operand,), source)


class _Emission:
    """From the fixed point to instructions."""

    def __init__(
        self,
        analysis: Propagation,
        observed: Collection[str],
        variables: Mapping[str, Object],
        lane: int,
        lanes: Lanes | None,
    ) -> None:
        self.analysis, self.observed, self.variables = analysis, observed, variables
        self.lane, self.lanes = lane, lanes
        self.code = analysis.code

    def run(self) -> list[list[tuple[ops.Op, int]]]:
        """The instructions node by node, the last being empty: the end. Branches jump to numbers of nodes."""
        analysis = self.analysis
        out: dict[Node, Environment] = {}
        after: dict[Node, list[tuple[int, Node]]] = {}
        waiting: list[Node] = [(0, analysis.context(0))]
        while waiting:
            node = waiting.pop()
            if node not in after:
                out[node] = analysis.leave(node)
                after[node] = analysis.edges(node, out[node])
                waiting += (target for _, target in after[node])
        nodes = sorted((n for n in after if n[0] < len(self.code.body)), key=analysis.key)
        numbers = {node: i for i, node in enumerate(nodes)}
        numbers.update((node, len(nodes)) for node in after if node[0] == len(self.code.body))
        chunks = [
            self.chunk(node, out[node], [target for _, target in after[node]], numbers, i)
            for i, node in enumerate(nodes)
        ]
        return [*chunks, []]

    def chunk(
        self, node: Node, out: Environment, targets: list[Node], numbers: Mapping[Node, int], number: int
    ) -> list[tuple[ops.Op, int]]:
        pc = node[0]
        op = self.code.body[pc]
        environment = self.analysis.entry[node]
        source = op.source

        def moves(target: Node) -> list[tuple[ops.Op, int]]:
            if target[0] == len(self.code.body):
                names = [name for name in sorted(self.observed) if name in out]
            else:
                kept = self.analysis.entry[target]
                live = self.analysis.flow.live[target[0]]
                names = [name for name in sorted(out) if name in live and name not in kept]
            return [(self.move(name, out[name], source), pc) for name in names]

        def jump(target: Node, guard: ops.Guard | None = None) -> list[tuple[ops.Op, int]]:
            if guard is None and numbers[target] == number + 1:
                return []
            return [(ops.Branch(numbers[target], None, source, guard), pc)]

        if isinstance(op, ops.Branch | ops.Exit) and len(targets) == 2:
            on, away = targets
            assert op.guard is not None
            carried = moves(away)
            if isinstance(op, ops.Branch):
                # The side that is taken writes what it carries under the guard of the branch.
                carried = [(replace(item, guard=op.guard), pc) for item, _ in carried]
                return [*carried, *jump(away, op.guard), *moves(on), *jump(on)]
            return [*carried, (op, pc), *moves(on), *jump(on)]
        found: list[tuple[ops.Op, int]] = []
        if not isinstance(op, ops.Branch | ops.Exit):
            found += self.instruction(self.placed(op, node), pc, environment, out)
        if not targets:
            return found
        (target,) = targets
        return [*found, *moves(target), *jump(target)]

    def placed(self, op: ops.Op, node: Node) -> ops.Op:
        """``op`` with what its lane accesses, if its warp loads or stores matrices by their rows, or with what its
        warpgroup does by descriptors."""
        if not isinstance(op, ops.LoadMatrix | ops.StoreMatrix | ops.Wgmma):
            return op
        environment = self.analysis.entry[node]
        if self.analysis.holds(environment, op.guard) is False:
            return op
        if isinstance(op, ops.Wgmma):
            return matrices(
                op, lambda item: self.analysis.placed(environment, item), self.variables, self.analysis.ways
            )
        if self.lanes is None:
            return op
        found = fragments(op, node, self.lane, self.lanes, self.variables)
        return replace(op, address=found[0], fragments=found)

    def move(self, name: str, value: Known | Shown | Placed | Held, source: ops.Source) -> ops.Op:
        """Give a register the value that is known of it."""
        assert not isinstance(value, Shown | Held | tuple)
        type_ = self.code.registers[name]
        plain = ops.Type("b", type_.bits) if type_.kind != "pred" else type_
        if isinstance(value, Generic):
            space = self.variables[value.place.name].space
            return ops.ConvertAddress(
                ops.Reg(name), ops.Type("u", 64), value.place, space, ops.Source(source.span, source.text)
            )
        if isinstance(value, Half):
            return _half(ops.Reg(name), type_, value, source)
        operand = ops.Imm(value) if isinstance(value, int) else value
        return ops.Alu("mov", plain, ops.Reg(name), (operand,), ops.Source(source.span, source.text))

    def instruction(self, op: ops.Op, pc: int, environment: Environment, out: Environment) -> list[tuple[ops.Op, int]]:
        """What is left of an instruction that is no branch."""
        holds = self.analysis.holds(environment, op.guard)
        if holds is False:
            return []
        written = names_written(op)
        flow = self.analysis.flow
        live = frozenset[str]().union(*(flow.live[follower] for follower in flow.after[pc]))
        if written and not matters(op) and all(name in out or name not in live for name in written):
            return []
        if holds and isinstance(op, ops.Load) and self.analysis.fetched(pc, op, environment):
            return []
        found: list[tuple[ops.Op, int]] = []
        if holds:
            op = replace(op, guard=None)
        else:
            kept = [name for name in written if name in environment and name not in out]
            found += [(self.move(name, environment[name], op.source), pc) for name in kept]
        changed = self.substituted(op, environment)
        needed = dict.fromkeys(name for name in names_read(changed) if name in environment)
        found += [(self.move(name, environment[name], op.source), pc) for name in needed]
        return [*found, (changed, pc)]

    def substituted(self, op: ops.Op, environment: Environment) -> ops.Op:
        """``op`` with known values for the registers that it reads, where it may have a constant."""
        known = {name for name in names_read(op) if name in environment}
        if not known:
            return op
        # A generic mapa takes no name (PTX ISA 9.7.10.22).
        named = isinstance(op, _NAMES_VARIABLES) and not (isinstance(op, ops.Mapa) and op.space is None)
        named = named or (isinstance(op, ops.Alu) and op.op == "mov")
        changes: dict[str, Any] = {}
        for field, kind in _sources(cast("Hashable", type(op))):
            old = getattr(op, field)
            held = rule(op, _ROLES.get(field, "data")) if kind == "address" else None
            new = self.replaced(old, kind, environment, named, held)
            if new is not old and self.fits(op, new, held):
                changes[field] = new
        return replace(op, **changes) if changes else op

    def fits(self, op: ops.Op, place: object, held: ops.Rule | None) -> bool:
        """Whether an access of ``op`` at ``place`` can be meant. What can't is an error only if it is executed."""
        if not isinstance(place, ops.Address) or not isinstance(place.base, ops.Sym):
            return True
        item, start = self.variables[place.base.name], place.base.offset + place.offset
        if not 0 <= start < item.size:
            return False
        if held is not None and not meets(held, item.space):
            return False
        if not isinstance(op, ops.Load | ops.Store | ops.Atomic):
            return True
        size = ops.access_bytes(op)
        return start % size == 0 and start + size <= item.size

    def replaced(self, item: object, kind: str, environment: Environment, named: bool, held: ops.Rule | None) -> object:
        """``item`` with what is known; the address of a variable only where the instruction takes such a one."""
        match item:
            case ops.Address(ops.Reg(name), offset) if name in environment:
                value = environment[name]
                if isinstance(value, int):
                    return ops.Address(ops.Imm(value), offset)
                if isinstance(value, Half):
                    return item
                assert isinstance(value, ops.Sym | Generic)
                place = value.place if isinstance(value, Generic) else value
                window = self.variables[place.name].space in SPACES
                wanted = held is not None and held.form is not None and held.form.partition("::")[0] in SPACES
                if window and wanted == isinstance(value, Generic):
                    return item
                return ops.Address(place, offset)
            case ops.Reg(name) if kind == "operand" and name in environment:
                value = environment[name]
                if isinstance(value, int):
                    return ops.Imm(value)
                return value if named and isinstance(value, ops.Sym) else item
            case tuple():
                made = tuple(self.replaced(part, kind, environment, named, held) for part in item)
                return made if any(a is not b for a, b in zip(made, item, strict=True)) else item
        return item


def _half(register: ops.Reg, type_: ops.Type, value: Half, source: ops.Source) -> ops.Op:
    """Give ``register`` a half of an address."""
    if type_.bits == 32:
        return ops.Unpack((None, register) if value.high else (register, None), ops.Type("b", 64), value.place, source)
    mask = 0xFFFFFFFF << 32 * value.high
    if value.high and not value.placed:
        return ops.Alu("shr", ops.Type("u", 64), register, (value.place, ops.Imm(32)), source)
    return ops.Alu("and", ops.Type("b", 64), register, (value.place, ops.Imm(mask)), source)


@cache
def _sources(kind: type[Any]) -> tuple[tuple[str, str], ...]:
    """The fields of an operation that hold what it reads and may hold constants: operands and addresses."""
    found: list[tuple[str, str]] = []
    for name, text in kind.__annotations__.items():
        if "Address" in text and "Operand" not in text:
            found.append((name, "address"))
        elif "Operand" in text:
            found.append((name, "operand"))
    return tuple(found)


def _trimmed(chunks: list[list[tuple[ops.Op, int]]], observed: Collection[str], code: Code) -> Residue:
    """The instructions in a row, without those that only compute what nobody reads, and without jumps to the next."""
    effects = {pc for pc, (_, effect) in code.refused.items() if effect}
    while True:
        chunks = _without_jumps(chunks)
        body = retarget([[op for op, _ in chunk] for chunk in chunks])
        origin = tuple(pc for chunk in chunks for _, pc in chunk)
        live, after = live_registers(body, observed), graph_of(body).after
        keep = [
            matters(op) or pc in effects or _wanted(op, after[i], live)
            for i, (op, pc) in enumerate(zip(body, origin, strict=True))
        ]
        if all(keep):
            return Residue(body, origin)
        position = iter(keep)
        chunks = [[item for item in chunk if next(position)] for chunk in chunks]


def _wanted(op: ops.Op, followers: tuple[int, ...], live: list[frozenset[str]]) -> bool:
    after = frozenset().union(*(live[follower] for follower in followers))
    return any(name in after for name in names_written(op))


def _without_jumps(chunks: list[list[tuple[ops.Op, int]]]) -> list[list[tuple[ops.Op, int]]]:
    """Without branches to where control goes anyway."""
    changed = True
    while changed:
        changed = False
        following = len(chunks) - 1
        for number in range(len(chunks) - 2, -1, -1):
            chunk = chunks[number]
            if chunk and isinstance(chunk[-1][0], ops.Branch) and number < chunk[-1][0].target <= following:
                chunks[number] = chunk[:-1]
                changed = True
            if chunks[number]:
                following = number
    return chunks


def _checked(code: Code, residue: Residue, known: Mapping[str, Known]) -> Residue:
    """Refuse what is left of instructions that can't be modelled, and of special registers without a value."""
    written = {name for op in residue.body for name in names_written(op)} | known.keys()
    for op, pc in zip(residue.body, residue.origin, strict=True):
        if pc in code.refused and isinstance(op, ops.Nothing):
            why = code.refused[pc][0]
            raise at(why.message, op.source.span, kind=why.kind, hint=why.hint)
        for kind, name in _BY_DESCRIPTOR.items():
            if isinstance(op, kind):
                message = f"the matrix descriptors of `{name}` are not decoded"
                hint = "leave it out to check the rest; in a litmus test a descriptor is the address of the matrix"
                raise refuse(op, message, hint)
        for name in names_read(op):
            if name not in written and name.startswith("sreg "):
                register = name.removeprefix("sreg ").replace(" ", ".")
                message = f"%{register} matters here, but no launch decides its value"
                instead = "compute the number of the warp from %tid (PTX ISA 10.4)" if register == "warpid" else None
                raise refuse(op, message, instead)
    return residue
