"""A kernel of a PTX module, launched: one test for each launch, whose threads are the kernel specialised to each.

The way: text -> ``ptx.module`` -> ``inline`` (calls, parameters, special registers) -> ``lower`` (resolved
instructions) -> ``specialize`` (one thread) -> ``program.build``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ptxmm.errors import PtxmmError, Span, together
from ptxmm.formats.modules.flags import alone, told_apart
from ptxmm.formats.modules.grids import Grid
from ptxmm.formats.modules.kernel import Kernel, Reading, named, observed, same_value, terms
from ptxmm.formats.modules.launch import Launch
from ptxmm.formats.modules.lower import Code
from ptxmm.formats.modules.mbarriers import separated
from ptxmm.formats.modules.objects import Object, viewed
from ptxmm.formats.modules.prepare import prepared
from ptxmm.formats.modules.prune import pruned, taken_to_end
from ptxmm.formats.modules.roles import represented
from ptxmm.formats.modules.threads import host_threads, threads_of
from ptxmm.formats.modules.unchanged import Unchanged, asked, at_first
from ptxmm.formats.modules.unwritten import written_first
from ptxmm.program.build import build
from ptxmm.program.source import AddressOf, Initial, NameTerm, TensorMapValue, TestSource, ThreadSource, Variable
from ptxmm.program.symbols import symbols
from ptxmm.program.test import Allowance, Claims, Test
from ptxmm.ptx import module_syntax as ptx
from ptxmm.ptx.ops import Op

_NOWHERE = Span(1, 1, 2)
_LISTED = 8
_CLOCKS = "a clock decides what is executed: no execution in which time passes was tried"
_WRONG_ANYWHERE = frozenset(("isa", "syntax", "type"))
"""The kinds of errors in instructions that are told even of those that no thread comes to, if there are others."""


def launched(
    module: ptx.Module, launch: Launch, *, file: str, text: str, how: Reading, allowed: tuple[Allowance, ...] = ()
) -> Test:
    """The test of one ``launch`` of kernels of ``module``.

    ``file`` and ``text``: what places in results are of; ``allowed``: what ``text`` allows at its lines.

    Raises ``PtxmmError`` with its place: what does not fit together, what can't be modelled.
    """
    found = _launched(module, launch, file, text, how, allowed)
    if not launch.traps or found.claims is None:
        return found
    trapping = _launched(module, launch, file, text, how, allowed, trapping=True)
    return replace(found, claims=replace(found.claims, trapping=trapping))


def _launched(
    module: ptx.Module,
    launch: Launch,
    file: str,
    text: str,
    how: Reading,
    allowed: tuple[Allowance, ...],
    trapping: bool = False,
) -> Test:
    kernels = prepared(module, launch, how, trapping, allowed)
    launch = kernels[0].launch
    variables = {name: item for kernel in kernels for name, item in kernel.variables.items()}
    partial: dict[str, None] = {}
    chosen: list[Kernel] = []
    for kernel in kernels:
        for item in kernel.variables.values():
            if item.space == "param" and len(item.initial or ()) > 1 and any(map(_is_map, item.initial or ())):
                message = "a tensor map in a structure is followed by `check --whole` only"
                hint = "make it a parameter, or let all threads run: then `ptxmm check` asks one execution of them"
                raise launch.error(kernel.grid.spans["args"], message, "unsupported", hint)
        if kernel.grid.open:
            kernel, some = represented(kernel, pruned(kernel.code, ()), variables)
            partial[some] = None
        chosen.append(kernel)
    threads, remarks, clocks, variables = _specialized(chosen, variables, file, text)
    partial |= {_CLOCKS: None} if clocks else {}
    placed = len(threads)
    threads += host_threads(launch)
    variables, threads = _in_memory(variables, threads, launch)
    source = TestSource(
        name=named_test(kernels, launch),
        threads=tuple(threads),
        declarations=_declared(variables, threads, kernels),
        condition=launch.condition,
        file=file,
        text=text,
        isa=how.isa or module.version,
        same_value=same_value(launch, allowed),
        claims=Claims(
            launch.races,
            launch.robust,
            launch.unroll,
            (*remarks, *_remarks(chosen, placed)),
            tuple(partial),
            launch.readings,
            allowed,
            launch.bounds,
            launch.barriers,
            launch.traps,
            endless=_endless(chosen),
            others=_every(chosen) - placed,
        ),
    )
    try:
        return build(source)
    except PtxmmError as error:
        raise _placed(error, source, launch) from None


def _specialized(
    kernels: Sequence[Kernel], variables: dict[str, Object], file: str, text: str
) -> tuple[list[ThreadSource], dict[str, None], bool, dict[str, Object]]:
    """The threads of all grids, the remarks on them, whether some depend on clocks, and ``variables`` with those that
    registers without a value are read from. Raises ``PtxmmError``."""
    asked_for: list[list[frozenset[str]]] = []
    for kernel in kernels:
        asked_for.append(_observed(kernel, sum(map(len, asked_for))))
    codes = [_code(kernel, frozenset().union(*own)) for kernel, own in zip(kernels, asked_for, strict=True)]

    def made(memory: Unchanged | None) -> tuple[list[ThreadSource], dict[str, None], bool, dict[str, Object]]:
        threads: list[ThreadSource] = []
        remarks: dict[str, None] = {}
        known, timed = dict(variables), False
        for kernel, code, names in zip(kernels, codes, asked_for, strict=True):
            try:
                own, notes, clocks = threads_of(kernel, code, names, known, len(threads), memory)
            except PtxmmError as error:
                raise _with_refused(error, code, file, text) from None
            remarks |= dict.fromkeys((*kernel.remarks, *notes))
            threads += own
            timed = timed or clocks
        return threads, remarks, timed, known

    found = made(None)
    if kernels[0].launch.host or not asked(_bodies(found[0]), variables):
        return found
    memory = at_first(variables)
    while True:
        found = made(memory)
        left = memory.without(_bodies(found[0]))
        if left == memory:
            return found
        memory = left


def _endless(kernels: Sequence[Kernel]) -> tuple[str, ...]:
    """The loops of kernels that are taken to end, and perhaps do not, in words."""
    found: dict[str, None] = {}
    for kernel in kernels:
        for pc in taken_to_end(kernel.code, observed(kernel)):
            op = kernel.code.body[pc]
            found[f"the loop that is left in line {op.source.span.line} only computes, and is taken to end"] = None
    return tuple(found)


def _code(kernel: Kernel, names: frozenset[str]) -> Code:
    """What counts of the instructions of ``kernel``, where the registers ``names`` do at its end."""
    code = kernel.code if kernel.grid.size > 1 else alone(kernel.code)
    return told_apart(pruned(code, names))


def _bodies(threads: Sequence[ThreadSource]) -> list[Sequence[Op]]:
    return [thread.body or () for thread in threads]


def hosts(kernels: Sequence[Kernel]) -> dict[str, Kernel]:
    """The threads of the host of a launch, by their names, each as a kernel of one thread. Raises ``PtxmmError``."""
    launch = kernels[0].launch
    threads = tuple(host_threads(launch))
    if not threads:
        return {}
    variables = {name: item for kernel in kernels for name, item in kernel.variables.items() if item.space == "global"}
    declared = tuple(_declaration(item, item.space) for item in variables.values())
    source = TestSource("host", threads, declared, file=launch.file, text=launch.text, isa=kernels[0].isa)
    try:
        test = build(source)
    except PtxmmError as error:
        raise error.place(launch.file, launch.text) from None
    grid = Grid(None, (1, 1, 1), (1, 1, 1), None, 0, (), ())
    return {
        thread.name: Kernel(thread.name, launch, grid, {}, Code(thread.body, thread.registers, {}), (), ())
        for thread in test.threads
    }


def _is_map(value: Initial) -> bool:
    return isinstance(value, TensorMapValue)


def named_test(kernels: Sequence[Kernel], launch: Launch) -> str:
    """The name of a test: of its kernels, its launch, and what it assumes, so that no verdict hides that."""
    names = ", ".join(dict.fromkeys(kernel.name for kernel in kernels))
    assumed = dict.fromkeys(name for kernel in kernels for name in kernel.assumed)
    words = [*filter(None, [launch.name]), *(f"assuming {name}" for name in assumed)]
    return f"{names} ({', '.join(words)})" if words else names


def _with_refused(error: PtxmmError, code: Code, file: str, text: str) -> PtxmmError:
    """``error`` of a thread with what else is wrong in the kernel; one of the launch specification as it is."""
    if error.file is not None:
        return error
    refused = [found for found, effect in code.refused.values() if effect and found.kind in _WRONG_ANYWHERE]
    others = [found for found in refused if (found.line, found.message) != (error.line, error.message)]
    return together([error, *others]).place(file, text)


def _in_memory(
    variables: dict[str, Object], threads: list[ThreadSource], launch: Launch
) -> tuple[dict[str, Object], list[ThreadSource]]:
    """The variables as the threads use them, and the threads with the names of those that are divided."""
    bodies: list[tuple[Op, ...]] = [thread.body or () for thread in threads]
    for name, item in tuple(variables.items()):
        if item.space == "local" and item.initial is None and written_first(bodies, item):
            variables[name] = replace(item, initial=())
    variables, bodies = separated(variables, bodies, launch)
    threads = [t if t.body is None else replace(t, body=body) for t, body in zip(threads, bodies, strict=True)]
    return viewed(variables, bodies), threads


def _placed(error: PtxmmError, source: TestSource, launch: Launch) -> PtxmmError:
    """``error`` with its file: what is not wrong with an instruction is wrong with the launch."""
    places = {(op.source.span.line, op.source.span.column) for thread in source.threads for op in thread.body or ()}
    if (error.line, error.column) in places:
        return error.place(source.file, source.text)
    return error.place(launch.file, launch.text)


# -- variables -----------------------------------------------------------------------------------------------------


def _declared(
    variables: dict[str, Object], threads: list[ThreadSource], kernels: Sequence[Kernel]
) -> tuple[Variable, ...]:
    """Declarations of what the threads, the condition or other declarations name, and of all objects of the launch but
    those that each CTA or thread has of its own."""
    launch = kernels[0].launch
    given = (variables[item.name] for item in launch.objects if item.name in variables)
    wanted = {item.name for item in given if item.space not in ("shared", "local")}
    for thread in threads:
        for op in thread.body or ():
            wanted.update(symbols(op))
    wanted |= set(named(launch.condition)) & variables.keys()
    waiting = list(wanted)
    while waiting:
        more = _pointed_to(variables[waiting.pop()]) & variables.keys() - wanted
        wanted |= more
        waiting += more
    declared = [item for name, item in variables.items() if name in wanted]
    for item in declared:
        if item.count == 0:
            message = f"`{item.name}` is dynamic shared memory, of which this launch has none"
            grid = next(kernel.grid for kernel in kernels if item.name in kernel.variables)
            raise launch.error(grid.spans["shared"], message, hint="say how many bytes: shared = 1024")
        if item.initial is None and item.space in ("global", "const"):
            message = f"`{item.name}` is in .{item.space} memory, where only `check --whole` leaves values open"
            raise launch.error(item.span, message, "unsupported", "leave out its `init`: it is 0 then")
    return tuple(_declaration(item, item.space) for item in declared)


def _pointed_to(item: Object) -> set[str]:
    """The variables that the initial value of ``item`` names."""
    return {value.target.name for value in item.initial or () if isinstance(value, AddressOf | TensorMapValue)}


def _declaration(item: Object, space: str) -> Variable:
    initial = item.initial
    if initial is not None and not initial and space in ("global", "const"):
        initial = None  # zero
    return Variable(item.name, item.span, space, item.type, item.count, initial, None, item.alignment)


def _observed(kernel: Kernel, first: int) -> list[frozenset[str]]:
    """For each thread of a grid, the first of which is P``first``, the registers that the condition names."""
    found: list[set[str]] = [set() for _ in kernel.grid.threads]
    for term in terms(kernel.launch.condition):
        if isinstance(term, NameTerm) and term.thread is not None and term.name in kernel.code.registers:
            number = term.thread.removeprefix("P")
            if number.isdigit() and 0 <= int(number) - first < len(found):
                found[int(number) - first].add(term.name)
    return list(map(frozenset, found))


def _remarks(kernels: Sequence[Kernel], running: int) -> Iterator[str]:
    """Which threads run, where that is not all, or of several grids."""
    every = _every(kernels)
    if running == every and len(kernels) == 1:
        return
    places = [(kernel, cta, thread) for kernel in kernels for cta, thread in kernel.grid.threads]
    words = [_place(f"P{n}", *place, len(kernels) > 1) for n, place in enumerate(places[:_LISTED])]
    more = ", ..." if running > _LISTED else ""
    many = f"all {every}" if running == every else f"{running} of {every}"
    yield f"{many} threads run: {', '.join(words)}{more}"


def _every(kernels: Sequence[Kernel]) -> int:
    """How many threads are launched."""
    return sum(kernel.grid.ctas * kernel.grid.size for kernel in kernels)


def _place(name: str, kernel: Kernel, cta: int, thread: int, several: bool) -> str:
    """What thread of the launch ``name`` is."""
    found = f"{name} is thread {thread} of CTA {cta}"
    if several:
        gpu = f" on GPU {kernel.grid.gpu}" if len(kernel.launch.gpus) > 1 else ""
        found += f" of grid {kernel.grid.number} ({kernel.name}{gpu})"
    return found
