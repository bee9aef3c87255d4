"""The shipped models, their index, and what is known of them without an execution."""

from __future__ import annotations

import random

import pytest

from ptxmm import cat
from ptxmm.cat import names, polarity
from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.polarity import Polarity
from ptxmm.errors import PtxmmError
from ptxmm.relations.concrete import Concrete

MODELS = "models: ptx-6.0, ptx-7.5, ptx-8.5, sc, or a file FILE.cat"
PTX = ("ptx-6.0", "ptx-7.5", "ptx-8.5")


def test_axioms() -> None:
    common = ["No-Thin-Air", "SC-per-Location", "Causality", "Fence-SC", "Coherence", "CoTotalMS"]
    for name in PTX:
        axioms = [axiom.name for axiom in cat.load(name).axioms]
        assert set(common) <= set(axioms)
    flags = [axiom.name for axiom in cat.load("ptx-8.5").axioms if axiom.flag]
    races = ["mixed-size-race", "data-race"]
    assert flags == [*races, "mbarrier-before-init", "shared-after-exit", "mbarrier-phase-skipped"]
    for name in ("ptx-6.0", "ptx-7.5"):
        assert [axiom.name for axiom in cat.load(name).axioms if axiom.flag] == ["mixed-size-race", "mixed-sizes"]
    assert not any(axiom.flag for axiom in cat.load("sc").axioms)


def test_index() -> None:
    assert list(cat.index().models) == ["ptx-6.0", "ptx-7.5", "ptx-8.5", "sc"]
    assert cat.load("ptx-8.5").coverage.scopes == ("cta", "cluster", "gpu", "sys")
    assert cat.load("ptx-6.0").coverage.scopes == ("cta", "gpu", "sys")
    assert cat.load("ptx-7.5").coverage.proxies == ("generic", "surface", "texture", "constant")
    assert {name: cat.load(name).readings["tear"] for name in cat.index().models} == {
        "ptx-6.0": "off",
        "ptx-7.5": "off",
        "ptx-8.5": "on",
        "sc": "off",
    }
    assert cat.load("ptx-8.5", {"tear": "off"}).readings["tear"] == "off"
    assert [cat.load(name).readings["atomic"] for name in PTX] == ["halves", "halves", "operation"]
    assert cat.load("ptx-7.5").reading_keys == {
        "alias-fence",
        "atomic",
        "fence-proxy",
        "griddep",
        "middle",
        "pattern-location",
        "po-proxy",
        "red",
        "release-read",
        "rmw-dep",
        "sc-acqrel",
        "scploc",
        "warpsync",
    }
    assert cat.index().undefined == {"mixed-size-race", "mbarrier-before-init", "shared-after-exit"}
    assert cat.index().uncovered.keys() == {"mixed-sizes"}


def test_every_reading_is_read_somewhere() -> None:
    """By a model text, or by the events of an execution."""
    used = {key for name in PTX for key in cat.load(name).reading_keys}
    assert cat.index().readings.keys() - used == {"b128", "cas-failure", "co", "dep", "tear", "vector", "wgmma-mov"}
    for key, reading in cat.index().readings.items():
        assert len(set(reading.values)) == len(reading.values) > 1, key
        assert reading.section and reading.text and reading.about, key
    assert cat.load("sc").reading_keys == frozenset()


