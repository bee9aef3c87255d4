"""One kernel of a module as one list of instructions: calls are replaced by the bodies of the functions they call.

What is left is syntax: names of registers, labels and variables are unique, special registers are registers with the
names of ``special``, parameters are registers (of functions) or constants (of the kernel). PTX ISA 7.1, 9.7.13.5.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ptxmm.errors import PtxmmError
from ptxmm.formats.modules.grids import Grid
from ptxmm.formats.modules.launch import Launch
from ptxmm.formats.modules.library import ATOMICS, ENDS, HARMLESS, INTRINSICS
from ptxmm.formats.modules.parameters import Parameter, arguments
from ptxmm.formats.modules.special import SPECIAL, special_name
from ptxmm.formats.text import at
from ptxmm.program.test import TRAP
from ptxmm.ptx import syntax
from ptxmm.ptx.module_syntax import BranchTargets, Call, Function, Module, Place, Variable
from ptxmm.ptx.ops import Type

MAX_INSTRUCTIONS = 100_000
_MAX_DEPTH = 100
_PARAM = ("param", "param::entry", "param::func")
_IGNORED = ("brkpt", "pmevent")
_SCALARS = ("ld", "ldu", "st", "atom", "red", "mov")


class Step(Struct, frozen=True):
    """An instruction of the flat list. ``refusal``: why it can't be modelled; ``effect``: it may do more than give its
    registers values, so that the refusal counts wherever it is executed."""

    instruction: syntax.Instruction
    place: Place | None
    refusal: PtxmmError | None = None
    effect: bool = False


class Flat(Struct):
    """A kernel with its calls inlined: steps and labels in order, registers and variables by their unique names.

    ``remarks``: what the reader of a verdict has to know, each once. ``by_value``: the objects that are parameters.
    ``addressed``: the parameters of the kernel whose address is taken. ``trapping``: a trap is an access at ``TRAP``.
    """

    statements: list[Step | str] = field(default_factory=list)
    registers: dict[str, Type] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    remarks: dict[str, None] = field(default_factory=dict)
    by_value: frozenset[str] = frozenset()
    addressed: dict[str, Parameter] = field(default_factory=dict)
    trapping: bool = False


def inline(module: Module, kernel: Function, launch: Launch, grid: Grid, trapping: bool = False) -> Flat:
    """The flat list of ``kernel`` with the arguments of ``grid``; ``trapping``: see ``Flat``.

    Raises ``PtxmmError``: arguments that do not fit, recursion, more than ``MAX_INSTRUCTIONS`` instructions.
    """
    parameters = arguments(kernel, launch, grid, module.address_size == 32)
    whole = frozenset(p.whole for p in parameters.values() if p.whole is not None)
    flat = Flat(by_value=whole, trapping=trapping)
    _Frame(module, flat, kernel, parameters, {}, 0, (kernel.name,)).run()
    return flat


class _Frame:
    """One function being inlined. ``aliases``: for its formal parameters the variables of the call; ``number``: 0 for
    the kernel; ``chain``: the functions that are being inlined."""

    def __init__(
        self,
        module: Module,
        flat: Flat,
        function: Function,
        parameters: Mapping[str, Parameter],
        aliases: Mapping[str, str],
        number: int,
        chain: tuple[str, ...],
    ) -> None:
        self.module, self.flat, self.function, self.chain = module, flat, function, chain
        self.parameters, self.aliases = parameters, aliases
        self.suffix = f"${number}" if number else ""
        self.end = f"return{self.suffix}"
        self.targets = {
            line.statement.name: line.statement
            for line in function.body or ()
            if isinstance(line.statement, BranchTargets)
        }
        self.params = {v.name for v in function.variables if v.space == "param"} | set(aliases)
        for name, type_ in function.registers.items():
            flat.registers[self.register(name)] = type_
        for variable in function.variables:
            if variable.space != "param":
                flat.variables[self.variable(variable)] = replace(variable, name=self.variable(variable))

    def register(self, name: str) -> str:
        return name.replace(".", "@") + self.suffix

    def variable(self, variable: Variable) -> str:
        # A .shared variable of a function is one object, wherever the function is inlined (PTX ISA 5.1.7).
        return variable.name if variable.space != "local" else variable.name + self.suffix

    def slot(self, name: str) -> str:
        return self.aliases.get(name, name + self.suffix)

    def run(self) -> None:
        for line in self.function.body or ():
            statement, self.place = line.statement, line.place
            if isinstance(statement, syntax.Label):
                self.flat.statements.append(statement.name + self.suffix)
            elif isinstance(statement, Call):
                self.item = syntax.Instruction("call", (), (), None, statement.span, statement.span, statement.text)
                self.call(statement)
            elif isinstance(statement, syntax.Instruction):
                self.item = statement
                self.instruction(statement)
            if len(self.flat.statements) > MAX_INSTRUCTIONS:
                message = f"the kernel has more than {MAX_INSTRUCTIONS} instructions once its calls are inlined"
                raise at(message, self.function.span, kind="unsupported")
        if self.suffix:
            self.flat.statements.append(self.end)

    # Instructions. ``item`` is the one of the function that is being replaced, at ``place``.

    def add(self, instruction: syntax.Instruction, refusal: PtxmmError | None = None, effect: bool = False) -> None:
        self.flat.statements.append(Step(instruction, self.place, refusal, effect))

    def emit(
        self,
        mnemonic: str,
        *operands: syntax.Operand,
        guard: syntax.Guard | None = None,
        refusal: PtxmmError | None = None,
    ) -> None:
        """Another instruction in the place of ``item``."""
        opcode, *words = mnemonic.split(".")
        qualifiers = tuple((word, self.item.opcode_span) for word in words)
        self.add(replace(self.item, opcode=opcode, qualifiers=qualifiers, operands=operands, guard=guard), refusal)

    def number(self, value: int) -> syntax.Number:
        return syntax.Number(value, self.item.span)

    def new(self, name: str, type_: Type) -> syntax.Name:
        """A register of the flat list."""
        self.flat.registers[name] = type_
        return syntax.Name(name, self.item.span, True)

    def instruction(self, item: syntax.Instruction) -> None:
        words = {word for word, _ in item.qualifiers}
        memory = [operand for operand in item.operands if isinstance(operand, syntax.Memory)]
        if item.opcode in ("ld", "st") and words & set(_PARAM) and len(memory) == 1:
            self.parameter(item, memory[0])
            return
        if item.opcode in _IGNORED:
            return
        if item.opcode == "brx":
            self.indexed(item)
            return
        if item.opcode in _SCALARS:  # Triton writes [a], {r} for one element, and so may others
            item = replace(item, operands=tuple(map(_unwrapped, item.operands)))
        renamed = self.renamed(item)
        target = item.operands[-1] if item.operands else None
        if item.opcode == "ret" and self.suffix:
            self.emit("bra.uni", syntax.Name(self.end, item.span), guard=renamed.guard)
        elif item.opcode == "trap":
            self.trap(renamed.guard, "`trap`")
        elif item.opcode == "bra" and isinstance(target, syntax.Name):
            self.add(replace(renamed, operands=(replace(target, name=target.name + self.suffix),)))
        else:
            self.add(renamed)

    def renamed(self, item: syntax.Instruction) -> syntax.Instruction:
        return replace(item, operands=tuple(map(self.operand, item.operands)), guard=self.guard(item.guard))

    def guard(self, guard: syntax.Guard | None) -> syntax.Guard | None:
        return None if guard is None else replace(guard, name=self.name(guard.name))

    def name(self, name: syntax.Name) -> syntax.Name:
        """A register, special register, label or variable by its unique name; registers have their ``%``."""
        if name.name in self.function.registers:
            return syntax.Name(self.register(name.name), name.span, True)
        special = special_name(name) if name.name in SPECIAL or name.percent else None
        if special is not None:
            self.flat.registers[special] = SPECIAL[name.name]
            return syntax.Name(special, name.span, True)
        found = self.parameters.get(name.name)
        if found is not None and found.whole is not None:
            return replace(name, name=found.whole)
        if found is not None:
            self.flat.addressed[name.name] = found
        for variable in self.function.variables:
            if variable.name == name.name:
                return replace(name, name=self.variable(variable))
        return name

    def operand(self, operand: syntax.Operand) -> syntax.Operand:
        return syntax.mapped(operand, self.name)

    def indexed(self, item: syntax.Instruction) -> None:
        """``brx.idx``: a branch for each target (PTX ISA 9.7.13.4). An index beyond them has no meaning:
        after the branches comes an access at address 0, where nothing is."""
        if len(item.operands) != 2:
            hint = "write `brx.idx %r1, targets;` with `targets: .branchtargets L1, L2;` before it"
            raise at("`brx.idx` has an index and a list of targets", item.span, kind="syntax", hint=hint)
        targets = self.targets.get(item.operands[1].name) if isinstance(item.operands[1], syntax.Name) else None
        if targets is None:
            name = getattr(item.operands[1], "name", "")
            raise at(f"no `.branchtargets` is called `{name}`", item.span, kind="name")
        if item.guard is not None:
            raise at("`brx.idx` with a guard is not supported", item.span, kind="unsupported")
        chosen = self.new(f"brx{self.suffix}", Type("pred", 1))
        index = self.operand(item.operands[0])
        for number, label in enumerate(targets.labels):
            self.emit("setp.eq.u32", chosen, index, self.number(number))
            target = syntax.Name(label + self.suffix, item.span)
            self.emit("bra", target, guard=syntax.Guard(chosen, False, item.span))
        nothing = self.new(f"brx nothing{self.suffix}", Type("b", 32))
        self.emit("ld.b32", nothing, syntax.Memory(self.number(0), 0, item.span))

    def trap(self, guard: syntax.Guard | None, what: str) -> None:
        """The end of a thread; where it is looked for, after an access at ``TRAP``."""
        if not self.flat.trapping:
            self.flat.remarks[f"{what} is taken for the end of its thread"] = None
            self.emit("exit", guard=guard)
            return
        after = f"trap{len(self.flat.statements)}{self.suffix}"
        if guard is not None:
            self.emit("bra", syntax.Name(after, self.item.span), guard=replace(guard, negated=not guard.negated))
        self.emit("ld.b8", self.new("trap nothing", Type("b", 16)), syntax.Memory(self.number(TRAP), 0, self.item.span))
        self.emit("exit")
        if guard is not None:
            self.flat.statements.append(after)

    # Parameters.

    def parameter(self, item: syntax.Instruction, memory: syntax.Memory) -> None:
        """``ld.param`` and ``st.param``: from constants, or through registers that stand for the parameter."""
        type_ = _type_of(item)
        base = memory.base
        if isinstance(base, syntax.Name) and base.name in self.function.registers:
            self.add(self.renamed(item))
            return
        if not isinstance(base, syntax.Name) or type_ is None:
            self.add(self.renamed(item), self.no_parameter())
            return
        value = next(o for o in item.operands if not isinstance(o, syntax.Memory))
        items = value.items if isinstance(value, syntax.Vector) else (value,)
        for number, element in enumerate(items):
            offset = memory.offset + number * type_.bytes
            if isinstance(element, syntax.Name) and element.name == "_":
                continue
            if item.opcode == "st":
                self.pass_value(self.slot(base.name), offset, type_, self.operand(element))
            elif isinstance(element, syntax.Name) and base.name in self.parameters:
                self.take_constant(self.parameters[base.name], offset, type_, element)
            elif isinstance(element, syntax.Name):
                self.take_value(self.slot(base.name), offset, type_, element)

    def no_parameter(self) -> PtxmmError:
        return at("this access to a parameter is not supported", self.item.span, kind="unsupported")

    def take_constant(self, parameter: Parameter, offset: int, type_: Type, register: syntax.Name) -> None:
        guard = self.guard(self.item.guard)
        target = self.name(register)
        width = self.flat.registers[target.name].bits if target.name in self.flat.registers else max(16, type_.bits)
        found = parameter.addresses.get(offset)
        if found is not None and type_.bytes == 8:
            name = syntax.Name(found[0], self.item.span)
            self.emit("mov.u64", target, syntax.Sum(name, found[1], self.item.span) if found[1] else name, guard=guard)
            return
        inside = range(offset, offset + type_.bytes)
        if (
            any(i not in parameter.bytes for i in inside)
            or any(o - type_.bytes < offset < o + 8 for o in parameter.addresses)
            or parameter.opaque(offset, type_.bytes)
        ):
            self.emit(f"mov.b{width}", target, self.number(0), refusal=self.no_parameter())
            return
        value = sum(parameter.bytes[i] << 8 * n for n, i in enumerate(inside))
        if type_.signed and value >> type_.bits - 1:
            value -= 1 << type_.bits
        self.emit(f"mov.b{width}", target, self.number(value & ((1 << width) - 1)), guard=guard)

    def pass_value(self, slot: str, offset: int, type_: Type, value: syntax.Operand) -> None:
        """``st.param``: 8 and 16 bits are kept in registers of 32, zero-extended."""
        width = max(type_.bits, 32)
        target = self.new(f"{slot}@{offset}", Type("b", width))
        guard = self.guard(self.item.guard)
        if type_.bits >= 32:
            self.emit(f"mov.b{width}", target, value, guard=guard)
            return
        if isinstance(value, syntax.Name) and (bits := self.flat.registers[value.name].bits) != 32:
            self.emit(f"cvt.u32.u{bits}", target, value, guard=guard)
            value = target
        mask = self.number((1 << type_.bits) - 1)
        if isinstance(value, syntax.Number):
            self.emit("mov.b32", target, replace(value, value=value.value & mask.value), guard=guard)
        else:
            self.emit("and.b32", target, value, mask, guard=guard)

    def take_value(self, slot: str, offset: int, type_: Type, register: syntax.Name) -> None:
        """``ld.param`` of what ``st.param`` or a function left there."""
        target = self.name(register)
        source = syntax.Name(f"{slot}@{offset}", self.item.span, True)
        guard = self.guard(self.item.guard)
        held = self.flat.registers.get(source.name)
        width = self.flat.registers[target.name].bits if target.name in self.flat.registers else type_.bits
        if held is None or held.bits != max(type_.bits, 32):
            self.emit(f"mov.b{width}", target, self.number(0), refusal=self.no_parameter())
        elif width == type_.bits >= 32:
            self.emit(f"mov.b{width}", target, source, guard=guard)
        else:
            kind = "s" if type_.signed else "u"
            self.emit(f"cvt.{kind}{width}.{kind}{type_.bits}", target, source, guard=guard)

    # Calls.

    def call(self, call: Call) -> None:
        name = call.function.name
        if call.guard is not None:
            label = f"after{len(self.flat.statements)}"
            guard = self.guard(replace(call.guard, negated=not call.guard.negated))
            self.emit("bra", syntax.Name(label, call.span), guard=guard)
            self.call(replace(call, guard=None))
            self.flat.statements.append(label)
            return
        function = self.module.functions.get(name)
        if call.targets is not None or name in self.function.registers:
            self.unknown("calls through a pointer are not supported")
        elif function is None or function.body is None:
            self.external(call, name)
        elif name in self.chain:
            self.unknown(f"`{name}` calls itself, which is not supported")
        elif len(self.chain) > _MAX_DEPTH:
            self.unknown(f"calls are nested more than {_MAX_DEPTH} deep")
        else:
            self.enter(call, function)

    def enter(self, call: Call, function: Function) -> None:
        formals = (*function.parameters, *function.returns)
        if len(function.parameters) != len(call.arguments) or len(function.returns) != len(call.returns):
            raise at(f"`{function.name}` takes other arguments", call.span, kind="isa")
        number = len(self.flat.statements)
        aliases: dict[str, str] = {}
        before: list[tuple[Variable, syntax.Operand]] = []
        for formal, actual in zip(formals, (*call.arguments, *call.returns), strict=True):
            if formal.space == "param":
                passed = actual.name if isinstance(actual, syntax.Name) and actual.name in self.params else None
                aliases[formal.name] = f"{formal.name}${number}" if passed is None else self.slot(passed)
                if passed is None and formal in function.parameters:
                    self.pass_value(aliases[formal.name], 0, formal.type, self.operand(actual))
            elif formal in function.parameters:
                before.append((formal, actual))
        frame = _Frame(self.module, self.flat, function, {}, aliases, number, (*self.chain, function.name))
        for formal, actual in before:
            target = self.new(frame.register(formal.name), formal.type)
            self.emit(f"mov.b{formal.type.bits}", target, self.operand(actual))
        frame.run()
        for formal, actual in zip(function.returns, call.returns, strict=True):
            if formal.space == "param":
                if actual.name not in self.params:
                    self.take_value(aliases[formal.name], 0, formal.type, actual)
            else:
                source = syntax.Name(frame.register(formal.name), call.span, True)
                self.emit(f"mov.b{formal.type.bits}", self.name(actual), source)

    def external(self, call: Call, name: str) -> None:
        """A function that the module only declares."""
        if name in ENDS:
            self.trap(None, f"a call of `{name}`")
        elif name in HARMLESS:
            self.flat.remarks[f"`{name}` is taken to do nothing"] = None
            for result in call.returns:
                self.flat.registers[f"{self.slot(result.name)}@0"] = Type("b", 32)
        elif name in INTRINSICS:
            opcode, _, operand = INTRINSICS[name].partition(" ")
            self.emit(opcode, *([self.number(int(operand))] if operand else []))
        elif name in ATOMICS and len(call.returns) == 1:
            self.atomic(call, ATOMICS[name])
        else:
            self.unknown(f"`{name}` is not defined in this module")

    def atomic(self, call: Call, mnemonic: str) -> None:
        result = self.new(f"{self.slot(call.returns[0].name)}@0", Type("b", int(mnemonic[-2:])))
        slots = [f"{self.slot(a.name)}@0" for a in call.arguments if isinstance(a, syntax.Name)]
        address, *values = (syntax.Name(slot, call.span, True) for slot in slots)
        self.emit(mnemonic, result, syntax.Memory(address, 0, call.span), *values)

    def unknown(self, message: str) -> None:
        hint = "inline the function, or leave the call out"
        self.add(self.item, at(message, self.item.span, kind="unsupported", hint=hint), True)


def _unwrapped(operand: syntax.Operand) -> syntax.Operand:
    """The only item of a vector of one."""
    return operand.items[0] if isinstance(operand, syntax.Vector) and len(operand.items) == 1 else operand


def _type_of(item: syntax.Instruction) -> Type | None:
    """The type of ``ld`` or ``st``, which stands last."""
    word = item.qualifiers[-1][0] if item.qualifiers else ""
    kind, bits = word.rstrip("0123456789"), word.lstrip("busf")
    return Type(kind, int(bits)) if kind in ("b", "u", "s", "f") and bits.isdigit() else None
