"""Changed real inputs of every kind, given to every command: none may end in an internal error.

``python -m tests.fuzz --count 40000`` prints how many inputs of each kind there were, how they ended, and every input
that ended wrong: in a traceback, an exit code that there is not, a document that is not JSON, or half a file.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from msgspec import Struct, field

from ptxmm.cli.app import run
from ptxmm.cli.workers import Bounds, Lost, events
from ptxmm.errors import PtxmmError
from ptxmm.files import read_bytes
from ptxmm.formats import read
from tests.support import CORPORA, ROOT

SECONDS = "0.5"
"""The time limit given to the commands."""
PATIENCE = 10.0
"""Seconds after which an input is given up: a command of its own process would have been ended long before."""
_BATCH = 50
_MOST = 6000
"""Bytes of the largest input that is changed."""

ANALYSES = ("check", "outcomes", "explain", "races", "fences", "robust", "scopes", "progress")
_TOKEN = re.compile(r"\s+|\.?[A-Za-z_%$][\w$]*|[0-9]+|\S")
_WORDS = """
.relaxed .acquire .release .acq_rel .sc .weak .volatile .mmio .cta .cluster .gpu .sys .u8 .u16 .u32 .u64 .s32 .s64 .b8
.b32 .b64 .b128 .f32 .f64 .pred .v2 .v4 .global .shared .local .param .const .async .mbarrier .try_wait .arrive .init
.expect_tx .bulk .tensor .multimem .exch .cas .add .inc .noftz .sync .aligned .warp .idx .uni ld st atom red fence
membar bar barrier mbarrier cp wgmma shfl activemask bra brx ret exit call setp mov cvta mapa x y z p q r0 %r1 %rd1
%tid.x %ctaid.x %clock P0 P1 cta warp grid gpu cluster host overlap generic aliases unknown 0 1 2 3 63 64 -1 0x
0xffffffff 1.5 0f3f800000 1e999 nan 18446744073709551616 99999999999999999999 & + - * / % @ ! : ; | [ ] ( ) { } , ==
!= < <= > >= = ~ \\/ /\\ && || ? " ' ` exists forall ~exists filter locations Expect= ISA= never sometimes always
undefined none +deadlock not if for while let rec and acyclic irreflexive empty flag as include _ id emptyset po rf co
fr fsc rmw R W M FSC ^-1 ^+ kernel block threads args objects check launch races robust condition true false
[[launch]] [check] // ptxmm: /* */ (* *) # .version .target .address_size .visible .entry .func .reg .align .extern
.loc .file .branchtargets asm volatile "memory" :: "l"(p) "=r"(x) "n"(4) %0 %1 %% %= \\n {{ }} __global__ template
#define
"""
_OPTIONS = """
--json --all-state --all-readings --engine=both --engine=enumerate --engine=z3 --unroll=0 --unroll=1 --unroll=5
--model=sc --model=ptx-6.0 --model=ptx-7.5 --model=ptx-8.5 --model=ptx-8.5[dep=syn] --model=none --reading=dep=syn
--reading=dep=sem --reading=x=y --reading= --isa=8.0 --isa=9.0 --isa=x --most=0 --most=1 --property=never
--property=race-free --property=robust --cost=fence=9 --cost=sc=0 --cost=x=1 --state=x==1 --state=P1:r0=1 --state=(
--fairness=obe --fairness=unfair --visibility=all --timeout=nan --timeout=-1 --memory=0 --jobs=0 --launch=none.toml
--bundle -h -- --nvcc-option=-G --no-misses --models --output-format=json
"""


class Case(Struct, frozen=True):
    """An input: files by name, and the command line that is given them. ``output``: a file that it may write."""

    kind: str
    files: dict[str, bytes]
    arguments: tuple[str, ...]
    output: str | None = None


class Count(Struct):
    """How inputs ended."""

    kinds: Counter[str] = field(default_factory=Counter)
    codes: Counter[int] = field(default_factory=Counter)
    given_up: int = 0
    wrong: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """What is to be printed."""
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(self.kinds.items()))
        codes = ", ".join(f"{number} with {code}" for code, number in sorted(self.codes.items()))
        head = f"fuzz: {self.kinds.total()} inputs ({kinds}); exit codes: {codes}; {self.given_up} given up after "
        return [f"{head}{PATIENCE:g} s; {len(self.wrong)} internal errors", *self.wrong]


# -- inputs --------------------------------------------------------------------------------------------------------


@cache
def real(kind: str) -> tuple[Path, ...]:
    """Real files of a kind."""
    patterns = {
        "litmus": [(ROOT / "litmus", "**/*.litmus")],
        "untyped": [(CORPORA / "dartagnan", "**/*.litmus"), (ROOT / "litmus", "untyped/*.litmus")],
        "test": [(CORPORA / "nvlitmus", "**/*.test"), (ROOT / "litmus", "**/*.test")],
        "cat": [(ROOT / "ptxmm" / "models", "*.cat")],
        "ptx": [(ROOT / "tests" / "cuda", "*.ptx"), (ROOT / "tests" / "modules", "**/*.ptx")],
        "cu": [(ROOT / "tests" / "lint", "**/*.cu"), (ROOT / "tests" / "cuda", "*.cu")],
    }[kind]
    found = [path for folder, pattern in patterns for path in sorted(folder.glob(pattern))]
    small = [path for path in found if path.stat().st_size <= (_MOST if kind != "cat" else 10**5)]
    if kind == "ptx":
        small = [p for p in small if p.with_suffix(".cu").exists() or p.with_suffix(".toml").exists()]
    return tuple(small or real("litmus"))


def case(rng: random.Random) -> Case:
    """An input."""
    makers = (
        (24, _litmus), (10, _untyped), (6, _test), (6, _cat), (6, _ptx), (16, _lint), (8, _convert), (5, _extract),
        (3, _versions), (5, _settings), (7, _command_line), (4, _bytes),
    )  # fmt: skip
    (maker,) = rng.choices([maker for _, maker in makers], [share for share, _ in makers])
    return maker(rng)


def _given(rng: random.Random, most: int = 2) -> tuple[str, ...]:
    return tuple(rng.choice(_OPTIONS.split()) for _ in range(rng.choice((0, 0, 1, most))))


def _command(rng: random.Random) -> tuple[str, ...]:
    json = ("--json",) if rng.random() < 0.5 else ()
    return rng.choice((*ANALYSES, "check", "check")), f"--timeout={SECONDS}", "--jobs=1", *json


def _litmus(rng: random.Random, kind: str = "litmus") -> Case:
    path = rng.choice(real(kind))
    name = f"a{path.suffix}"
    return Case(kind, {name: changed(rng, read_bytes(path))}, (*_command(rng), *_given(rng), name))


def _untyped(rng: random.Random) -> Case:
    return _litmus(rng, "untyped")


def _test(rng: random.Random) -> Case:
    return _litmus(rng, "test")


def _cat(rng: random.Random) -> Case:
    test, model = rng.choice(real("litmus")), rng.choice(real("cat"))
    files = {"a.litmus": read_bytes(test), "m.cat": changed(rng, read_bytes(model))}
    if rng.random() < 0.3:
        files["n.cat"] = changed(rng, b'include "m.cat"\nlet mine = po & rf\nflag ~empty mine as mine\n')
    model_name = rng.choice([name for name in files if name.endswith(".cat")])
    return Case("cat", files, (*_command(rng), *_given(rng, 1), f"--model={model_name}", "a.litmus"))


def _kernel(rng: random.Random) -> dict[str, bytes]:
    """A module and how it is launched, one of them changed."""
    path = rng.choice(real("ptx"))
    files = {"a.ptx": read_bytes(path)}
    for suffix in (".toml", ".cu"):
        if path.with_suffix(suffix).exists():
            files[f"a{suffix}"] = read_bytes(path.with_suffix(suffix))
    which = rng.choice(list(files))
    files[which] = changed(rng, files[which])
    return files


def _ptx(rng: random.Random) -> Case:
    return Case("ptx", _kernel(rng), (*_command(rng), *_given(rng, 1), "a.ptx"))


def _extract(rng: random.Random) -> Case:
    threads = ("--threads", rng.choice(("cta 0", "cta 0-1 lane 0", "warp x", "cta 0;cta 1", ""))) * (rng.random() < 0.3)
    output = "out.litmus" if rng.random() < 0.5 else None
    where = ("-o", output) if output else ()
    return Case("extract", _kernel(rng), ("extract", f"--timeout={SECONDS}", *threads, *where, "a.ptx"), output)


def _lint(rng: random.Random) -> Case:
    path = rng.choice(real("cu"))
    form = f"--output-format={rng.choice(('text', 'json', 'sarif', 'github'))}"
    fix = ("--fix",) if rng.random() < 0.3 else ()
    extra = rng.choice(((), ("--select=ALL",), ("--isa=9.0", "--arch=sm_90"), ("-v",), ("--enable=PTX210",)))
    name = rng.choice(("a.cu", "a.cu", "b\x1b[31m.cu", "c\udcff.cu"))
    return Case("lint", {name: changed(rng, read_bytes(path))}, ("lint", form, *fix, *extra, name), name)


def _convert(rng: random.Random) -> Case:
    path = rng.choice(real(rng.choice(("litmus", "untyped", "test"))))
    to = rng.choice(("litmus", "dialect", "nvlitmus"))
    output = f"out{'.test' if to == 'nvlitmus' else '.litmus'}" if rng.random() < 0.6 else None
    where = ("-o", output) if output else ()
    name = f"a{path.suffix}"
    files = {name: changed(rng, read_bytes(path))}
    if output and rng.random() < 0.5:
        files[output] = b"old\n"
    return Case("convert", files, ("convert", f"--timeout={SECONDS}", "--to", to, *where, name), output)


def _versions(rng: random.Random) -> Case:
    path = rng.choice(real("litmus"))
    files = {"a.litmus": read_bytes(path), "b.litmus": changed(rng, read_bytes(path))}
    if rng.random() < 0.5:
        return Case("versions", files, ("compare", f"--timeout={SECONDS}", *_given(rng, 1), "a.litmus", "b.litmus"))
    models = rng.sample(("ptx-6.0", "ptx-7.5", "ptx-8.5", "sc", "x"), 2)
    return Case("versions", files, ("compare", f"--timeout={SECONDS}", "--models", *models, "b.litmus"))


def _settings(rng: random.Random) -> Case:
    text = b'[tool.ptxmm.lint]\nselect = ["ALL"]\ndisable = ["PTX101"]\nisa = "9.0"\narch = "sm_90"\nexclude = ["x*"]\n'
    name = rng.choice(("pyproject.toml", "ptxmm.toml"))
    if name == "ptxmm.toml":
        text = text.replace(b"tool.ptxmm.", b"")
    files = {name: changed(rng, text), "a.cu": read_bytes(rng.choice(real("cu")))}
    return Case("settings", files, ("lint", "--output-format=json", "."))


def _command_line(rng: random.Random) -> Case:
    # Not the root of the file system, all of which would be searched.
    words = [
        *_OPTIONS.split(),
        *(word for word in _WORDS.split() if set(word) != {"/"}),
        "a.litmus",
        "a.litmus",
        "b.litmus",
        "--cost=fence=" + "9" * 5000,
    ]
    command = rng.choice(
        (*ANALYSES, "convert", "models", "lint", "extract", "show", "new", "compare", "x", "--help", "--version")
    )
    given = [rng.choice(words) for _ in range(rng.randint(0, 4))]
    if command == "compare" and rng.random() < 0.5:
        given += [
            "--models",
            "ptx-6.0",
            "sc",
            "--generate",
            rng.choice("x0129"),
            "--kinds",
            rng.choice(("ld,st", "x", "fence")),
        ]
    files = {"a.litmus": read_bytes(rng.choice(real("litmus")))}
    limit = () if command in ("models", "lint", "new", "x", "--help", "--version") else (f"--timeout={SECONDS}",)
    return Case("options", files, (command, *limit, *given, "a.litmus"))


def _bytes(rng: random.Random) -> Case:
    suffix = rng.choice((".litmus", ".test", ".cat", ".ptx", ".toml", ".cu"))
    data = rng.choice((
        rng.randbytes(rng.randint(0, 300)),
        b"", b"\xff\xfe\x00", b"\0" * 100, b"(" * 50_000, b"[" * 50_000, b"{" * 9000, b"a" * 3000 + b" = 1",
        b"9" * 6000, b"\xef\xbb\xbf", b"PTX x\n{" + b"x = 0;" * 20_000, b"@" * 1000, b"\r" * 5000, b"/*" * 5000,
    ))  # fmt: skip
    files = {f"a{suffix}": data, "t.litmus": read_bytes(real("litmus")[0]), "k.ptx": read_bytes(real("ptx")[0])}
    arguments = {
        ".cat": (*_command(rng), "--model=a.cat", "t.litmus"),
        ".toml": (*_command(rng), "--launch=a.toml", "k.ptx"),
        ".cu": ("lint", "--output-format=json", "a.cu"),
    }.get(suffix, (*_command(rng), f"a{suffix}"))
    return Case("bytes", files, arguments)


def changed(rng: random.Random, data: bytes) -> bytes:
    """``data`` with one to four changes of its bytes, tokens or lines; now and then as it is."""
    if rng.random() < 0.04:
        return data
    if rng.random() < 0.15:
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data) + 1)
            piece = rng.choice((rng.randbytes(1), rng.randbytes(4), b"\0", b"\xc3", b"\xe2\x80\xae", b""))
            data = data[:at] + piece + data[at + rng.randint(0, 3) :]
        return data
    tokens = _TOKEN.findall(data.decode("utf-8", "replace"))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if not tokens:
            break
        at = rng.randrange(len(tokens))
        while tokens[at].isspace() and rng.random() < 0.9:
            at = rng.randrange(len(tokens))
        match rng.randrange(14):
            case 0:
                del tokens[at : at + rng.randint(1, 8)]
            case 1:
                tokens[at:at] = tokens[at : at + rng.randint(1, 20)] * rng.choice((1, 1, 2, 30))
            case 2:
                other = rng.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3:
                tokens[at] = rng.choice(
                    ("9" * rng.choice((20, 300, 5000)), "n" * 3000, "(" * 200, "-" * 300, "[0]" * 99)
                )
            case 4:
                tokens[at:] = []
            case 5 | 6 | 7 | 8 | 9 | 10:
                alike = [t for t in tokens if t[:1].isalpha() == tokens[at][:1].isalpha() and not t.isspace()]
                tokens[at] = rng.choice(alike or tokens)
            case _:
                tokens[at] = rng.choice(_WORDS.split())
    return "".join(tokens).encode("utf-8", "surrogateescape")


# -- runs ----------------------------------------------------------------------------------------------------------


def here(step: Any, tasks: Sequence[Any], workers: int, bounds: Bounds, expired: Any) -> Iterator[tuple[int, int, Any]]:
    """``workers.events`` without processes."""
    for number, task in enumerate(tasks):
        for index, message in enumerate(step(task, 0)):
            yield number, index, message


def run_here(arguments: Sequence[str]) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command that runs in this process."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = "no exit"
    with (
        patch("ptxmm.cli.tasks.events", here),
        patch("ptxmm.cli.separating.events", here),
        patch("ptxmm.cli.lint.events", here),
        patch("sys.stdin", io.TextIOWrapper(io.BytesIO(b"asm volatile(\"bar.sync 0;\");"))),
        redirect_stdout(out),
        redirect_stderr(err),
    ):  # fmt: skip
        try:
            run(list(arguments))
        except SystemExit as end:
            code = end.code
        except BaseException as error:
            err.write(f"Traceback: {type(error).__name__}: {error}")
    return (code if isinstance(code, int) else 0 if code is None else 99), out.getvalue(), err.getvalue()


def run_apart(arguments: Sequence[str]) -> tuple[int, str, str]:
    """The same of a command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "ptxmm", *(a.encode("utf-8", "surrogateescape") for a in arguments)],
        capture_output=True, env=environment, timeout=120, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def fault(item: Case, code: int, out: str, err: str) -> str | None:
    """What is wrong with how a command ended in the current folder, if anything."""
    if code not in (0, 1, 2, 3):
        return f"exit code {code}"
    if "Traceback" in err or "internal error" in err + out or "Exception ignored" in err:
        return "an internal error"
    options = set(takewhile(lambda word: word != "--", item.arguments))
    wants = {"--json", "--output-format=json", "--output-format=sarif"} & options
    helped = {"-h", "--help", "--version"} & options
    if wants and out and not helped:
        try:
            json.loads(out)
        except ValueError:
            return "the document is not JSON"
    if any(name.startswith(".ptxmm-") for name in os.listdir(".")):
        return "a temporary file was left"
    if item.output is not None and item.arguments[0] in ("convert", "extract") and os.path.isfile(item.output):
        written = Path(item.output).read_bytes()
        if code != 0 and written != item.files.get(item.output):
            return "a file was written in spite of an error"
        if code == 0:
            try:
                read(item.output)
            except PtxmmError as error:
                return f"what was written can't be read ({error})"
    return None


