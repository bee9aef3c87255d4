"""How ptxmm and its peers are called, and what they answer."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ptxmm import __version__

ROOT = Path(__file__).resolve().parents[2]

State = frozenset[tuple[str, int]]


class Sample(NamedTuple):
    """A test, and what is known of its answers: whether its condition holds, and how many final states it has."""

    file: Path
    holds: tuple[bool, ...] = ()
    """One for each question of the file."""
    states: int | None = None
    twin: Path | None = None
    """The same for herd7."""
    same: bool = True
    """Whether the twin has the same final states, or some of them."""


class Answer(NamedTuple):
    """What a tool says of one question."""

    holds: bool | None = None
    states: frozenset[State] | None = None
    seconds: float = 0.0
    """As the tool reports them, without the reading of the file."""


@dataclass(frozen=True)
class Tool:
    """How a program is called (with a file at a time or all), and what its output says of each file."""

    name: str
    version: str
    command: Callable[[Sequence[Sample], Sequence[str]], list[str]]
    """For samples, and the arguments of ptxmm."""
    answers: Callable[[str, Sequence[Sample]], list[list[Answer]]]
    environment: Mapping[str, str] = field(default_factory=dict)
    many: bool = True


def ptxmm() -> Tool:
    """This tree."""

    def command(samples: Sequence[Sample], arguments: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "ptxmm", *arguments, *(str(sample.file) for sample in samples)]

    def answers(output: str, samples: Sequence[Sample]) -> list[list[Answer]]:
        found: dict[str, list[Answer]] = {str(sample.file): [] for sample in samples}
        if output.startswith("{"):
            for result in (r for r in json.loads(output)["results"] if "error" not in r):
                states = [frozenset({**o["registers"], **o["memory"]}.items()) for o in result["outcomes"]]
                listed = frozenset(states) if result["listed"] else None
                found[result["file"]].append(Answer(result["holds"], listed, result["seconds"]))
        elif samples[0].file.is_dir():
            checked = re.search(r"^(\d+) checked in .*: (\d+) as expected", output, re.MULTILINE)
            numbers = [int(n) for n in checked.groups()] if checked else [0, 0]
            return [[Answer(i < numbers[1]) for i in range(numbers[0])]]
        else:
            for line in re.finditer(r"^(?:ok|FAIL|\?|-) +(\S+) .*(?:exists|forall): (\w+|\?)", output, re.MULTILINE):
                found[line[1]].append(Answer({"yes": True, "no": False}.get(line[2])))
        return list(found.values())

    bytecode = f"{tempfile.gettempdir()}/ptxmm-benchmark-bytecode"
    # As installed: with compiled modules, whatever this shell says about writing them.
    environment = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": bytecode}
    return Tool("ptxmm", f"{__version__}, Python {platform.python_version()}", command, answers, environment)


def dartagnan(folder: Path, method: str) -> Tool:
    """Dartagnan by one of its methods, with its model of PTX ISA 7.5 and its default bound."""

    def command(samples: Sequence[Sample], arguments: Sequence[str]) -> list[str]:
        start = ["java", "-jar", str(folder / "dartagnan/target/dartagnan.jar"), str(folder / "cat/ptx-v7.5.cat")]
        return [*start, "--property=program_spec", f"--method={method}", *(str(sample.file) for sample in samples)]

    def answers(output: str, samples: Sequence[Sample]) -> list[list[Answer]]:
        found = {}
        for block in re.split(r"^Test: ", output, flags=re.MULTILINE)[1:]:
            result, seconds = (
                re.search(r"Result: (\w+)", block),
                re.search(r"Time: (?:(\d+):)?([\d.]+) (?:secs|mins)", block),
            )
            if result:
                duration = 60 * int(seconds[1] or 0) + float(seconds[2]) if seconds else 0.0
                holds = {"PASS": True, "FAIL": False}.get(result[1])
                found[block.split("\n", 1)[0]] = [Answer(holds, None, duration)]
        return [found.get(str(sample.file), []) for sample in samples]

    environment = {"DAT3M_HOME": str(folder), "DAT3M_OUTPUT": tempfile.gettempdir()}
    return Tool(f"Dartagnan {method}", f"{commit(folder)}, {java()}", command, answers, environment)


def nvlitmus(folder: Path) -> Tool:
    """NVlabs' translator to Alloy, a process for each file."""

    def command(samples: Sequence[Sample], arguments: Sequence[str]) -> list[str]:
        return ["python3", str(folder / "src/test_to_alloy.py"), str(samples[0].file)]

    def answers(output: str, samples: Sequence[Sample]) -> list[list[Answer]]:
        said = re.findall(r"^(?!sanity)\w+: (?:UN)?SAT, .*(matches|breaks) expectation", output, re.MULTILINE)
        return [[Answer(word == "matches") for word in said]]

    return Tool("nvlitmus", f"{commit(folder)}, {java()}", command, answers, many=False)


def herd(folder: Path) -> Tool:
    """herd7 on the twins for AArch64, with its default model."""
    built = str(folder / "_build/default/herd/herd.exe")

    def command(samples: Sequence[Sample], arguments: Sequence[str]) -> list[str]:
        return [built, "-set-libdir", str(folder / "herd/libdir"), *(str(sample.twin) for sample in samples)]

    return Tool("herd7", said(built, "-version").split(",")[0], command, herd_answers)


def herd_answers(output: str, samples: Sequence[Sample]) -> list[list[Answer]]:
    """The lists of herd7, in our names of registers."""
    found = {}
    for block in re.split(r"^Test ", output, flags=re.MULTILINE)[1:]:
        listed = re.search(r"^States \d+\n((?:.*;\n)*)(\w+)", block, re.MULTILINE)
        if listed:
            states = frozenset(frozenset(_terms(line)) for line in listed[1].splitlines())
            found[block.split()[0]] = [Answer(listed[2] == "Ok", states)]
    return [found.get(sample.file.stem, []) for sample in samples]


def _terms(line: str) -> Iterator[tuple[str, int]]:
    for thread, register, place, value in re.findall(r"(?:(\d+):X(\d+)|\[(\w+)\])=(\d+);", line):
        yield place or f"P{thread}:r{register}", int(value)


def said(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout


def commit(folder: Path) -> str:
    """The commit that is checked out there."""
    return said("git", "-C", str(folder), "rev-parse", "--short", "HEAD").strip()


def java() -> str:
    """The version of Java."""
    version = re.search(r'"(\d+)', said("java", "-version"))
    return f"Java {version[1] if version else '?'}"
