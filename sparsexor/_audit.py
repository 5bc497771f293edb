"""The ledger's rules: which statements need what, who rests on whom, and what is missing.

Pure functions over the statements that the book makes and the verdicts that its executed notebooks hold; the Sphinx
side in ``book/_ext`` collects both and stops the build at the first list of faults that is not empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

PROVABLE = ("theorem", "lemma", "proposition", "corollary")
"""Statements that need a proof, a passing check and a control."""

ORIGINS = ("from the paper", "reconstructed", "ours")

MACHINE_PROOFS = ("identity", "inequality", "certificate")
"""Kinds of check that prove something; an instance or a statistic only supports it."""

PAPER_CLAIMS = {
    "P1": "The task, the model and its training: sparse XOR, a two-head softmax attention, one gradient step.",
    "P2": "A feed-forward network needs Ω(d) parameters.",
    "P3": "A linear classifier on a fixed embedding needs a dimension that grows exponentially in k.",
    "P4": "The reduced model is a one-layer two-head transformer with a CLS token and structural masking.",
    "P5": "Random positions are nearly orthogonal at m = polylog(d).",
    "P6": "Theorem 2: one gradient step drives the loss on every input close to 0, with high probability.",
    "P7": "Corollary 3: n = Ω(d⁴ polylog d) samples suffice for the empirical gradient.",
    "P8": "That n is loose: experiments suggest something like O(d).",
    "P9": "Section 3.2: softmax is needed; linear and erf attention do not specialise as fast.",
    "P10": "After the step heads and targets align one to one, with attention close to 1.",
    "P11": "The antisymmetric start does not extend to k-parity with k > 2.",
    "P12": "Separation: Ω(d) parameters for the feed-forward network, polylog(d) for the transformer.",
}
"""The paper's claims, numbered by this book."""


@dataclass(frozen=True)
class Claim:
    """A statement of the book.

    Attributes
    ----------
    label
        its unique slug.
    type
        "theorem", "lemma", "definition", "conjecture", …
    title
        its title without the origin.
    origin
        one of `ORIGINS`, or "" where the title names none.
    docname
        the page that states it.
    covers
        the paper's claims (P1 to P12) that it covers.
    uses
        labels that its statement and proof refer to.
    has_proof
        whether a proof follows it.
    """

    label: str
    type: str
    title: str
    origin: str
    docname: str
    covers: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    has_proof: bool = False


@dataclass
class Support:
    """The passing verdicts of one claim: kinds of its checks and of its controls, with their numbers."""

    checks: dict[str, int] = field(default_factory=dict)
    controls: dict[str, int] = field(default_factory=dict)


def support_of(verdicts: Iterable[Mapping[str, str]]) -> dict[str, Support]:
    """Count the passing checks and controls of each claim."""
    found: dict[str, Support] = {}
    for verdict in verdicts:
        support = found.setdefault(verdict["claim"], Support())
        if verdict["outcome"] == "true":
            is_control = verdict["kind"] == "control"
            counts, kind = (support.controls, verdict["against"]) if is_control else (support.checks, verdict["kind"])
            counts[kind] = counts.get(kind, 0) + 1
    return found


def status(claim: Claim, support: Support) -> str:
    """How well a claim stands, in the words of the ledger page."""
    if claim.type == "conjecture":
        return "conjecture"
    if claim.type not in PROVABLE:
        return claim.type
    return "proved" if any(kind in support.checks for kind in MACHINE_PROOFS) else "proof by hand, instances only"


def faults(claims: Sequence[Claim], verdicts: Sequence[Mapping[str, str]]) -> list[str]:
    """Everything that keeps the ledger from being accepted, one sentence each; empty if it stands."""
    labels = [c.label for c in claims]
    supports = support_of(verdicts)
    found = [
        f"the label '{label}' belongs to several statements"
        for label in sorted({x for x in labels if labels.count(x) > 1})
    ]
    for verdict in verdicts:
        if verdict["claim"] not in labels:
            found.append(f"a check names '{verdict['claim']}', which no statement of the book is labelled with")
        if verdict["outcome"] != "true":
            found.append(f"a {verdict['kind']} of '{verdict['claim']}' ended with the verdict {verdict['outcome']}")
    for claim in claims:
        found += [
            f"{claim.type} '{claim.label}' {fault}"
            for fault in _claim_faults(claim, supports.get(claim.label, Support()), labels)
        ]
    return found + _cycles(claims)


def _claim_faults(claim: Claim, support: Support, labels: Sequence[str]) -> list[str]:
    found = [f"uses '{use}', which no statement is labelled with" for use in claim.uses if use not in labels]
    found += [
        f"covers '{p}', which is no claim of the paper (P1 to P12)" for p in claim.covers if p not in PAPER_CLAIMS
    ]
    if claim.type in (*PROVABLE, "conjecture") and not claim.origin:
        found.append(f"has no origin in its title (end it with '— ' and one of: {', '.join(ORIGINS)})")
    if claim.type in PROVABLE:
        if not support.checks:
            found.append("has no passing check")
        if not support.controls:
            found.append("has no negative control")
        if not claim.has_proof:
            found.append("has no proof")
    if claim.type == "conjecture" and "statistic" not in support.checks:
        found.append("has no passing statistic")
    return found


def _cycles(claims: Sequence[Claim]) -> list[str]:
    try:
        TopologicalSorter({c.label: set(c.uses) for c in claims}).prepare()
    except CycleError as cycle:
        return [f"'{cycle.args[1][0]}' rests on itself: {' → '.join(reversed(cycle.args[1]))}"]
    return []


def covering(claims: Sequence[Claim]) -> dict[str, list[Claim]]:
    """For each claim of the paper, the statements that cover it, in the book's order."""
    return {paper: [c for c in claims if paper in c.covers] for paper in PAPER_CLAIMS}