@pytest.mark.parametrize(
    ("name", "readings", "message", "hint"),
    [
        ("ptx-8.4", {}, "unknown model `ptx-8.4`", f"did you mean `ptx-8.5`? {MODELS}"),
        ("tso", {}, "unknown model `tso`", MODELS),
        ("sc", {"red": "no"}, "reading `red` has no value `no`", "values: link, read"),
        (
            "ptx-8.5",
            {"scplock": "none"},
            "unknown reading `scplock`",
            "did you mean `scploc`? readings: " + ", ".join(sorted(cat.index().readings)),
        ),
    ],
)
def test_wrong_names(name: str, readings: dict[str, str], message: str, hint: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        cat.load(name, readings)
    assert (caught.value.message, caught.value.hint, caught.value.kind) == (message, hint, "usage")


@pytest.mark.parametrize("name", PTX)
def test_coherence_is_bounded_below_only(name: str) -> None:
    model = cat.load(name)
    bounds = polarity.lower_bounds(model, "co")
    found = [(axiom.name, symmetric) for axiom, _, symmetric in bounds]
    assert found[:2] == [("Coherence", False), ("CoTotalMS", True)]
    assert all("co" not in bounded.depends and "fr" not in bounded.depends for _, bounded, _ in bounds)
    names = {axiom.name for axiom, _, _ in bounds}
    assert all(polarity.antitone(model, axiom, ("co", "fr")) is (axiom.name not in names) for axiom in model.axioms)
    assert [(a.name, s) for a, _, s in polarity.lower_bounds(model, "fsc")] == [("FenceSC-total", True)]
    dependent = polarity.lower_bounds(model, "fsc", dependent=True)
    # ptx-6.0 says it otherwise: no fence.sc is in causality order after a later one.
    later = [] if name == "ptx-6.0" else [("Fence-SC", False)]
    assert [(a.name, s) for a, _, s in dependent] == [("FenceSC-total", True), *later]


def test_the_bound_of_sc_leaves_identity_out() -> None:
    ((axiom, bounded, symmetric),) = polarity.lower_bounds(cat.load("sc"), "co")
    assert (axiom.name, symmetric) == ("Coherence", True)
    assert bounded.operator == "difference"
    assert bounded.depends == {"W", "ovl"}


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("empty po \\ co as a", [("po", False)]),
        ("let co = co+ empty po \\ co as a", [("po", False)]),
        ("let co = co+ empty po \\ (co^-1 | co) as a", [("po", True)]),
        ("empty po \\ (co+ | (co^-1)+) as a", [("po", True)]),
        ("empty po \\ co^-1 as a", []),
        ("empty po \\ (co | rf) as a", []),
        ("empty (po;co) \\ co as a", []),
        ("~empty po \\ co as a", []),
        ("flag ~empty po \\ co as a", []),
        ("acyclic po \\ co as a", []),
    ],
)
def test_lower_bounds(text: str, bounds: list[tuple[str, bool]]) -> None:
    model = cat.parse_model(text)
    assert [(node.name, symmetric) for _, node, symmetric in polarity.lower_bounds(model, "co")] == bounds


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("acyclic po; rf", "monotone"),
        ("acyclic rf", "absent"),
        ("empty rf \\ po", "antitone"),
        ("empty rf \\ (rf \\ po)", "monotone"),
        ("empty po \\ po^-1", "both"),
        ("~empty po", "antitone"),
        ("~empty rf \\ po+", "monotone"),
        ("empty ~po", "antitone"),
        ("empty R \\ domain(po)", "antitone"),
        ("let rec x = po | (rf; x; x; rf) empty rf \\ x", "antitone"),
        ("let rec x = (rf \\ po) | (x; x; rf) irreflexive x", "antitone"),
    ],
)
def test_polarity(text: str, wanted: str) -> None:
    model = cat.parse_model(text)
    assert polarity.polarity(model, model.axioms[0], "po") is Polarity(wanted)


def test_the_names_that_public_models_use() -> None:
    """A model over Dartagnan's base names, with the constructs that its PTX models are written in."""
    model = cat.parse_model(
        """PTX
        // scopes and barriers
        let sync_barrier = syncbar & scta
        let co = co+
        let fr = rf^-1; co
        let sw = W & (RLX | REL) let sr-read = R & (RLX | ACQ)
        let strong = sw | sr-read | F
        let proxy = GEN * GEN | SUR * SUR | TEX * TEX | CON * CON
        let ms = ((po | po^-1 | ([strong]; sr; [strong])) & proxy & (((M * M) & vloc) | ((_ * _) \\ (M * M)))) \\ id
        let rec o = (ms & rf) | (o; rmw; o)
        let s = ms & ((([W & REL]; po-loc?; [sw]) | ([F & ACQ_REL]; po; [sw])); o; ([sr-read]; po; [F & ACQ_REL]))
        let base = (po?; ((s | sync_fence | sync_barrier); po?)+) | po
        let pf = [F]; (proxy & scta); [M]
        let cause = vloc & (base & (pf^-1); base; base & pf) | loc & ([GEN]; base; [F & ALIAS]; base; [GEN])
        empty ((([W]; cause; [W]) & loc) \\ co) as axiom-Coherence
        empty (([W]; ms; [W]) & loc) \\ (co | co^-1) as axiom-Coherence2
        empty (([F & SC]; cause; [F & SC]) \\ sync_fence) as axiom-FenceSC
        empty (((ms & fr); (ms & co)) & rmw) as axiom-Atomicity
        acyclic (rf | addr | data | ctrl) as axiom-NoThinAir
        irreflexive ((rf | fr); cause) as axiom-Causality
        """
    )
    assert model.axioms[0].name == "axiom-Coherence"
    assert {"sync_fence", "syncbar", "sr"} <= model.names()
    assert [(a.name, s) for a, _, s in polarity.lower_bounds(model, "co")] == [
        ("axiom-Coherence", False),
        ("axiom-Coherence2", True),
    ]


