"""Integer and logic instructions of the reference on strings of bits, the first one the lowest (PTX ISA 8.5, 9.7.1, .2,
.7, .9, 9.7.10.7, .21)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxmm.ptx.ops import Type

B32 = Type("b", 32)
Args = Sequence[int]


def string(value: int, width: int) -> str:
    return format(value % (1 << width), f"0{width}b")[::-1]


def number(bits: str, signed: bool = False) -> int:
    """The number that ``bits`` stand for."""
    value = int(bits[::-1] or "0", 2)
    return value - (1 << len(bits)) if signed and bits.endswith("1") else value


def typed(kind: Type, value: int) -> int:
    return number(string(value, kind.bits), kind.signed)


def limited(value: int, bits: int = 32, signed: bool = True) -> int:
    low = -(1 << bits - 1) if signed else 0
    return sorted((low, value, low + (1 << bits) - 1))[1]


def halves(name: str, modes: list[str], a: int, b: int) -> int:
    half = Type(modes[-1][0], 16)
    out = ""
    for i in (0, 16):
        x, y = (typed(half, v >> i) for v in (a, b))
        value = {"add": x + y, "min": min(x, y), "max": max(x, y)}[name]
        out += string(max(value, 0) if "relu" in modes else value, 16)
    return number(out)


def dot(name: str, modes: list[str], kind: Type, args: Args) -> int:
    a, b, c = args
    count, width = (4, 8) if name == "dp4a" else (2, 16)
    first = string(a, 32)
    second = string(b, 32)[16 if modes[0] == "hi" else 0 :]
    for i in range(count):
        x = number(first[i * width : (i + 1) * width], kind.signed)
        c += x * number(second[8 * i : 8 * i + 8], modes[-1] == "s32")
    return c


def divided(name: str, kind: Type, args: Args) -> int:
    a, b = (typed(kind, v) for v in args)
    if b == 0:
        return -1 if name == "div" else a  # nothing depends on it: the execution has no meaning
    size = abs(a) // abs(b)
    quotient = size if a * b >= 0 else -size
    return quotient if name == "div" else a - quotient * b


def field(kind: Type, a: int, start: int, length: int) -> int:
    bits, start, length = string(a, kind.bits), start % 256, length % 256
    if not length:
        return 0
    sign = bits[min(start + length, kind.bits) - 1] if kind.signed else "0"
    return number((bits[start : start + length] + sign * kind.bits)[: kind.bits])


def inserted(kind: Type, a: int, b: int, start: int, length: int) -> int:
    into, start = list(string(b, kind.bits)), start % 256
    into[start : start + length % 256] = string(a, kind.bits)[: length % 256][: max(0, kind.bits - start)]
    return number("".join(into[: kind.bits]))


def nth(mask: int, base: int, offset: int) -> int:
    offset = typed(Type("s", 32), offset)
    ones = [i for i, bit in enumerate(string(mask, 32)) if bit == "1"]
    if offset == 0:
        found = [i for i in ones if i == base]
    elif base > 31:
        found = []
    else:
        found = [i for i in ones if i >= base] if offset > 0 else [i for i in reversed(ones) if i <= base]
    return (found + [-1] * 40)[min(max(abs(offset), 1) - 1, 39)] if found else -1


def table(modes: list[str], args: Args) -> int:
    rows = zip(*(string(v, 32) for v in args[:3]), strict=True)
    entries = string(args[3], 8)
    result = "".join(entries[int("".join(row), 2)] for row in rows)
    if not modes:
        return number(result)
    truths = ("1" in result, bool(args[4]))
    return int(all(truths) if modes == ["and"] else any(truths))


def shifted(modes: list[str], a: int, b: int, c: int) -> int:
    n = min(c, 32) if modes[1] == "clamp" else c % 32
    bits = string(a, 32) + string(b, 32)
    return number(bits[32 - n : 64 - n] if modes[0] == "l" else bits[n : n + 32])


PERMUTATIONS: dict[str, Callable[[int], str]] = {
    "f4e": lambda s: "01234567"[s : s + 4],
    "b4e": lambda s: ("0765432107654321"[8 - s :])[:4],
    "rc8": lambda s: 4 * str(s),
    "ecl": lambda s: "".join(str(max(i, s)) for i in range(4)),
    "ecr": lambda s: "".join(str(min(i, s)) for i in range(4)),
    "rc16": lambda s: "2323" if s % 2 else "0101",
}


def permuted(modes: list[str], a: int, b: int, c: int) -> int:
    bits = string(a, 32) + string(b, 32)
    if modes:
        picks = [(int(i), False) for i in PERMUTATIONS[modes[0]](c % 4)]
    else:
        picks = [((c >> 4 * i) % 8, bool(c >> 4 * i & 8)) for i in range(4)]
    found = [(bits[8 * i : 8 * i + 8], copies) for i, copies in picks]
    return number("".join(8 * byte[7] if copies else byte for byte, copies in found))


def packed(part: str, a: int, b: int, c: int = 0) -> int:
    width = int(part[1:])
    x, y = (string(limited(typed(Type("s", 32), v), width, part[0] == "s"), width) for v in (a, b))
    return number((y + x + string(c, 32))[:32])


def small_factors(kind: Type, modes: list[str], args: Args) -> int:
    x, y = (number(string(v, 24), kind.signed) for v in args[:2])
    product = number(string(x * y, 64)[16 if modes[0] == "hi" else 0 :][:32], kind.signed)
    if len(args) == 2:
        return product
    total = product + typed(kind, args[2])
    return limited(total) if modes[-1] == "sat" else total


def with_carry(name: str, kind: Type, modes: list[str], args: Args) -> int:
    if name.startswith("mad"):
        x, y = (typed(kind, v) for v in args[:2])
        skip = kind.bits if modes[0] == "hi" else 0
        total = number(string(x * y, 2 * kind.bits)[skip : skip + kind.bits]) + sum(args[2:])
    else:
        total = args[0] + sum(args[1:]) if name.startswith("add") else args[0] - sum(args[1:])
    return int(total >> kind.bits != 0) if modes[-1:] == ["cc"] else total


def extended(kind: Type, mode: str, a: int, b: int) -> int:
    if b >= 32 and mode == "clamp":
        return a
    bits = string(a, 32)[: b % 32]
    return number(bits, kind.signed)


def mask_of(mode: str, a: int, b: int) -> int:
    if mode == "clamp" and a > 31:
        return 0
    a, b = a % 32, min(b, 32) if mode == "clamp" else b % 32
    return number(("0" * a + "1" * b + "0" * 32)[:32])


def compute(op: str, kind: Type, args: Args) -> int:
    """``op`` of numbers of its types; the result still has to be cut to its width."""
    name, *modes = op.split(".")
    a = args[0]
    bits = string(a, kind.bits)
    if modes[-1:] in (["u16x2"], ["s16x2"]):
        return halves(name, modes, a, args[1])
    match name:
        case "add" | "sub" | "mad" if modes[-1:] == ["sat"]:
            x, y, *rest = (typed(kind, v) for v in args)
            return limited({"add": x + y, "sub": x - y, "mad": (x * y >> 32) + sum(rest)}[name])
        case "min" | "max":
            return max(0, (min if name == "min" else max)(typed(kind, v) for v in args))
        case "add" | "sub" | "mad" | "addc" | "subc" | "madc":
            return with_carry(name, kind, modes, args)
        case "mul24" | "mad24":
            return small_factors(kind, modes, args)
        case "sad":
            return args[2] + abs(typed(kind, a) - typed(kind, args[1]))
        case "div" | "rem":
            return divided(name, kind, args)
        case "popc":
            return bits.count("1")
        case "clz":
            return len(bits) - len(bits.rstrip("0"))
        case "bfind":
            position = bits.rfind("0" if kind.signed and bits[-1] == "1" else "1")
            return kind.bits - 1 - position if modes and position >= 0 else position
        case "brev":
            return number(bits[::-1])
        case "cnot":
            return int("1" not in bits)
        case "fns":
            return nth(*args)
        case "bfe":
            return field(kind, *args)
        case "bfi":
            return inserted(kind, *args)
        case "szext":
            return extended(kind, modes[0], *args)
        case "bmsk":
            return mask_of(modes[0], *args)
        case "dp4a" | "dp2a":
            return dot(name, modes, kind, args)
        case "lop3":
            return table(modes, args)
        case "shf":
            return shifted(modes, *args)
        case "prmt":
            return permuted(modes, *args)
        case "cvt":
            return packed(modes[1], *args)
    raise NotImplementedError(op)
