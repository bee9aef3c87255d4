"""Random kernels in which the threads of a CTA wait together, by votes at a barrier, for whole launches
(``test_whole_gathers``): who looks, what a thread says, what else is in a round."""

from __future__ import annotations

import random
import re

HEAD = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = 2
// ptxmm: block = 2
// ptxmm: threads = "all"
// ptxmm: args = ["d", "f"]
// ptxmm: [objects]
// ptxmm: d = { type = "u32", count = 4 }
// ptxmm: f = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: races = "none"
.visible .entry k(.param .u64 pd, .param .u64 pf)
{
    .reg .pred %p<9>;
    .reg .b32 %r<20>;
    .reg .b64 %d<9>;
    ld.param.u64 %d1, [pd];
    ld.param.u64 %d2, [pf];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r9, 0;
    mul.wide.u32 %d3, %r1, 4;
    add.u64 %d4, %d2, %d3;
    add.u64 %d5, %d1, %d3;
"""
"""A launch of two CTAs of two threads: the words ``d`` and ``f``, and of each thread its own (``%d5``, ``%d4``)."""
_TURN = """\
    setp.eq.u32 %p1, %r2, 1;
    @%p1 bra WAIT;
"""


def gathers(seed: int) -> str:
    """A kernel in which CTA 0 gives flags values, and CTA 1 waits for them; or both wait for their turns."""
    rng = random.Random(seed)
    turns = rng.random() < 0.3
    loop, all_look = _loop(rng, turns)
    use = rng.choice(("ld.global.u32 %r5, [%d5];", "ld.global.u32 %r5, [%d1];", "@!%p0 ld.global.u32 %r5, [%d1+4];"))
    if turns:
        change = rng.choice(("ld.global.u32 %r5, [%d5]; st.global.u32 [%d5], %r5;", "@%p0 st.global.u32 [%d1], 1;"))
        passes = f"add.u32 %r6, %r2, 1; {_given(rng, '%r6')}"
        first, meets = rng.choice(("", "bar.sync 0;")), rng.choice(("bar.sync 0;", "bar.sync 0;", ""))
        return f"{HEAD} setp.eq.u32 %p0, %r1, 0; {loop} {first} {change} {meets} {passes}\n    ret;\n}}\n"
    meets = rng.choice(("bar.sync 0;", "bar.sync 0;", ""))
    steps = [f"st.global.u32 [%d5], 1; {meets} {_given(rng, '1', all_look)}"]
    if rng.random() < 0.3:
        steps.append(_given(rng, rng.choice(("0", "1", "2")), all_look))
    behind = rng.choice(("", "bar.sync 0;")) + use
    return f"{HEAD} setp.eq.u32 %p0, %r1, 0; {_TURN} {' '.join(steps)} ret;\nWAIT: {loop} {behind}\n    ret;\n}}\n"


def _given(rng: random.Random, value: str, all_look: bool = False) -> str:
    """Gives the flag a value, or with ``all_look`` that of each thread."""
    place, guard = ("%d4", rng.choice(("", "", "@%p0 "))) if all_look else ("%d2", "@%p0 ")
    order = rng.choice(("release.gpu", "release.gpu", "release.gpu", "relaxed.gpu", "release.cta"))
    fence = rng.choice(("", "", "fence.acq_rel.gpu; "))
    return f"{fence}{guard}st.{order}.global.u32 [{place}], {value};"


def _loop(rng: random.Random, turns: bool) -> tuple[str, bool]:
    """The loop, and whether each thread looks at a flag of its own."""
    who = rng.choice(("all", "own", "first", "first"))
    order = rng.choice(("acquire.gpu", "acquire.gpu", "acquire.gpu", "relaxed.gpu", "acquire.cta"))
    place = "%d4" if who == "own" and not turns else "%d2"
    look = f"ld.{order}.global.u32 %r3, [{place}];"
    wanted = "%r2" if turns else rng.choice(("1", "1", "1", "2"))
    found = rng.choice(("eq", "eq", "eq", "ge"))
    # What a thread says: whether it has found it, or has not, for a vote that needs all, or one.
    positive, needs_all = rng.random() < 0.5, who != "first" if rng.random() < 0.85 else rng.random() < 0.5
    says = f"setp.{found}.u32 %p3, %r3, {wanted};"
    if who == "first":  # what the other one says does not keep the loop from ending
        says += f" {'or' if needs_all else 'and'}.pred %p3, %p3, {'%p5' if needs_all else '%p0'};"
        if rng.random() < 0.1:
            says += " or.pred %p3, %p3, %p5;"
    extra = rng.choice(("", "", "", "add.u32 %r9, %r9, 1;", "@%p5 add.u32 %r9, %r9, 1;"))
    if rng.random() < 0.15:
        extra = "add.u32 %r9, %r9, 1; setp.gt.u32 %p6, %r9, 1; or.pred %p3, %p3, %p6;"
    if not positive:
        says += " not.pred %p4, %p3;"
    said = "%p3" if positive else "%p4"
    # Of what has been found (or not) all, or one.
    operation = ("and" if needs_all else "or") if positive else ("or" if needs_all else "and")
    vote = f"bar.red.{operation}.pred %p7, 0, {said};"
    back, leave = ("@!%p7 bra", "@%p7 bra") if positive else ("@%p7 bra", "@!%p7 bra")
    shape = rng.randrange(3)
    guarded = f"@%p5 bra S{{}}; {look} S{{}}:" if who == "first" else f"{look} S{{}}:"
    begin = (
        "not.pred %p5, %p0; mov.u32 %r3, 77;"
        if wanted != "2" and found == "eq"
        else "not.pred %p5, %p0; mov.u32 %r3, 0;"
    )
    one, two = (guarded.replace("{}", str(number)) for number in (1, 2))
    match shape:
        case 0:
            text = f"{begin} L: {one} {says} {extra} {vote} {back} L;"
        case 1:
            text = f"{begin} L: {says} {extra} {vote} {leave} E; {one} bra L; E:"
        case _:
            text = f"{begin} {one} L: {says} {extra} {vote} {leave} E; {two} bra L; E:"
    return text, place == "%d4"


def lasts(seed: int) -> str:
    """A kernel in which each thread leaves a word, some count, and a vote tells the CTA what came of that."""
    rng = random.Random(seed)
    leaves = "mad.lo.u32 %r4, %r2, 2, %r1; mul.wide.u32 %d6, %r4, 4; add.u64 %d6, %d1, %d6; st.global.u32 [%d6], 1;"
    counts = rng.choice(("@%p0 ", "@%p0 ", ""))
    most = 2 if counts else 4
    order = rng.choice(("acq_rel.gpu", "acq_rel.gpu", "release.gpu", "relaxed.gpu", "acq_rel.cta"))
    kind = rng.choice((f"inc.u32 %r5, [%d2], {most - 1}", f"inc.u32 %r5, [%d2], {most}", "add.u32 %r5, [%d2], 1"))
    kind = kind if rng.random() < 0.9 else "or.b32 %r5, [%d2], 1"
    number = rng.choice((most - 1, most - 1, most - 1, 0))
    says = f"setp.{rng.choice(('eq', 'eq', 'eq', 'ne', 'ge'))}.u32 %p3, %r5, {number};"
    operation = rng.choice(("or", "or", "or", "and", "popc"))
    negated = rng.choice(("", "", "!"))
    if operation == "popc":
        vote = f"bar.red.popc.u32 %r6, 0, {negated}%p3; setp.ne.u32 %p7, %r6, {rng.choice((0, 0, 1, 2))};"
    else:
        vote = f"bar.red.{operation}.pred %p7, 0, {negated}%p3;"
    fence = rng.choice(("fence.acq_rel.gpu;", "fence.acq_rel.gpu;", ""))
    meets = rng.choice(("bar.sync 0;", "bar.sync 0;", ""))
    reads = rng.choice(("ld.global.u32 %r7, [%d1]; ld.global.u32 %r8, [%d1+12];", "ld.global.u32 %r7, [%d1+8];"))
    guard = rng.choice(("", "@!%p0 bra E;"))
    return (
        f"{HEAD} setp.eq.u32 %p0, %r1, 0; mov.u32 %r5, {rng.choice((77, 77, 0))}; {leaves} {meets} {fence} "
        f"{counts}atom.{order}.global.{kind}; {says} {vote} @{rng.choice(('!', '!', '!', ''))}%p7 bra E; {guard} "
        f"{rng.choice((fence, fence, ''))} {reads}\nE: ret;\n}}\n"
    )


def ballots(seed: int) -> str:
    """A kernel as of ``gathers`` in which the two threads of a CTA vote as lanes of a warp, which orders nothing; they
    may look at vectors of what is not worked out, and there may be a fence in each round."""
    rng = random.Random(f"ballots/{seed}")
    text = re.sub(r"bar\.red\.(and|or)\.pred %p7, 0, ([^;]*);", _vote, gathers(rng.randrange(10**6)))
    if rng.random() < 0.4:
        text = text.replace("mov.u32 %r9, 0;", "mov.u32 %r9, 0; mov.u32 %r10, 3;")
        text = re.sub(r"(vote\.sync[^;]*), 3;", r"\1, %r10;", text)
    if rng.random() < 0.4:
        fence = rng.choice(("fence.acq_rel.gpu;", "membar.cta;", ""))
        text = text.replace("bra L;", f"bra N; bra M; N: {fence} bra L; M:")
    if rng.random() < 0.5:
        text = text.replace("count = 2 }", "count = 4, align = 8 }")
        text = text.replace("add.u64 %d4, %d2, %d3;", "add.u64 %d4, %d2, %d3; add.u64 %d4, %d4, %d3;")
        text = re.sub(r"ld\.(\w+\.\w+)\.global\.u32 %r3, ", r"ld.\1.global.v2.u32 {%r3, %r11}, ", text)
        given = re.compile(r"st\.(relaxed\.\w+)\.global\.u32 (\[%d[24]\]), ([^;]*);")
        text = given.sub(r"st.\1.global.v2.u32 \2, {\3, %r12};", text)
        if rng.random() < 0.5:
            text = text.replace("mov.u32 %r9, 0;", "mov.u32 %r9, 0; mov.u32 %r12, 5;")
        if rng.random() < 0.3:
            text = text.replace("    ret;\n}", "st.global.u32 [%d1+8], %r11;\n    ret;\n}")
    return text


def _vote(match: re.Match[str]) -> str:
    return f"vote.sync.{'all' if match[1] == 'and' else 'any'}.pred %p7, {match[2]}, 3;"


def lines(seed: int) -> str:
    """A kernel in which the lanes of a warp look at several words in each round, some of which do not matter to some
    of them, perhaps count their rounds, and look now and then whether they are to give up."""
    rng = random.Random(seed)
    order = rng.choice(("acquire.gpu", "acquire.gpu", "relaxed.gpu", "acquire.cta"))
    first, second = rng.choice((("[%d2]", "[%d2+4]"), ("[%d2+4]", "[%d2]"), ("[%d4]", "[%d1+12]"), ("[%d2]", "[%d4]")))
    looks = f"ld.{order}.global.u32 %r3, {first}; ld.{rng.choice((order, 'relaxed.gpu'))}.global.u32 %r4, {second};"
    says = f"setp.ne.u32 %p3, %r3, 1; setp.ne.u32 %p4, %r4, {rng.choice((0, 1, 1))};"
    says += rng.choice((
        "or.pred %p3, %p3, %p4;", "and.pred %p4, %p4, %p5; or.pred %p3, %p3, %p4;",
        "and.pred %p3, %p3, %p0; and.pred %p4, %p4, %p5; or.pred %p3, %p3, %p4;", "and.pred %p3, %p3, %p0;",
        "selp.u32 %r6, %r3, %r4, %p0; setp.ne.u32 %p3, %r6, 1;",
    ))  # fmt: skip
    counts, gives_up = rng.random() < 0.7, rng.random() < 0.5
    counted = "add.u32 %r9, %r9, 1;" if counts else ""
    aside = (
        f"setp.lt.u32 %p6, %r9, {rng.choice((1, 2, 2))}; @%p6 bra S; ld.relaxed.gpu.global.u32 %r5, [%d1+8]; "
        "setp.eq.u32 %p6, %r5, 0; @%p6 bra S; st.global.u32 [%d5], %r5; or.b32 %r10, %r10, 1; S: "
        "setp.eq.u32 %p8, %r10, 0; and.pred %p3, %p3, %p8;"
        if gives_up
        else ""
    )
    loop = f"mov.u32 %r10, 0; L: {counted} {looks} {says} {aside} vote.sync.any.pred %p7, %p3, 3; @%p7 bra L;"
    loop += rng.choice(("", "", " fence.acq_rel.gpu;", " bar.warp.sync 3;"))
    use = rng.choice(("ld.global.u32 %r7, [%d1];", "ld.global.u32 %r7, [%d5];", "st.global.u32 [%d5], 2;"))
    when = rng.choice((
        "", "", "setp.eq.u32 %p6, %r9, 1; @%p6 bra E;", "setp.ne.u32 %p6, %r9, 1; @%p6 bra E;", "@%p0 bra E;",
        "@%p5 bra E;", "setp.ne.u32 %p6, %r10, 0; @%p6 bra E;", "setp.ne.u32 %p6, %r4, 1; @%p6 bra E;",
    ))  # fmt: skip
    given = [f"st.global.u32 [%d5], 1; {rng.choice(('', 'bar.warp.sync 3;'))}"]
    given.append(_given(rng, "1", rng.random() < 0.7))
    if rng.random() < 0.3:
        given.append(_given(rng, rng.choice("012"), rng.random() < 0.5))
    if rng.random() < 0.2:
        given.append("@%p5 st.relaxed.gpu.global.u32 [%d1+8], 1;")
    head = f"{HEAD} setp.eq.u32 %p0, %r1, 0; not.pred %p5, %p0; {_TURN}"
    return f"{head} {' '.join(given)} ret;\nWAIT: {loop} {when} {use}\nE: ret;\n}}\n"
