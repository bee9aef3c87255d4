"""Text, JSON and exit code of the command line say the same, and values are printed as conditions take them."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import ptxmm.formats
from ptxmm.analysis import told
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.result import Result
from ptxmm.cli.app import run
from ptxmm.engines.result import Limits
from ptxmm.formats.writer import same, write
from tests.alike import check_alike
from tests.support import CORPORA, ROOT, corpus_rows, model_named, parse_one

KERNEL = """// ptxmm: args = ["x"]
// ptxmm: objects.x = "u32"
// ptxmm: check.{claim}
.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a)
{{
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  .reg .pred %p<2>;
  .shared .align 8 .b64 b;
  ld.param.u64 %rd1, [a];
{body}
  ret;
}}
"""
CLOCK = "  mov.u32 %r1, %clock;\n  setp.gt.u32 %p1, %r1, 7;\n  @%p1 st.relaxed.gpu.global.u32 [%rd1], 1;"
NEVER = """  mbarrier.init.shared.b64 [b], 32;
  mbarrier.arrive.shared.b64 %rd2, [b];
L:
  mbarrier.try_wait.shared.b64 %p1, [b], %rd2;
  @!%p1 bra L;"""
STORE = "  st.global.u32 [%rd1], 1;"
SPIN = "L:\n  ld.relaxed.gpu.global.u32 %r1, [%rd1];\n  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra L;"
LITMUS = """PTX t
{expect}
{{ .global .u32 x = 0; }}
P0 @ cta 0 {{
{body}
}}
{condition}
"""


def _kernel(body: str, claim: str) -> str:
    return KERNEL.format(body=body, claim=claim)


def _litmus(body: str, condition: str, expect: str = "") -> str:
    return LITMUS.format(body=body, condition=condition, expect=expect)


_LOOP = "L: atom.relaxed.gpu.global.add.u32 r0, [x], 1; setp.lt.u32 p, r0, 9; @p bra L;"
_WAIT = "st.global.u32 [x], 1; bar.sync 0, 64;"
_FILTER = "st.global.u32 [x], 1;"

# Each with the first word of its line, the exit code, and what the JSON entry says: holds, status.
CASES: dict[str, tuple[str, str, str, int, bool | None, str]] = {
    "clock": ("k.ptx", _kernel(CLOCK, 'condition = "forall (x == 0)"'), "?", 3, None, "bounded"),
    "clock-refuted": ("k.ptx", _kernel(CLOCK, 'condition = "forall (x == 1)"'), "FAIL", 1, False, "bounded"),
    "clock-races": ("k.ptx", _kernel(CLOCK, 'races = "none"'), "?", 3, None, "bounded"),
    "clock-robust": ("k.ptx", _kernel(CLOCK, "robust = true"), "?", 3, None, "bounded"),
    "endless": ("k.ptx", _kernel(NEVER + STORE, 'condition = "forall (x == 1)"'), "FAIL", 1, None, "complete"),
    "endless-never": ("k.ptx", _kernel(NEVER + STORE, 'condition = "~exists (x == 1)"'), "FAIL", 1, None, "complete"),
    "endless-races": ("k.ptx", _kernel(NEVER + STORE, 'races = "none"'), "?", 3, None, "inconclusive"),
    "endless-robust": ("k.ptx", _kernel(NEVER + STORE, "robust = true"), "?", 3, None, "inconclusive"),
    "spin": ("k.ptx", _kernel(SPIN, 'condition = "forall (x == 0)"'), "FAIL", 1, None, "complete"),
    "bounded": ("t.litmus", _litmus(_LOOP, "~exists (x == 99)"), "?", 3, None, "bounded"),
    "deadlock": ("t.litmus", _litmus(_WAIT, "~exists (x == 2)"), "?", 3, None, "inconclusive"),
    "deadlock-exists": ("t.litmus", _litmus(_WAIT, "exists (x == 1)"), "-", 0, False, "complete"),
    "deadlock-expected": ("t.litmus", _litmus(_WAIT, "~exists (x == 2)", "Expect=none+deadlock"), "ok", 0, None,
                          "complete"),
    "vacuous": ("t.litmus", _litmus(_FILTER, "filter (x == 2) forall (x == 1)"), "?", 3, None, "inconclusive"),
    "vacuous-expected": ("t.litmus", _litmus(_FILTER, "filter (x == 2) forall (x == 1)", "Expect=none"), "ok", 0, None,
                         "complete"),
    "forall": ("t.litmus", _litmus(_FILTER, "forall (x == 1)"), "ok", 0, True, "complete"),
    "wrong": ("t.litmus", _litmus(_FILTER, "forall (x == 2)"), "FAIL", 1, False, "complete"),
    "undefined": ("t.litmus", _litmus("bar.sync 0, 32; bar.sync 17;", "forall (x == 2)"), "error", 2, None, ""),
}  # fmt: skip


def _ptxmm(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        run(list(arguments))
    assert isinstance(ended.value.code, int)
    return ended.value.code, capsys.readouterr().out


@pytest.mark.parametrize("case", CASES)
def test_three_ways_to_say_it(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name, text, mark, code, holds, status = CASES[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    found, out = _ptxmm(capsys, "check", name)
    assert (out.split()[0], found) == (mark, code), out
    found, out = _ptxmm(capsys, "check", name, "--json")
    (entry,) = json.loads(out)["results"]
    assert found == code
    if mark == "error":
        assert entry["error"]
        return
    assert (entry["holds"], entry["status"]) == (holds, status)


@pytest.mark.share(2)
@pytest.mark.parametrize("command", ["races", "robust", "scopes", "fences", "explain", "compare", "progress"])
@pytest.mark.parametrize("body", [_FILTER, _LOOP, _WAIT, "bar.sync 0, 32;"])
def test_analyses(
    command: str, body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is not known is never ``complete``: null, ``unknown`` and exit code 3 go together."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.litmus").write_text(_litmus(body, "~exists (x == 2)"))
    options = ["--models", "sc", "ptx-8.5"] if command == "compare" else []
    code, text = _ptxmm(capsys, command, "t.litmus", *options)
    found, out = _ptxmm(capsys, command, "t.litmus", *options, "--json")
    (entry,) = json.loads(out)["results"]
    if "error" in entry:
        assert code == 2
        return
    key = {"races": "race_free", "robust": "robust", "fences": "holds", "compare": "differ"}.get(command)
    assert found == code
    assert (code == 3) == (entry["status"] != "complete") or entry["status"] == "bounded", (code, entry["status"])
    if key is not None:
        assert (entry[key] is None) == (code == 3)
    stated = re.search(r"^Status (\w+)$", text, re.MULTILINE)
    assert stated is None or stated[1] == entry["status"]


@pytest.mark.skipif(not CORPORA.is_dir(), reason="no corpora")
def test_corpora() -> None:
    """As ``check`` says it, of the condition as it is written."""
    for path, name, _ in list(corpus_rows())[::3]:
        for test in ptxmm.formats.read(path):
            check_alike(check(test, model_named(name), enumerate_all=False))


def test_modules(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    code, text = _ptxmm(capsys, "check", "tests/modules", "--jobs", "1")
    found, out = _ptxmm(capsys, "check", "tests/modules", "--json", "--jobs", "1")
    marks = {"expected": "ok", "contradicted": "FAIL", "inconclusive": "?", "unchecked": "-"}
    entries: list[dict[str, Any]] = json.loads(out)["results"]
    said = [marks[entry["conclusion"]] if "conclusion" in entry else "error" for entry in entries]
    lines = [line.split()[0] for line in text.splitlines() if re.match(r"(ok|FAIL|\?|-|error) ", line)]
    assert (found, lines) == (code, said)


# -- values --------------------------------------------------------------------------------------------------------

_REALS = {"f16": 16, "f32": 32, "f64": 64}


def _again(type_: str, bits: int) -> None:
    """A register and a location with these bits: pasted into the condition, what is printed always holds."""
    width = _REALS[type_]
    word = {16: "0x{:04X}", 32: "0f{:08X}", 64: "0d{:016X}"}[width].format(bits)
    program = f"PTX t\n{{ .global .{type_} x = {word}; }}\nP0 {{ .reg .{type_} f; ld.global.b{width} f, [x]; }}\n"
    (found,) = check(parse_one(program), model_named("ptx-8.5"), all_state=True).outcomes
    register, memory = found.registers["P0:f"], found.memory["x"]
    assert isinstance(register, str) and register == memory
    test = parse_one(program + f"forall (P0:f == {register} /\\ x == {register})")
    result = check(test, model_named("ptx-8.5"))
    assert result.holds is True, (type_, hex(bits), register)
    (again,) = result.outcomes
    assert again.memory["x"] == register
    assert same(parse_one(write(test)), test)


SPECIAL = {
    "f16": (0, 0x8000, 1, 0x8001, 0x3FF, 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0xFE01, 0x3E00, 0x7BFF),
    "f32": (0, 0x80000000, 1, 0x807FFFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0xFFC12345, 0x3FC00000,
            0x3DCCCCCD, 0x4B800001, 0x7F7FFFFF),
    "f64": (0, 1 << 63, 1, 0x7FF << 52, 0xFFF << 52, 0x7FF0000000000001, 0xFFF8000000000007, 0x3FF8000000000000,
            0x3FB999999999999A, 0x7FEFFFFFFFFFFFFF),
}  # fmt: skip


@pytest.mark.parametrize("type_", SPECIAL)
def test_special_reals_can_be_pasted(type_: str) -> None:
    for bits in SPECIAL[type_]:
        _again(type_, bits)


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(sorted(_REALS)), st.integers(0, (1 << 64) - 1))
@example("f32", struct.unpack("<I", struct.pack("<f", 0.1))[0])
def test_reals_can_be_pasted(type_: str, bits: int) -> None:
    _again(type_, bits >> (64 - _REALS[type_]))


LOOPS = ["MP+loop", "MP+loop-relaxed", "cas-spinlock-no-release", "LB+counted-loop+data", "mbarrier-loop"]


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("listing", ["none", "all"])
def test_fewer_rounds_are_tried_first_where_a_loop_takes_long(
    name: str, listing: told.Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = (ROOT / "litmus").glob(f"*/{name}.litmus")
    test, model = parse_one(path.read_text("utf-8")), model_named("ptx-8.5")

    def answer() -> Result:
        result = told.verdict(test, model.name, model, Limits(), told.Asked(listing=listing))
        return replace(result, seconds=0.0, outcomes=() if listing == "none" else result.outcomes, notes=())

    asked: list[int] = []

    def counted(*args: Any, limits: Limits, **more: Any) -> Result:
        asked.append(limits.unroll)
        return check(*args, limits=limits, **more)

    wanted = answer()
    monkeypatch.setattr(told, "_FIRST", 0.0)
    monkeypatch.setattr("ptxmm.analysis.outcomes.check", counted)
    found = answer()
    assert (found.holds, found.observation, found.conclusion) == (wanted.holds, wanted.observation, wanted.conclusion)
    assert listing == "none" or found.outcomes == wanted.outcomes
    assert asked == [3, *range(len(asked) - 1)] and len(asked) > 1
