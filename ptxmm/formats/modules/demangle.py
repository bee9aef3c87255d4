"""The names of C++ that nvcc has put into a module: ``_ZN2ns6kernelIfLi4EEEvPT_`` is ``ns::kernel<float, 4>``.

Itanium C++ ABI, 5.1: names with their template arguments, and the types of parameters, which tell functions of one name
apart. What kernels and their variables are hardly ever called (operators, expressions, types of functions as
arguments) keeps the name that it has.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_TYPES = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double", "z": "...",
    "Dh": "half", "Di": "char32_t", "Ds": "char16_t", "Du": "char8_t", "Dn": "decltype(nullptr)", "DF16_": "_Float16",
    "DF16b": "std::bfloat16_t",
}  # fmt: skip
_STANDARD = {
    "St": "std", "Sa": "std::allocator", "Sb": "std::basic_string", "Ss": "std::string", "Si": "std::istream",
    "So": "std::ostream", "Sd": "std::iostream",
}  # fmt: skip
_AROUND = {
    "P": "*", "R": "&", "O": "&&", "K": " const", "V": " volatile", "r": " restrict", "Dp": "...",
}  # fmt: skip
_SUFFIXES = {
    "int": "",
    "unsigned int": "u",
    "long": "l",
    "unsigned long": "ul",
    "long long": "ll",
    "unsigned long long": "ull",
}
_INTERNAL = re.compile(r"\b_INTERNAL_\w+::")
"""The namespace that nvcc puts around what is static."""
_WORD = re.compile(r"\(anonymous namespace\)|(?:operator\(\)|[A-Za-z_$][\w$]*)(?:\[abi:\w+\])?")
_INSIDE = re.compile(r"[\w\s,:*&<>()$#{}-]")
_HIDDEN = "\0"
"""Stands for what no name has that is shown: a template parameter, the type of a function or of an array."""


class _Unknown(Exception):
    """A name that is not read here."""


def demangled(name: str) -> str | None:
    """The name of C++ that ``name`` of a module stands for, with its template arguments and without parameters; None
    for other names."""
    return _shown(name, lambda reader: reader.name())


def parameters(name: str) -> str | None:
    """The types of the parameters of the function that ``name`` of a module stands for, or that declares the variable
    that it stands for: ``int*, float``; None where they are not read."""

    def read(reader: _Reader) -> str:
        local = reader.takes("Z")
        called = reader.name()
        return reader.parameters(called, lambda: reader.takes("E") if local else reader.at == len(name))

    return _shown(name, read)


def qualified(text: str, start: int = 0) -> int:
    """Where the name of C++ that begins at ``text[start]`` ends, if it has several parts or template arguments, as in
    ``ns::kernel<float>::tile`` and ``kernel(int*)::tile``; ``start`` for other text."""
    end = start
    at = start + 2 * text.startswith("::", start)
    while (word := _WORD.match(text, at)) is not None:
        if at > start:
            end = word.end()
        at = word.end()
        if text.startswith("<", at) and (closed := _closed(text, at)) != at:
            at = closed
            if not re.match(r"\s*\w", text[at : at + 80]):  # no comparison of two
                end = at
        if text.startswith("(", at):
            at = _closed(text, at)
        if not text.startswith("::", at):
            break
        at += 2
    return end


def _closed(text: str, start: int) -> int:
    """Where the brackets that open at ``text[start]`` are closed again; ``start`` where they are not."""
    depth = 0
    for at in range(start, min(len(text), start + 4096)):
        letter = text[at]
        depth += (letter in "<(") - (letter in ">)")
        if depth == 0:
            return at + 1
        if _INSIDE.match(letter) is None:
            break
    return start


def _shown(name: str, read: Callable[[_Reader], str]) -> str | None:
    """What ``read`` makes of a mangled ``name``, if nothing of it is hidden."""
    if not name.startswith("_Z") or len(name) > 4096:
        return None
    try:
        found = read(_Reader(name))
    except (_Unknown, IndexError, RecursionError):
        return None
    return None if _HIDDEN in found else _INTERNAL.sub("", found)


class _Reader:
    """The rest of a mangled name, ``text[at:]``; ``seen``: what substitutions stand for; ``own``: the arguments of the
    template that was read last, ``given``: those that parameters of templates stand for."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 2
        self.seen: list[str] = []
        self.own: list[str] = []
        self.given: list[str] = []

    def here(self, *words: str) -> bool:
        return self.text.startswith(words, self.at)

    def takes(self, word: str) -> bool:
        found = self.here(word)
        self.at += len(word) * found
        return found

    def match(self, pattern: str) -> str:
        found = re.compile(pattern).match(self.text, self.at)
        if found is None:
            raise _Unknown
        self.at = found.end()
        return found[0]

    def word(self, known: dict[str, str]) -> str | None:
        """The one of ``known`` that stands here, read past, or None."""
        for length in (5, 2, 1):
            word = self.text[self.at : self.at + length]
            if word in known:
                self.at += len(word)
                return word
        return None

    def until_end(self, read: Callable[[], str]) -> list[str]:
        found: list[str] = []
        while not self.takes("E"):
            found.append(read())
        return found

    def note(self, found: str) -> str:
        self.seen.append(found)
        return found

    # Names (5.1.3).

    def name(self) -> str:
        if self.takes("N"):
            return self.nested()
        if self.takes("Z"):
            return self.local()
        if self.here("S") and not self.here("St"):
            found = self.substitution()
        else:
            found = ("std::" if self.takes("St") else "") + self.plain()
            if self.here("I"):
                self.note(found)
        return found + self.arguments() if self.here("I") else found

    def nested(self) -> str:
        self.match("[rVK]*[RO]?")
        found = ""
        while not self.takes("E"):
            known = self.here("S")
            if known:
                found = self.substitution()
            elif self.here("I"):
                found += self.arguments()
            elif self.here("T"):
                found = self.parameter()
            else:
                found += ("::" if found else "") + self.plain()
            if not known and not self.here("E"):
                self.note(found)
        return found

    def local(self) -> str:
        """What is declared in a function: ``kernel<float>::s``."""
        found = self.name()
        self.until_end(self.type)
        if self.takes("d"):
            self.match("[0-9]*_")
        found += "::" + self.name()
        if self.here("_"):
            self.match("_[0-9]|__[0-9]+_")
        return found

    def parameters(self, called: str, ends: Callable[[], bool]) -> str:
        """The types of the parameters of a function whose name was read; that of the result comes before them if it is
        one of a template, as the Itanium C++ ABI has it."""
        template = called.endswith(">")
        self.given = self.own if template else []
        found: list[str] = []
        while not ends():
            found.append(self.type())
        found = found[template:]
        return "" if found == ["void"] else ", ".join(filter(None, found))

    def plain(self) -> str:
        self.takes("L")  # of internal linkage
        if self.takes("Ut"):
            return f"{{unnamed type#{self.number()}}}"
        if self.takes("Ul"):
            types = ", ".join(type_ for type_ in self.until_end(self.type) if type_ != "void")
            return f"{{lambda({types})#{self.number()}}}"
        found = "operator()" if self.takes("cl") else self.source()
        while self.takes("B"):
            found += f"[abi:{self.source()}]"
        return found

    def source(self) -> str:
        size = int(self.match("[1-9][0-9]{0,3}"))
        found = self.text[self.at : self.at + size]
        if len(found) < size:
            raise _Unknown
        self.at += size
        return "(anonymous namespace)" if found.startswith("_GLOBAL__N_") else found

    def number(self) -> int:
        """``_``, ``0_``, ``1_``, ... are 1, 2, 3, ..."""
        digits = self.match("[0-9]*_")[:-1]
        return int(digits) + 2 if digits else 1

    # Template arguments and literals.

    def arguments(self) -> str:
        self.match("I")
        self.own = self.until_end(self.argument)
        return f"<{', '.join(filter(None, self.own))}>"

    def argument(self) -> str:
        if self.takes("J"):
            return ", ".join(self.until_end(self.argument))
        if self.takes("XadL"):
            found = f"&{self.literal()}"
            self.match("E")
            return found
        return self.literal() if self.takes("L") else self.type()

    def literal(self) -> str:
        if self.takes("_Z"):
            found = self.name()
            self.until_end(self.type)
            return found
        type_, value = self.type(), self.match("n?[0-9a-f]*").replace("n", "-")
        self.match("E")
        if type_ == "bool":
            return "true" if value == "1" else "false"
        return value + _SUFFIXES[type_] if type_ in _SUFFIXES else f"({type_}){value}"

    # Types (5.1.5).

    def type(self) -> str:
        if signs := self.match("[VKr]*"):
            return self.note(self.type() + "".join(_AROUND[letter] for letter in reversed(signs)))
        if self.given and self.takes("Dp"):
            return self.note(self.type() if self.here("T") else _HIDDEN)
        if (sign := self.word(_AROUND)) is not None:
            return self.note(self.type() + _AROUND[sign])
        if (builtin := self.word(_TYPES)) is not None:
            return _TYPES[builtin]
        if self.takes("F"):
            self.takes("Y")
            self.until_end(self.type)
            return self.note(_HIDDEN)
        if self.takes("A"):
            self.match("[0-9]*_")
            return self.note(self.type() + _HIDDEN)
        if self.takes("u"):
            return self.note(self.source())
        known = self.here("S") and not self.here("St")
        if not known and not self.here("T"):
            return self.note(self.name())
        found = self.substitution() if known else self.note(self.parameter())
        return self.note(found + self.arguments()) if self.here("I") else found

    def parameter(self) -> str:
        number = self.match("T[0-9]*_")[1:-1]
        return self.given[int(number) + 1 if number else 0] if self.given else _HIDDEN

    def substitution(self) -> str:
        """``S_``, ``S0_``, ... are the first, the second, ... that were seen."""
        if (standard := self.word(_STANDARD)) is not None:
            return _STANDARD[standard]
        digits = self.match("S[0-9A-Z]*_")[1:-1]
        return self.seen[int(digits, 36) + 1 if digits else 0]