def attempt(item: Case, apart: bool = False) -> tuple[int, str | None]:
    """The exit code of a command in a new folder, and what is wrong."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="ptxmm-fuzz-") as folder:
        os.chdir(folder)
        try:
            for name, data in item.files.items():
                Path(name).write_bytes(data)
            with patch("shutil.which", lambda name: None):  # the PTX beside a source is taken
                code, out, err = (run_apart if apart else run_here)(item.arguments)
                wrong = fault(item, code, out, err)
            return (
                code,
                None if wrong is None else f"{wrong}: {item.arguments!r}\n{err[-1500:]}{out[-300:] if not err else ''}",
            )
        finally:
            os.chdir(before)


def batch(keep: str | None, apart: float, task: tuple[int, int], done: int) -> Generator[Any, bool, None]:
    """The inputs of a task (seed, count): see ``workers.Step``."""
    seed, count = task
    yield [None] * count
    for number in range(done, count):
        rng = random.Random(f"{seed}-{number}")
        item = case(rng)
        code, wrong = attempt(item, rng.random() < apart)
        if wrong is not None and keep is not None:
            save(Path(keep), f"{seed}-{number}", item, wrong)
        yield item.kind, code, wrong


def save(folder: Path, name: str, item: Case, wrong: str) -> None:
    """Keep an input that ended wrong."""
    place = folder / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for file, data in item.files.items():
        (place / file).write_bytes(data)
    (place / "ARGUMENTS").write_text(f"{item.arguments!r}\n{wrong}\n", encoding="utf-8", errors="backslashreplace")


def fuzz(count: int, seed: int, jobs: int = 1, keep: str | None = None, apart: float = 0.0) -> Count:
    """Give ``count`` inputs to the commands in ``jobs`` processes; a share ``apart`` of them in new ones."""
    from functools import partial

    total = Count()
    tasks = [(seed * 10**6 + n, min(_BATCH, count - n * _BATCH)) for n in range(-(-count // _BATCH))]
    bounds = Bounds(PATIENCE, 4 << 30)
    start = time.monotonic()
    for task, number, message in events(partial(batch, keep, apart), tasks, jobs, bounds, bool_never):
        if number == 0 and not isinstance(message, Lost):
            continue
        if isinstance(message, Lost):
            if message.reason == "time":
                total.kinds["unknown"] += 1
                total.given_up += 1
                print(f"given up: input {tasks[task][0]}-{number - 1}", file=sys.stderr, flush=True)
            else:
                total.wrong.append(f"input {tasks[task][0]}-{number - 1}: {message}")
            continue
        kind, code, wrong = message
        total.kinds[kind] += 1
        total.codes[code] += 1
        if wrong is not None:
            total.wrong.append(f"input {tasks[task][0]}-{number - 1}: {wrong}")
        if total.kinds.total() % 2000 == 0:
            print(
                f"{total.kinds.total()} in {time.monotonic() - start:.0f} s, {len(total.wrong)} wrong",
                file=sys.stderr,
                flush=True,
            )
    return total


def bool_never(message: object) -> bool:
    """No message is asked for twice."""
    return False


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", help="a folder for the inputs that ended wrong")
    parser.add_argument("--apart", type=float, default=0.005, help="the share that gets a process of its own")
    parser.add_argument("--one", metavar="SEED-NUMBER", help="only this input, which is shown")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if chosen.one:
        item = case(random.Random(chosen.one))
        save(Path(chosen.keep or "."), chosen.one, item, "")
        print(item.arguments, attempt(item))
        return
    total = fuzz(chosen.count, chosen.seed, chosen.jobs, chosen.keep, chosen.apart)
    print("\n".join(total.lines()))
    sys.exit(bool(total.wrong))


if __name__ == "__main__":
    main()