# The formal definition in one piece, without the forms that the shipped texts use for speed.
PRELUDE = """
let incl = inscope & inscope^-1
let ms = ((po | po^-1 | ([STRONG]; incl; [STRONG])) & same-proxy & (vloc | ((E*E) \\ (M*M)))) \\ id
let rec obs = (ms & rf) | (obs; rmw; obs)
let F_REL = FSC | FAR   let F_ACQ = FSC | FAR
let relpat = ([REL]; (po & vloc)?; [W & STRONG]) | ([F_REL]; po; [W & STRONG])
let acqpat = ([(R & STRONG) \\ NORET]; (po & vloc)?; [ACQ]) | ([(R & STRONG) \\ NORET]; po; [F_ACQ])
let sync-ra = ms & (relpat; obs; acqpat)
let com-ms = ms & (rf | co | fr)
let dep = addr | data | ctrl | rmw
acyclic fsc as FenceSC-order
empty (([FSC]; ms; [FSC]) \\ (fsc | fsc^-1)) as FenceSC-total
let arrived = barphase | warpphase | cluphase | mbphase | mbcount | exitphase | started
acyclic (rf | dep | arrived | ([BW | CW | API]; po) | ([BW | CW | API]; po; issue-all)) as No-Thin-Air
"""
COMMON = """
empty (([W]; cause; [W]) & ovl) \\ co as Coherence
empty (([W]; ms; [W]) & ovl) \\ (co | co^-1) as CoTotalMS
acyclic (com-ms | (po & vovl & same-proxy)) as SC-per-Location
irreflexive ((rf | fr); precedes) as Causality
"""
PARTIAL = "let partial = (ovl & ((W*M) | (M*W))) \\ id \\ (IW*M | M*IW) \\ loc "
DEFINITIONS = {
    "ptx-6.0": PARTIAL
    + "let same-proxy = E*E let vloc = loc let ovl = loc let vovl = loc let started = 0"
    + PRELUDE
    + """
let sw = sync-ra | fsc | barphase | warpphase
let bc = (po?; sw; po?)+
let cause = bc | (obs; (bc | (po & loc)))
let precedes = cause
irreflexive (fsc; cause) as Fence-SC
empty ((ms & fr); (ms & co)) & rmw as Atomicity
let follows = cause | po | (obs; po)
flag ~empty partial \\ (follows | follows^-1 | ms) as mixed-size-race
flag ~empty partial as mixed-sizes
"""
    + COMMON,
    "ptx-7.5": PARTIAL
    + "let same-proxy = GEN*GEN | SUR*SUR | TEX*TEX | CON*CON let started = api \\ api-indirect"
    + PRELUDE
    + """
let bc = (po | sync-ra | fsc | barphase | warpphase | (api \\ api-indirect) | ([F_REL & (GPU | SYS)]; po; trigger; po))+
let pfl = pfence & scta
let xit = [M & GEN] | ([M \\ GEN]; (bc & pfl^-1); [PF])
let ent = [M & GEN] | ([PF]; (bc & pfl); [M \\ GEN])
let ppbc = ([M & GEN]; (bc & vovl); [M & GEN]) | ([M]; (bc & vovl & same-proxy & scta); [M])
  | (vovl & (xit; bc; ent)) | (ovl & (xit; bc; [AF]; bc; ent))
let cause = ppbc | (obs; ppbc)
let precedes = cause
flag ~empty partial \\ (precedes | precedes^-1 | ms) as mixed-size-race
flag ~empty partial as mixed-sizes
empty (([FSC]; bc; [FSC]) & ms) \\ fsc as Fence-SC
empty ((ms & fr); (ms & co)) & rmw as Atomicity-RMW
"""
    + COMMON,
    "ptx-8.5": "let same-proxy = GEN*GEN | ASY*ASY | TMP*TMP let started = api \\ api-indirect"
    + PRELUDE
    + """
let clu = [CA]; cluphase; [CW & ACQ]
let mb = [MBA]; mbphase; [MBW & ACQ]
let sync-clu = ms & ([CA & REL] | ([F_REL]; po; [CA])); clu
let sync-mb = ms & ([MBA & REL] | ([F_REL]; po; [MBA])); mb
let sync-tm = ms & ([TMREL]; po; [W & STRONG]; obs; [(R & STRONG) \\ NORET]; po; [TMACQ])
let sync = sync-ra | fsc | barphase | warpphase | (ms & (([CA & REL] | ([F_REL]; po; [CA])); clu))
  | (ms & (([MBA & REL] | ([F_REL]; po; [MBA])); mb)) | (api \\ api-indirect) | ([F_REL & (GPU | SYS)]; po; trigger; po)
let bc0 = (po | aord | acomp | sync)+
let bt0 = (po | aord | acomp | sync | sync-tm)+
let mbi-s = ms & ([FMBI]; po; (clu | ([W & STRONG]; obs; acqpat)))
let bc-mbi = [MBI]; po; mbi-s; bc0?
let bc = bc0 | bc-mbi | issue | ((bc0 | bc-mbi); issue)
let bt = bt0 | issue | (bt0; issue)
let pfl = pfence & scta
let xit = [M & GEN] | ([M & (ASY | (R & TMP))]; (bc & pfl^-1); [PF])
let ent = [M & GEN] | ([PF]; (bc & pfl); [M & ASY])
let ent-tm = [TMACQ]; (bt & tmcov & scta); [R & TMP]
let ppbc = ([M & GEN]; (bc & vovl); [M & GEN]) | ([M]; (bc & vovl & same-proxy & scta); [M])
  | (vovl & (xit; bc; ent)) | (ovl & (xit; bc; [AF]; bc; ent))
  | (vovl & ([M & GEN]; bt; [TMREL]; bt; ent-tm)) | (ovl & ([M]; bc; [API]; bc; [M]))
let cause = ppbc | (obs; ppbc)
let precedes = cause | (rmw; cause)  (* an atomic is one operation: atomic=operation *)
empty (([FSC]; bc; [FSC]) & ms) \\ fsc as Fence-SC
empty ((ms & fr); (ms & co)) & rmw as Atomicity-RMW
empty (rf^-1 & fr & ms) as SingleCopyAtomicity
let amo-ms = (([AMO]; (po | po^-1 | incl); [AMO]) & vovl & same-proxy) \\ id
empty (([W]; amo-ms; [W]) \\ (co | co^-1)) as MixedSizeRMW-order
empty ((amo-ms & fr); (amo-ms & co)) & rmw as MixedSizeRMW
let conflict = (ovl & ((W*M) | (M*W))) \\ id \\ (IW*M | M*IW)
let race = (conflict \\ (precedes | precedes^-1 | ms)) \\ same-value
flag ~empty (race \\ loc) as mixed-size-race
flag ~empty race as data-race
let mbpre = po | (bc; (po | issue-all))
flag ~empty (MBX \\ range(mbobj & mbpre)) | range((mbobj \\ mbpre) \\ (po | (bc; po))^-1) as mbarrier-before-init
flag ~empty domain(lives) \\ domain(lives & (bc | ((rf | mbphase); bc?))) as shared-after-exit
flag ~empty range(mblate) \\ range(mbpassed & (bc | (bc; issue-all))+) as mbarrier-phase-skipped
"""
    + COMMON,
}


