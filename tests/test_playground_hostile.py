"""200 requests that mean harm, to a real server: each is answered, and the next finds the server as it was."""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.playground_server import server
from tests.support import ROOT

MP = (ROOT / "litmus" / "mp" / "MP+rel+acq.litmus").read_text(encoding="utf-8")
SECONDS = 1.0
LONGEST = 60.0
"""Seconds until a client gives up; a machine may be slow, but an answer comes."""
JSON = {"Content-Type": "application/json"}
MARKUP = ("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</script><svg/onload=alert(1)>", "\"'><b>")
SECRETS = ("/etc/passwd", "../../../../etc/passwd", "file:///etc/passwd", "pyproject.toml", "/proc/self/environ")

Call = tuple[str, str, bytes, dict[str, str]]
"""Method, path, body, headers."""


def post(body: object, headers: dict[str, str] = JSON) -> Call:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return "POST", "/api", data, headers


def check(text: str, **fields: object) -> Call:
    return post({"ask": "check", "text": text, **fields})


def malformed() -> Iterator[Call]:
    whole = json.dumps({"ask": "check", "text": MP}).encode()
    rng = random.Random(1)
    for _ in range(22):
        yield post(whole[: rng.randrange(len(whole))])
    for _ in range(10):
        data = bytearray(whole)
        data[rng.randrange(8)] = rng.randrange(256)
        yield post(bytes(data))
    yield from map(
        post, (b"", b"\0", b"\xff\xfe", b"nan", b"1e999", b"[" * 60_000, b'{"a":' * 9_000, b'"' + b"\\ud800" * 99)
    )
    yield from map(post, ([], None, 7, "check", {}, {"ask": []}, {"ask": "check"}, {"ask": "check", "text": 1}))
    for extra in ("unroll", "turns", "readings", "without", "level", "model", "all_state"):
        yield check(MP, **{extra: {"$ne": [1, 2, "x" * 500]}})
    yield check(MP, unroll=10**30)
    yield check(MP, turns=[{"thread": "P0", "index": -(10**18), "order": "weak"}])
    yield check(MP, turns=[{"thread": "P0", "index": 0, "order": "__class__"}] * 201)


def markup() -> Iterator[Call]:
    for bad in MARKUP:
        yield check(MP.replace("data", bad))
        yield check(MP.replace("P1", bad))
        yield check(MP.replace("P1:r0 ==", f"P1:{bad} =="))
        yield check(MP.replace("st.global", f"st.{bad}"))
        yield check(MP.replace("PTX MP", f"{bad} MP"))
        yield check(MP, model=bad)
        yield check(MP, without=[bad], readings={bad: bad})
        yield post({"ask": "explain", "text": MP, "state": bad})
        yield "GET", "/" + bad.replace(" ", "%20"), b"", {}


def paths() -> Iterator[Call]:
    for secret in SECRETS:
        yield check(MP, model=secret)
        yield check(MP, level=secret)
        yield check(MP, model=f"ptx-8.5[without={secret}]")
        yield check(f'include "{secret}"\n{MP}')
        yield check(MP.replace("{", "{ x = " + secret + ";", 1))
        yield post({"ask": "check", "text": MP, "file": secret})
        yield "GET", f"/page/{secret}", b"", {}
        yield "GET", "/page/" + secret.replace("/", "%2f"), b"", {}
        yield "GET", f"/litmus/{secret}", b"", {}
        yield "GET", "/litmus/mp/" + secret.replace("/", "%2f").replace("..", "%2e%2e"), b"", {}
    for path in (
        "//etc/passwd",
        "/page/..%5c..%5cserver.py",
        "/page/../server.py",
        "/page/%00",
        "/page/style.css%00.js",
        "/.git/config",
    ):
        yield "GET", path, b"", {}


def commands() -> Iterator[Call]:
    for command in ("$(touch {})", "`touch {}`", "; touch {} ;", "| touch {}", "__import__('os').system('touch {}')"):
        attempt = command.format("HOSTILE")
        yield check(attempt)
        yield check(MP.replace("[data], 1", f"[data], {attempt}"))
        yield check("#include <stdio.h>\n__global__ void k() { " + attempt + " }")
        yield post({"ask": "fences", "text": MP, "without": [attempt]})
    yield check(
        ".version 8.5\n.target sm_90\n.address_size 64\n// ptxmm: grid=1 host=/etc/passwd\n.visible .entry k() { ret; }"
    )


