"""The ledger: checks that produce verdicts, and controls that show the checks can fail.

A check is one call in a notebook. It names the claim it supports (the label of a statement in the book),
does the comparing itself, displays a `Verdict`, and raises `CheckFailed` unless the verdict is "true", so that
a false claim stops the build. `control` repeats the claim's check with the claim replaced by a wrong variant, and
passes only if that variant is found false. The book's build reads the verdicts from the outputs that it has just
executed and draws the ledger page from them.
"""

from __future__ import annotations

import html
import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import sympy as sp
from IPython.display import display
from mpmath.ctx_iv import ivmpf
from scipy.stats import beta

from sparsexor._arguments import check_count, check_real
from sparsexor._provers import Answer, Outcome, prove_by_smt, prove_zero

MIME = "application/vnd.sparsexor.verdict+json"
"""The type under which a verdict travels in a notebook's output."""

TOLERANCE = 1e-10
"""Largest deviation of an `instance`, relative to the oracle's largest entry. It is far above rounding (1e-16 times the number
of operations), far below the effect of a wrong term."""

CONFIDENCE = 0.999
"""Level of the Clopper-Pearson interval of a `statistic`. A true claim is rejected with probability at most 0.001."""


class CheckFailed(AssertionError):
    """A check whose verdict is not "true", or a control whose wrong variant was not found false."""


@runtime_checkable
class ForEveryDimension(Protocol):
    """One side of an identity that has been brought under the finite-check lemma (`sparsexor.walsh.for_every_d`)."""

    def compare_for_every_d(self, other: Any) -> Answer:
        """Compare with the other side at the dimension that the lemma asks for (SymPy's expressions have a ``compare``)."""


@dataclass(frozen=True)
class Verdict:
    """The result of one check, as it is displayed and stored.

    Attributes
    ----------
    claim
        label of the statement in the book.
    kind
        "identity", "inequality", "instance", "statistic", "certificate" or "control".
    outcome
        "true", "false" or "undecided"; for a control, "true" means that the wrong variant was rejected.
    method
        how it was decided, over which values.
    against
        for a control, the kind of the check that it repeats; else "".
    """

    claim: str
    kind: str
    outcome: str
    method: str
    against: str = ""

    def __str__(self) -> str:
        mark = "✓" if self.outcome == "true" else "✗"
        return f"{mark} {self.kind} · {self.claim} · {self.method}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        state = "passed" if self.outcome == "true" else "failed"
        label = "control: wrong variant rejected" if self.kind == "control" and state == "passed" else self.kind
        body = (
            f'<div class="verdict verdict-{state}"><span class="verdict-kind">{"✓" if state == "passed" else "✗"} '
            f"{html.escape(label)}</span> <code>{html.escape(self.claim)}</code> {html.escape(self.method)}</div>"
        )
        return {"text/plain": str(self), "text/html": body, MIME: asdict(self)}


@dataclass(frozen=True)
class _Check:
    """A check that has run: its kind, the claim's content, and how to decide it for any content put in its place."""

    kind: str
    content: Any
    decide: Callable[[Any], Answer]


_checks: dict[str, list[_Check]] = {}


def _check_claim(claim: Any) -> None:
    if not isinstance(claim, str):
        raise TypeError(
            f"claim: got {claim!r} of type {type(claim).__name__}; expected the label of a statement in the book"
        )
    if not claim:
        raise ValueError("claim: got ''; expected the label of a statement in the book")


def _run(claim: str, check: _Check) -> None:
    _check_claim(claim)
    answer = check.decide(check.content)
    _checks.setdefault(claim, []).append(check)
    method = answer.method + (f": {answer.witness}" if answer.witness else "")
    _publish(Verdict(claim, check.kind, answer.outcome, method))


def _publish(verdict: Verdict) -> None:
    display(verdict)
    if verdict.outcome != "true":
        raise CheckFailed(str(verdict))


