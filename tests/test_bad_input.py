"""Wrong input ends in one exact message, whatever it is, and soon."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptxmm import formats
from ptxmm.errors import PtxmmError
from ptxmm.formats.text import decode
from tests.support import CORPORA, watched

HERE = Path(__file__).parent
GOOD = """PTX t
{ .global .u32 x = 0; }
 P0 @ cta 0 | P1 @ cta 1 ;
 st.global.u32 [x], 1 | ld.global.u32 r0, [x] ;
exists (P1:r0 == 1)
"""


def cases() -> list[tuple[str, str, str]]:
    """(name, input, message) of every entry of ``bad_input/cases.txt``: ``=== name``, input, ``---``, message."""
    found = []
    for block in (HERE / "bad_input" / "cases.txt").read_text(encoding="utf-8").split("=== ")[1:]:
        name, _, rest = block.partition("\n")
        text, _, message = rest.partition("---\n")
        found.append((name, text, message.rstrip("\n")))
    return found


def message_of(text: str, file: str = "t.litmus") -> str:
    with pytest.raises(PtxmmError) as caught:
        formats.parse(text, file)
    return str(caught.value)


@pytest.mark.parametrize(("name", "text", "message"), cases(), ids=[name for name, _, _ in cases()])
def test_wrong_file_has_its_exact_message(name: str, text: str, message: str) -> None:
    assert message_of(text, f"{name}.litmus") == message


def test_there_are_at_least_sixty_cases() -> None:
    assert len({name for name, _, _ in cases()}) >= 60


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "f.litmus: error: the file is empty"),
        (b" \r\n\t\n", "f.litmus: error: the file is empty"),
        (b"\xef\xbb\xbf", "f.litmus: error: the file is empty"),
        (b"PTX t\n{ x\0 }\n", "f.litmus:2: error: the file has a NUL byte, so it is not a text file"),
        (bytes(range(1, 256)) * 4, "f.litmus:2: error: the file is not UTF-8 text: byte 0x80"),
        (b"\x7fELF\x02\x01\x01\0\0", "f.litmus:1: error: the file has a NUL byte, so it is not a text file"),
        (b"PTX t\n\xff\xfe", "f.litmus:2: error: the file is not UTF-8 text: byte 0xff"),
        (b"\xff\xfeP\0T\0X\0", "f.litmus:1: error: the file has a NUL byte, so it is not a text file"),
    ],
)
def test_bytes_that_are_no_litmus_test(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "f.litmus"
    path.write_bytes(data)
    with pytest.raises(PtxmmError) as caught:
        formats.read(path)
    assert str(caught.value) == message.replace("f.litmus", str(path))


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_other_line_ends_and_byte_order_mark_are_read(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "f.litmus"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", ending).encode())
    (test,) = formats.read(path)
    assert test.name == "t"
    assert [t.name for t in test.threads] == ["P0", "P1"]
    wrong = GOOD.replace("P1:r0", "P1:r7").replace("\n", ending)
    assert message_of(wrong).startswith("t.litmus:5:9: error: P1 has no register `r7`\n  exists (P1:r7 == 1)\n")


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(PtxmmError, match="the file can't be read: No such file") as caught:
        formats.read(tmp_path / "none.litmus")
    assert caught.value.kind == "io"
    with pytest.raises(PtxmmError, match="the file can't be read: Is a directory"):
        formats.read(tmp_path)


def test_file_of_another_kind() -> None:
    assert message_of(GOOD, "a.cpp") == (
        "a.cpp: error: `.cpp` files are not litmus tests\n  hint: ptxmm reads .litmus, .test, .ptx, .cu files"
    )
    with pytest.raises(PtxmmError, match="`cat` are not litmus tests") as caught:
        formats.parse(GOOD, format="cat")
    assert caught.value.kind == "usage"


def test_control_characters_are_shown_as_such() -> None:
    found = message_of("PTX t\n{ x\x07 = 0; }\n P0 ;\n")
    assert found == "t.litmus:2:4: error: unexpected character U+0007\n  { x\ufffd = 0; }\n     ^"


def test_five_megabytes_of_text() -> None:
    with watched():
        found = message_of("PTX t\n" + "lorem ipsum\n" * 450_000)
    assert found == "t.litmus: error: the file has 5400006 characters; a litmus test has at most 1000000"


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("(" * 300 + "x == 1" + ")" * 300, "the condition is nested more than 100 levels deep"),
        ("~" * 300 + "x == 1", "the condition is nested more than 100 levels deep"),
        ("not (" * 80 + "x == 1" + ")" * 80, "the condition is nested more than 100 levels deep"),
        ("[" * 300 + "x" + "]" * 300 + " == 1", "expected a location, found `[`"),
        ("(" * 99, "expected a register, a location or an integer, found the end"),
    ],
)
def test_deep_nesting(condition: str, message: str) -> None:
    text = f"PTX t\n{{ .global .u32 x = 0; }}\n P0 ;\n st.global.u32 [x], 1 ;\nexists {condition}\n"
    assert message_of(text).splitlines()[0].endswith(f"error: {message}")


def test_nesting_within_the_limit_is_read() -> None:
    deep = "(x == 0 \\/ ~" * 49 + "(x == 1)" + ")" * 49
    formats.parse(f"PTX t\n{{ .global .u32 x = 0; }}\n P0 ;\n st.global.u32 [x], 1 ;\nexists {deep}\n")


HUGE = {
    "title": "PTX " + "t" * 900_000,
    "quote": 'PTX t\n"' + "a\n" * 400_000,
    "info": "PTX t\n" + "a = b\n" * 150_000,
    "comments": "PTX t\n{ }\n" + "(*" * 400_000,
    "slash-comments": "PTX t\n{ }\n" + "/*" * 400_000,
    "braces": "PTX t\n" + "{" * 900_000,
    "declarations": "PTX t\n{\n" + "".join(f"x{i} = 0;\n" for i in range(70_000)) + "}\n P0 ;\n",
    "arrays": "PTX t\n{\n" + "".join(f".global .u32 x{i}[65536];\n" for i in range(1_500)) + "}\n P0 ;\n",
    "registers": "PTX t\n{\n" + "".join(f".reg .u32 P0:r{i}_<60000>;\n" for i in range(20_000)) + "}\n P0 ;\n",
    "threads": "PTX t\n{ }\n" + "|".join(f"P{i}" for i in range(100_000)) + ";\n",
    "rows": "PTX t\n{ x = 0; }\n P0 ;\n" + " st.weak x, 1 ;\n" * 60_000,
    "columns": "PTX t\n{ x = 0; }\n P0 ;\n" + "|" * 900_000,
    "cell": "PTX t\n{ x = 0; }\n P0 ;\n st.weak x, " + "1" * 900_000 + " ;\n",
    "label": "PTX t\n{ x = 0; }\n P0 ;\n " + "l: " * 300_000 + " ;\n",
    "block": "PTX t\n{ x = 0; }\nP0 {" + "st.weak x, 1;" * 60_000 + "}\n",
    "block-of-reg": "PTX t\n{ x = 0; }\nP0 {" + ".reg .u32 r<9999>;" * 40_000 + "}\n",
    "condition": "PTX t\n{ x = 0; }\n P0 ;\n st.weak x, 1 ;\nexists " + "x == 1 /\\ " * 80_000,
    "locations": "PTX t\n{ x = 0; }\n P0 ;\n st.weak x, 1 ;\nlocations [" + "x;" * 400_000,
    "number": "PTX t\n{ x = " + "9" * 900_000 + "; }\n P0 ;\n",
    "digits-and-name": "PTX t\n{ x = 0; }\n P0 ;\n st.weak x, 1 ;\nexists (" + "0" * 900_000 + "x = 1",
    "blanks": "PTX t\n{ }\n P0" + " " * 900_000 + "x ;\n",
    "names": "PTX t\n{ " + "x" * 900_000 + " }\n P0 ;\n",
}


@pytest.mark.parametrize("name", HUGE)
def test_a_megabyte_of_anything_ends_soon(name: str) -> None:
    with watched():
        found = message_of(HUGE[name])
    assert "error: " in found
    assert len(found) < 2_000


# -- random input --------------------------------------------------------------------------------------------------

FRAGMENTS = [
    "PTX t\n", "{", "}", "|", ";", "\n", " ", '"', "(*", "*)", "/*", "*/", "//", "P0", "P1", "@", "cta 0", ",", "gpu 1",
    "overlap", "mbarrier(", "tensormap(", ".v2", ".f32", ".b128", "1.0", "0f3F800000",
    "warp 0", "host", "x", "y", "= 0", "=", ":", "r0", "%p", "[", "]", ".global", ".shared", ".u32", ".b64", ".align 4",
    "ld", "st", "atom", ".relaxed", ".gpu", ".add", ".cas", ".weak", "fence.sc.gpu", "bar.cta.sync 0", "goto", "L:",
    "beq r0, 0, L", "exists", "~exists", "forall", "locations", "filter", "/\\", "\\/", "~", "not", "==", "!=", "<",
    "(", ")", "&x+4", "0x", "-1", "18446744073709551616", ".reg", "aliases", "generic", "surface", "setp.eq.u32", "p|q",
    "\t", "\r", "\u00e9", "\u2028", "st.weak x, 1 ;", "ld.weak r0, x ;", "exists (P0:r0 = 1)", "@p bra L ;", "a[2]",
]  # fmt: skip


def good_files() -> list[str]:
    """Texts of real tests to mutate."""
    found = sorted((HERE.parent / "litmus").rglob("*.litmus"))[::7]
    found += sorted(CORPORA.rglob("*.litmus"))[::5] + sorted(CORPORA.rglob("*.test"))
    return [GOOD] + [path.read_text(encoding="utf-8") for path in found]


def mutate(text: str, rng: random.Random) -> str:
    """``text`` with one to four small changes."""
    for _ in range(rng.randint(1, 4)):
        a = rng.randrange(len(text) + 1)
        b = min(len(text), a + rng.choice((0, 1, 1, 2, 5, 20)))
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:a] + rng.choice(FRAGMENTS) + text[b:]
        elif kind == 1:
            text = text[:a] + text[b:]
        elif kind == 2:
            text = text[:b] + text[a:]
        else:
            lines = text.split("\n")
            rng.shuffle(lines[rng.randrange(len(lines)) :])
            i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
            text = "\n".join(lines)
    return text


def check(text: str) -> None:
    """Reading ``text`` gives tests or a ``PtxmmError`` with a place inside it, and ends."""
    for format_ in ("litmus", "nvlitmus"):
        try:
            with watched(30):
                formats.parse(text, "f", format_)
        except PtxmmError as error:
            assert error.kind != "internal"
            lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
            assert error.line is None or 1 <= error.line <= len(lines)
            assert str(error).startswith("f:") and "Traceback" not in str(error)


def fuzz(count: int, seed: int) -> None:
    rng = random.Random(seed)
    files = good_files()
    for _ in range(count):
        if rng.random() < 0.75:
            check(mutate(rng.choice(files), rng))
        else:
            check("".join(rng.choices(FRAGMENTS, k=rng.randint(1, 60))))


def test_mutated_files() -> None:
    fuzz(700, 20240607)


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=200) | st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join))
def test_random_text(text: str) -> None:
    check(text)
    check("PTX t\n{\n" + text)
    check("PTX t\n{ x = 0; }\n P0 ;\n" + text)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    try:
        text = decode(data, "f")
    except PtxmmError:
        return
    check(text)


@pytest.mark.slow
def test_mutated_files_in_full() -> None:
    fuzz(20_000, 7)
