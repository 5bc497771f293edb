"""The ledger's rules on claims and verdicts made by hand: each fault is found, and nothing else."""

from dataclasses import replace

import pytest

from sparsexor._audit import Claim, covering, faults, status, support_of

LEMMA = Claim("small", "lemma", "Small", "ours", "page", has_proof=True)
THEOREM = Claim(
    "big", "theorem", "Big", "from the paper", "page", covers=("P6",), uses=("small", "thing"), has_proof=True
)
DEFINITION = Claim("thing", "definition", "Thing", "from the paper", "page")
BOOK = [DEFINITION, LEMMA, THEOREM]


def verdict(claim, kind="identity", outcome="true", against=""):
    return {"claim": claim, "kind": kind, "outcome": outcome, "method": "", "against": against}


GOOD = [v for c in ("small", "big") for v in (verdict(c), verdict(c, "control", against="identity"))]


def changed(label, **changes):
    return [replace(c, **changes) if c.label == label else c for c in BOOK]


def test_a_sound_book_has_no_faults():
    assert faults(BOOK, GOOD) == []


@pytest.mark.parametrize(
    ("claims", "verdicts", "words"),
    [
        (BOOK, GOOD[1:], "lemma 'small' has no passing check"),
        (BOOK, GOOD[:1] + GOOD[2:], "lemma 'small' has no negative control"),
        (BOOK, [*GOOD, verdict("small", outcome="false")], "ended with the verdict false"),
        (BOOK, [*GOOD, verdict("small", "control", "false", "identity")], "a control of 'small' ended"),
        (BOOK, [*GOOD, verdict("small", outcome="undecided")], "ended with the verdict undecided"),
        (BOOK, [*GOOD, verdict("unheard-of")], "no statement of the book"),
        (changed("big", uses=("small", "missing")), GOOD, "uses 'missing'"),
        (changed("small", uses=("big",)), GOOD, "rests on itself"),
        (changed("small", uses=("small",)), GOOD, "rests on itself"),
        (changed("big", covers=("P13",)), GOOD, "covers 'P13'"),
        (changed("big", origin=""), GOOD, "no origin"),
        (changed("big", has_proof=False), GOOD, "theorem 'big' has no proof"),
        ([*BOOK, LEMMA], GOOD, "several statements"),
        ([*BOOK, Claim("guess", "conjecture", "Guess", "ours", "page")], GOOD, "no passing statistic"),
    ],
)
def test_each_fault_is_found(claims, verdicts, words):
    assert any(words in fault for fault in faults(claims, verdicts))


@pytest.mark.parametrize("kind", ["theorem", "lemma", "proposition", "corollary"])
def test_every_provable_statement_needs_check_control_and_proof(kind):
    found = faults([Claim("c", kind, "C", "ours", "page")], [])
    assert [fault.split("' ")[1] for fault in found] == [
        "has no passing check",
        "has no negative control",
        "has no proof",
    ]


@pytest.mark.parametrize("kind", ["definition", "remark", "example"])
def test_other_statements_need_nothing(kind):
    assert faults([Claim("c", kind, "C", "", "page")], []) == []


def test_a_conjecture_with_a_statistic_stands_and_stays_a_conjecture():
    guess = Claim("guess", "conjecture", "Guess", "ours", "page")
    verdicts = [verdict("guess", "statistic")]
    assert faults([guess], verdicts) == []
    assert status(guess, support_of(verdicts)["guess"]) == "conjecture"


def test_a_failed_check_does_not_count_as_support():
    assert faults([LEMMA], [verdict("small", outcome="false"), verdict("small", "control", against="identity")])[
        -1
    ].endswith("no passing check")


@pytest.mark.parametrize(("kind", "words"), [("identity", "proved"), ("inequality", "proved"), ("certificate", "proved"),
                                             ("instance", "instances only"), ("statistic", "instances only")])  # fmt: skip
def test_the_status_says_what_backs_a_lemma(kind, words):
    assert words in status(LEMMA, support_of([verdict("small", kind)])["small"])


def test_longer_cycles_are_found():
    ring = [Claim(x, "definition", x, "", "page", uses=(y,)) for x, y in ("ab", "bc", "ca")]
    assert "rests on itself" in faults(ring, [])[0]


def test_the_papers_claims_know_what_covers_them():
    covered = covering(BOOK)
    assert list(covered) == [f"P{n}" for n in range(1, 13)]
    assert [c.label for c in covered["P6"]] == ["big"] and covered["P2"] == []