def huge() -> Iterator[Call]:
    for size in (65_537, 70_000, 1_000_000, 5_000_000):
        yield post(b"x" * size)
    head = "PTX h\n{ .global .u32 x = 0; }\n"
    yield check("PTX " + "a" * 60_000)
    yield check(head + " | ".join(f"P{i}" for i in range(5_000)) + " ;\n")
    yield check(head + " P0 ;\n" + " st.global.u32 [x], 1 ;\n" * 2_000 + "exists (x == 1")
    yield check(head + " P0 ;\n st.global.u32 [x], 1 ;\nexists (" + "(" * 30_000)
    yield check(head + " P0 ;\n st.global.u32 [x], 1 ;\nexists (" + "~" * 30_000 + "x == 1)")
    yield check(head + " P0 ;\n st.global.u32 [x], " + "9" * 50_000 + " ;\nexists (x == 1)")
    yield check("PTX h\n{ .global .u32 x[4294967295] = 0; }\n P0 ;\n st.global.u32 [x], 1 ;\nexists (x[0] == 1)")
    yield check("(*" * 30_000)
    yield check("\n" * 60_000)
    yield post({"ask": "check", "text": MP, "readings": {f"k{n}": "v" for n in range(3_000)}})


def endless() -> Iterator[Call]:
    """More work than there is time for."""
    head = "PTX e\n{ .global .u32 x = 0; .global .u32 y = 0; }\n"
    atom = "atom.relaxed.gpu.global.add.u32 r{}, [x], 1"
    many = head + " | ".join(f"P{i}" for i in range(9)) + " ;\n"
    many += "".join(" | ".join(atom.format(n) for _ in range(9)) + " ;\n" for n in range(12))
    spin = (
        head
        + "P0 {\n"
        + "".join(
            f"L{n}:\n atom.relaxed.gpu.global.add.u32 r{n}, [{'xy'[n % 2]}], 1;\n"
            f" setp.lt.u32 p{n}, r{n}, {n + 5};\n @p{n} bra L0;\n"
            for n in range(12)
        )
        + "}\n"
    )
    spin += "P1 {\n st.relaxed.gpu.global.u32 [x], 1;\n}\n"
    yield check(many, all_state=True)
    yield check(spin + "exists (x == 2)", unroll=16)
    yield post({"ask": "fences", "text": many + "exists (x == 7)"})
    yield post({"ask": "explain", "text": many + "exists (x == 7)"})


def strange() -> Iterator[Call]:
    """What is no request of the page."""
    for method in ("GET", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"):
        yield method, "/api", b"", {}
    for kind in ("text/plain", "multipart/form-data", "application/x-www-form-urlencoded", "text/html"):
        yield post({"ask": "check", "text": MP}, {"Content-Type": kind})
    for host in ("evil.example", "localhost.evil.example", "169.254.169.254", "[::ffff:169.254.169.254]"):
        yield post({"ask": "check", "text": MP}, JSON | {"Host": host})
    yield "GET", "/" + "a" * 90_000, b"", {}


def requests() -> list[Call]:
    return [*malformed(), *markup(), *paths(), *commands(), *huge(), *endless(), *strange()]


def test_there_are_so_many() -> None:
    assert len(requests()) >= 200


def sent(port: int, call: Call) -> tuple[int, dict[str, str], bytes]:
    """The status, headers and body of the response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)
    method, path, body, headers = call
    connection._validate_path = lambda url: None  # type: ignore[attr-defined]
    with suppress(BrokenPipeError, ConnectionResetError):  # the answer may come before all is sent
        connection.request(method, path, body, {"Host": "127.0.0.1", **headers})
    response = connection.getresponse()
    found = response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    connection.close()
    return found


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with server("--timeout", str(SECONDS), "--memory", "512", "--workers", "2") as (port, process):
        yield port
        assert process.poll() is None


def test_each_is_answered_with_an_error(port: int) -> None:
    for number, call in enumerate(requests()):
        try:
            status, headers, body = sent(port, call)
        except (ConnectionError, http.client.HTTPException):
            assert len(call[2]) > 1 << 16 or call[0] == "GET" or len(str(call[3])) > 1 << 16, (number, call)
            continue
        told = (number, status, call[0], call[1][:80], call[2][:200], body[:300])
        assert status < 500, told
        if status == 200:
            answer = json.loads(body)
            failed = answer["answer"] == "error"
            assert failed or answer.get("status", answer.get("result", {}).get("status")) == "timeout", told
        if headers.get("content-type", "").startswith("application/json") or status == 200:
            assert headers["x-content-type-options"] == "nosniff" and b"<" not in body, told
        assert b"root:" not in body and b"[project]" not in body and b"Traceback" not in body, told


def test_nothing_was_executed(port: int) -> None:
    assert not Path("HOSTILE").exists() and not (ROOT / "HOSTILE").exists()


def test_the_server_is_as_it_was(port: int) -> None:
    call = check(MP)
    found = [json.loads(sent(port, call)[2]) for _ in range(3)]
    assert any(answer["answer"] == "check" and answer["observation"] == "never" for answer in found)
    assert sent(port, ("GET", "/", b"", {}))[0] == 200