def identity(claim: str, lhs: Any, rhs: Any) -> None:
    """Prove an identity exactly, for all values of its symbols.

    Parameters
    ----------
    claim
        label of the statement.
    lhs, rhs
        two SymPy expressions, or two sides brought under the finite-check lemma by
        `sparsexor.walsh.for_every_d`; `rhs` is what a control replaces.

    Raises
    ------
    TypeError
        for floats, for plain numbers, and for expressions with a numeric dimension (indexed by integers, summed
        between numbers, or written with numbered symbols such as a1, a2): an example is no proof.
    CheckFailed
        if the identity is false, or SymPy cannot decide it.
    """

    def decide(right: Any) -> Answer:
        through_lemma = [isinstance(side, ForEveryDimension) for side in (lhs, right)]
        if all(through_lemma):
            return lhs.compare_for_every_d(right)
        if any(through_lemma):
            raise TypeError("rhs: got one side under the finite-check lemma and one outside; expected both or neither")
        sides = [_exact(name, side) for name, side in (("lhs", lhs), ("rhs", right))]
        if not (sides[0].free_symbols | sides[1].free_symbols):
            raise TypeError(
                f"rhs: got numbers on both sides, {sides[0]} and {sides[1]}; expected an identity in symbols"
            )
        return prove_zero(sides[0] - sides[1])

    _run(claim, _Check("identity", rhs, decide))


def _exact(name: str, side: Any) -> sp.Expr:
    """The side as a SymPy expression, once it holds no float and no numeric dimension."""
    wrong_kind = isinstance(side, bool | sp.MatrixExpr) or not isinstance(side, sp.Expr | numbers.Integral)
    if wrong_kind:
        raise TypeError(f"{name}: got {type(side).__name__}; expected an exact SymPy expression")
    side = sp.sympify(side)
    if side.has(sp.Float) or side.has(sp.nan) or side.has(sp.zoo, sp.oo):
        raise TypeError(f"{name}: got a floating-point, infinite or undefined number in {side}; expected exact numbers")
    # SymPy quietly numbers its own dummies, which carry no digit in their name and so pass.
    numbered = sorted(s.name for s in side.free_symbols if isinstance(s, sp.Symbol) and s.name[-1:].isdigit())
    indexed = [str(e) for e in side.atoms(sp.Indexed) if any(i.is_number for i in e.indices)]
    summed = [str(e) for e in side.atoms(sp.Sum, sp.Product) if any(_between_numbers(t) for t in e.limits)]
    for found in (numbered, indexed, summed):
        if found:
            raise TypeError(
                f"{name}: got a numeric dimension ({found[0]}); expected symbolic d, or both sides through for_every_d"
            )
    return side


def _between_numbers(limit: sp.Tuple) -> bool:
    return len(limit) == 3 and all(bound.is_number for bound in limit[1:])


def inequality(claim: str, relation: sp.Rel, where: Sequence[sp.Rel] = ()) -> None:
    """Prove an inequality between polynomials or quotients over all reals that satisfy the hypotheses.

    Parameters
    ----------
    claim
        label of the statement.
    relation
        a SymPy relation (<=, <, >=, >); what a control replaces.
    where
        relations that the variables satisfy. Every symbol ranges over the reals.

    Raises
    ------
    TypeError, ValueError
        for anything but exact relations, contradictory hypotheses, or a denominator that may vanish.
    CheckFailed
        if z3 finds a counterexample or gives up.
    """
    if isinstance(where, str | sp.Basic) or not isinstance(where, Iterable):
        raise TypeError(f"where: got {where!r} of type {type(where).__name__}; expected a sequence of SymPy relations")
    where = list(where)

    def decide(content: Any) -> Answer:
        for name, each in [("relation", content), *(("where", hypothesis) for hypothesis in where)]:
            if isinstance(each, bool | type(sp.true) | type(sp.false)):
                raise TypeError(
                    f"{name}: got {each}, which SymPy has already evaluated from its symbols' assumptions; expected plain symbols"
                )
            if not isinstance(each, sp.Rel):
                raise TypeError(
                    f"{name}: got {each!r} of type {type(each).__name__}; expected a SymPy inequality with symbols"
                )
            for side in each.args:
                _exact(name, side)
        answer = prove_by_smt(content, where)
        domain = "all reals" if not where else "all reals with " + ", ".join(_plain(h) for h in where)
        return Answer(answer.outcome, f"{_plain(content)} over {domain}; {answer.method}", answer.witness)

    _run(claim, _Check("inequality", relation, decide))


def _plain(relation: sp.Rel) -> str:
    sign = {"<=": "≤", ">=": "≥", "==": "="}.get(relation.rel_op, relation.rel_op)
    return f"{relation.lhs} {sign} {relation.rhs}".replace("**", "^").replace("*", "·")