@pytest.mark.parametrize("name", PTX)
def test_the_models_say_what_the_definition_says(name: str) -> None:
    shipped, plain = cat.load(name), cat.parse_model(DEFINITIONS[name])
    wanted = {axiom.name: axiom for axiom in plain.axioms}
    assert sorted(wanted) == sorted(axiom.name for axiom in shipped.axioms)
    rng = random.Random(2)
    verdicts = set()
    for _ in range(200):
        n = rng.randint(1, 6)
        algebra = Concrete(n)
        density = rng.choice((0.1, 0.3, 0.5))
        base = {key: algebra.set_of(i for i in range(n) if rng.random() < 0.6) for key in sorted(names.SETS)}
        # What the definition takes for granted: proxies part the accesses, waits acquire, PTX 8.6 adds the rest.
        base["TMP"] &= base["M"] & ~(base["GEN"] | base["ASY"])
        base["ASY"] &= base["M"] & ~base["GEN"]
        later = ("FA", "FL", "FRR", "FRA", "ASREL", "ASACQ", "TEN", "TCC", "TCM", "TCB", "TCX", "STA")
        base |= dict.fromkeys(later, algebra.set_of(()))
        base["ACQ"] |= base["MBW"]
        for key in sorted(names.RELATIONS):
            base[key] = algebra.relation((i, j) for i in range(n) for j in range(n) if rng.random() < density)
        base["accum"] = algebra.relation(())
        one, other = Evaluator(shipped, algebra, base.get), Evaluator(plain, algebra, base.get)
        for axiom, value in one.axioms():
            reference = wanted[axiom.name]
            assert (axiom.kind, axiom.negated, axiom.flag) == (reference.kind, reference.negated, reference.flag)
            verdict = algebra.satisfies(axiom.kind, axiom.negated, value)
            assert verdict == algebra.satisfies(axiom.kind, axiom.negated, other.value(reference.body)), axiom.name
            verdicts.add((axiom.name, verdict))
    assert len(verdicts) == 2 * len(shipped.axioms)