def instance(claim: str, got: Any, oracle: Any) -> None:
    """Compare float64 numbers with an oracle that shares no code.

    Parameters
    ----------
    claim
        label of the statement.
    got
        the claim's numbers (tensor, array, number, or a sequence of them, one a case); what a control replaces.
    oracle
        the same numbers from the slow, obvious definition, in the same shapes.

    Raises
    ------
    TypeError
        for bools, or anything that is not float64, integer or a Python number.
    ValueError
        for shapes that differ, NaN or infinity, and an oracle without entries.
    CheckFailed
        if an entry deviates by more than `TOLERANCE` times the oracle's largest absolute entry in the same case (by more
        than `TOLERANCE`, where that is 0).
    """
    reference = _numbers("oracle", oracle)
    count = sum(case.size for case in reference)
    if not count:
        raise ValueError("oracle: got no numbers; expected at least one")

    def decide(content: Any) -> Answer:
        values = _numbers("got", content)
        if [v.shape for v in values] != [r.shape for r in reference]:
            raise ValueError(
                f"got: shapes {[v.shape for v in values]}; expected the oracle's {[r.shape for r in reference]}"
            )
        apart = [
            np.abs(v / 2 - r / 2).max(initial=0) > TOLERANCE / 2 * (np.abs(r).max(initial=0) or 1)
            for v, r in zip(values, reference, strict=True)  # halved, as a difference of large numbers may overflow
        ]
        plural = "number" if count == 1 else "numbers"
        if not any(apart):
            return Answer("true", f"{count} {plural} agree with the oracle to {TOLERANCE:g}")
        return Answer("false", f"{sum(apart)} of {len(apart)} cases deviate from the oracle by more than {TOLERANCE:g}")

    _run(claim, _Check("instance", got, decide))


def _numbers(name: str, value: Any) -> list[np.ndarray]:
    """A list of float64 arrays, one a case."""
    cases = list(value) if isinstance(value, list | tuple) else [value]
    arrays = [_array(name, case) for case in cases]
    for array in arrays:
        if array.dtype != np.float64 and array.dtype.kind not in "iu":
            raise TypeError(f"{name}: got entries of type {array.dtype}; expected float64 or integers")
        if not np.isfinite(array).all():
            raise ValueError(f"{name}: got NaN or infinite entries; expected finite numbers")
    return [a.astype(np.float64) for a in arrays]


def _array(name: str, case: Any) -> np.ndarray:
    try:
        return np.asarray(case.detach().cpu() if hasattr(case, "detach") else case)
    except (TypeError, ValueError, AttributeError, RuntimeError) as error:  # ragged, sparse, nested, without numbers
        raise TypeError(f"{name}: got a {type(case).__name__} that is no array; expected dense numbers") from error


def statistic(claim: str, successes: int, trials: int, claimed: float, sense: str = "equal to") -> None:
    """Compare a claimed probability with a frequency, by the Clopper-Pearson interval at level `CONFIDENCE`.

    Parameters
    ----------
    claim
        label of the statement.
    successes, trials
        counts from independent seeded draws.
    claimed
        the probability claimed, in [0, 1]; what a control replaces.
    sense
        "equal to", "at least" or "at most": the true probability in relation to `claimed`.

    Raises
    ------
    TypeError, ValueError
        for bools, counts or probabilities out of range, another `sense`.
    CheckFailed
        if the interval contradicts the claim.
    """
    trials = check_count("trials", trials, minimum=1)
    successes = check_count("successes", successes, minimum=0, maximum=trials)
    if not isinstance(sense, str):
        raise TypeError(f"sense: got {sense!r}; expected 'equal to', 'at least' or 'at most'")
    if sense not in ("equal to", "at least", "at most"):
        raise ValueError(f"sense: got {sense!r}; expected 'equal to', 'at least' or 'at most'")
    low, high = clopper_pearson(successes, trials)

    def decide(content: Any) -> Answer:
        probability = check_real("claimed", content, 0.0, 1.0)
        holds = (sense == "at most" or probability <= high) and (sense == "at least" or probability >= low)
        interval = f"{successes} of {trials} draws, {100 * CONFIDENCE:g} % interval [{low:.4f}, {high:.4f}]"
        return Answer("true" if holds else "false", f"{interval}, claimed {sense} {probability:.4f}")

    _run(claim, _Check("statistic", claimed, decide))


def clopper_pearson(successes: int, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Exact confidence interval of a binomial probability (Clopper and Pearson, 1934).

    Returns (low, high), the set of probabilities under which neither tail of the observation has probability below
    (1 - confidence) / 2; it covers the true one with probability at least `confidence`.
    """
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, successes, trials - successes + 1)) if successes else 0.0
    high = float(beta.ppf(1 - tail, successes + 1, trials - successes)) if successes < trials else 1.0
    return low, high


def certificate(claim: str, enclosure: Any, bound: Any) -> None:
    """Show that a number enclosed by interval arithmetic lies at or below a bound.

    Parameters
    ----------
    claim
        label of the statement.
    enclosure
        an mpmath interval (`mpmath.iv.mpf`) that contains the number, rounded outward.
    bound
        an integer or a SymPy rational; what a control replaces.

    Raises
    ------
    TypeError
        for an enclosure that is not an interval, or a bound that is not exact.
    ValueError
        for an enclosure with an infinite or undefined end.
    CheckFailed
        if the enclosure lies above the bound, or straddles it (then the verdict is undecided).
    """
    if not isinstance(enclosure, ivmpf):
        raise TypeError(f"enclosure: got {type(enclosure).__name__}; expected an mpmath interval (mpmath.iv.mpf)")
    low, high = (sp.Rational(*_exact_fraction(end)) for end in (enclosure.a, enclosure.b))

    def decide(content: Any) -> Answer:
        if isinstance(content, bool) or not isinstance(content, numbers.Integral | sp.Rational):
            raise TypeError(
                f"bound: got {content!r} of type {type(content).__name__}; expected an integer or a SymPy rational"
            )
        limit = sp.Rational(content)
        outcome: Outcome = "true" if high <= limit else "false" if low > limit else "undecided"
        return Answer(outcome, f"interval arithmetic encloses the number; claimed at most {limit}")

    _run(claim, _Check("certificate", bound, decide))


def _exact_fraction(end: Any) -> tuple[int, int]:
    """A binary floating-point end point of an mpmath interval as numerator and denominator."""
    sign, mantissa, exponent, _ = end._mpi_[0]
    if not mantissa and exponent:  # mpmath's code for infinities and NaN; zero has exponent 0
        raise ValueError(f"enclosure: got the end {end}; expected a bounded interval")
    signed = -int(mantissa) if sign else int(mantissa)
    return (signed << exponent, 1) if exponent >= 0 else (signed, 1 << -exponent)


def control(claim: str, wrong: Any, changed: str = "", kind: str | None = None) -> None:
    """Repeat a claim's check on a wrong variant, and pass only if the variant is found false.

    Parameters
    ----------
    claim
        label whose check has already run in this session.
    wrong
        what takes the place of the claim's content: the `rhs` of an identity, the `relation` of an inequality,
        `got` of an instance, `claimed` of a statistic, `bound` of a certificate. Nothing else of the check changes.
    changed
        the term in which `wrong` differs, for the reader.
    kind
        which of the claim's checks to repeat, where it has several; the latest by default.

    Raises
    ------
    LookupError
        if the claim has no such check yet.
    CheckFailed
        if the variant passes the check, or cannot be decided.
    TypeError, ValueError
        whatever the check raises on content of the wrong type or shape, or with NaN: an error is no rejection.
    """
    _check_claim(claim)
    candidates = [c for c in _checks.get(claim, []) if kind in (None, c.kind)]
    if not candidates:
        raise LookupError(
            f"claim: no check{f' of kind {kind!r}' if kind else ''} of {claim!r} has run; run it before its control"
        )
    check = candidates[-1]
    answer = check.decide(wrong)
    variant = f"the variant ({changed})" if changed else "the variant"
    if answer.outcome == "false":
        witness = f": {answer.witness}" if answer.witness else ""
        outcome, method = "true", f"{variant} is rejected by the same {check.kind}: {answer.method}{witness}"
    else:
        found = "passes" if answer.outcome == "true" else "is not decided by"
        outcome, method = "false", f"{variant} {found} the same {check.kind}, so the check shows nothing"
    _publish(Verdict(claim, "control", outcome, method, check.kind))
