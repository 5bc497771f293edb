"""The machines behind the ledger's identities and inequalities.

Each prover answers with an `Answer`: ``true`` with the method that proved it, ``false`` with a point at which
the claim fails, or ``undecided``. It never guesses: "SymPy could not simplify it" is not "false".
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sympy as sp
import z3
from sympy.core.evalf import PrecisionExhausted

LARGEST_POWER = 1000
"""z3 is given a power as a product of this many factors at most."""

Outcome = Literal["true", "false", "undecided"]


@dataclass(frozen=True)
class Answer:
    """What a prover found: the outcome, by which method, and for ``false`` where the claim fails."""

    outcome: Outcome
    method: str
    witness: str = ""


_SIMPLIFIERS = (
    sp.expand,
    lambda e: sp.cancel(sp.together(sp.expand(e))),
    sp.simplify,
    lambda e: sp.simplify(sp.expand(e.rewrite(sp.exp))),
)


def prove_zero(difference: sp.Expr) -> Answer:
    """Decide whether an expression vanishes for every admissible value of its symbols.

    "True" needs a chain of SymPy's exact rewritings that ends in 0; "false" needs a point, respecting the
    symbols' assumptions, at which 50 reliable digits show a non-zero value. Variables with indices are never
    put to numbers, since which of them are equal depends on the indices: they are for the finite-check lemma.
    """
    for simplifier in _SIMPLIFIERS:
        if simplifier(difference) == 0:
            return Answer("true", "SymPy reduces the difference of the two sides to 0")
    draw = random.Random(0)
    for _ in range(0 if difference.has(sp.Indexed) else 20):
        point = {s: _admissible_value(s, draw) for s in sorted(difference.free_symbols, key=str)}
        if None in point.values():
            break
        try:
            value = sp.N(difference.subs(point).doit(), 50, strict=True)
        except PrecisionExhausted:  # the sides cancel, as they do where they agree
            continue
        if value.is_number and value.is_finite and value != 0:
            where = ", ".join(f"{s} = {v}" for s, v in point.items())
            return Answer("false", "evaluated with 50 digits", f"the sides differ by {sp.N(value, 5)} at {where}")
    return Answer("undecided", "SymPy finds neither a proof nor a counterexample")


def _admissible_value(symbol: sp.Symbol, draw: random.Random) -> sp.Rational | None:
    """A random rational that respects the symbol's assumptions (positive, integer, even, …); None if none is found."""
    for _ in range(50):
        size = draw.randint(1, 9) if symbol.is_integer else sp.Rational(draw.randint(1, 30), draw.randint(7, 13))
        value = sp.Integer(draw.choice((1, -1))) * size
        if all(getattr(value, f"is_{name}") is truth for name, truth in symbol.assumptions0.items()):
            return value
    return None


def prove_by_smt(claim: sp.Rel, where: Sequence[sp.Rel]) -> Answer:
    """Decide a polynomial inequality over the reals with z3: is "hypotheses and not claim" unsatisfiable?

    Divisions are allowed where the hypotheses exclude a zero denominator; that is proved first. Hypotheses
    that contradict each other would prove anything, so they are refused with a ``ValueError``.
    """
    symbols = sorted(set().union(*(r.free_symbols for r in [claim, *where])), key=str)
    _check_real_symbols(symbols)
    reals = {s: z3.Real(str(s)) for s in symbols}
    hypotheses = [_to_z3(h, reals) for h in where]
    if _solve(hypotheses)[0] != z3.sat:
        raise ValueError(
            f"where: z3 finds no point that satisfies {', '.join(map(str, where))}; expected consistent hypotheses"
        )
    for denominator in _denominators([claim, *where]):
        if _solve([*hypotheses, _to_z3(denominator, reals) == 0])[0] != z3.unsat:
            raise ValueError(
                f"relation: got the denominator {denominator}, which may vanish; expected where= to exclude its zeros"
            )
    result, model = _solve([*hypotheses, z3.Not(_to_z3(claim, reals))])
    if result == z3.unsat:
        return Answer("true", "z3 finds the hypotheses and the negated claim unsatisfiable")
    if result == z3.sat:
        where_it_fails = ", ".join(f"{s} = {model.eval(r, model_completion=True)}" for s, r in reals.items())
        return Answer("false", "z3", f"it fails at {where_it_fails}")
    return Answer("undecided", "z3 gives up")


def _check_real_symbols(symbols: Sequence[sp.Symbol]) -> None:
    """z3 knows a symbol by its name alone, as any real number."""
    plain = [sp.Symbol("s").assumptions0, sp.Symbol("s", real=True).assumptions0]
    for symbol in symbols:
        if not isinstance(symbol, sp.Symbol) or symbol.assumptions0 not in plain:
            raise TypeError(
                f"relation: got {symbol} with assumptions that z3 does not see; expected a real symbol, and where="
            )
    names = [str(symbol) for symbol in symbols]
    for name in names:
        if names.count(name) > 1:
            raise TypeError(f"relation: got two different symbols named {name}; expected one")


def _solve(constraints: Iterable[Any]) -> tuple[Any, Any]:
    solver = z3.Solver()
    # A resource limit, unlike a time limit, stops at the same place on every machine.
    solver.set("rlimit", 200_000_000)
    solver.add(*constraints)
    result = solver.check()
    return result, solver.model() if result == z3.sat else None


def _denominators(relations: Sequence[sp.Rel]) -> list[sp.Expr]:
    found = {power.base for r in relations for power in r.atoms(sp.Pow) if power.exp.is_negative}
    return sorted((base for base in found if not base.is_number), key=str)


def _to_z3(expr: sp.Basic, reals: Mapping[sp.Symbol, Any]) -> Any:
    """Translate a SymPy polynomial, Abs, Min, Max or relation into z3's language of the reals."""
    if isinstance(expr, sp.Symbol):
        return reals[expr]
    if isinstance(expr, sp.Rational):
        return z3.Q(int(expr.p), int(expr.q))
    known = isinstance(expr, sp.Add | sp.Mul | sp.Abs | sp.Max | sp.Min | sp.Rel)
    args = [_to_z3(a, reals) for a in expr.args] if known else []
    if isinstance(expr, sp.Add):
        return z3.Sum(args)
    if isinstance(expr, sp.Mul):
        return z3.Product(args)
    if isinstance(expr, sp.Pow) and expr.exp.is_Integer:
        if abs(expr.exp) > LARGEST_POWER:
            raise ValueError(f"relation: got the power {expr}; expected exponents of at most {LARGEST_POWER}")
        power = z3.Product([_to_z3(expr.base, reals)] * abs(int(expr.exp)))
        return power if expr.exp > 0 else 1 / power
    if isinstance(expr, sp.Abs):
        return z3.If(args[0] >= 0, args[0], -args[0])
    if isinstance(expr, sp.Max | sp.Min):
        best = args[0]
        for other in args[1:]:
            best = z3.If(best >= other if isinstance(expr, sp.Max) else best <= other, best, other)
        return best
    relations = {sp.Le: "__le__", sp.Lt: "__lt__", sp.Ge: "__ge__", sp.Gt: "__gt__", sp.Eq: "__eq__", sp.Ne: "__ne__"}
    for kind, operator in relations.items():
        if isinstance(expr, kind):
            return getattr(args[0], operator)(args[1])
    raise TypeError(
        f"relation: got {expr} ({type(expr).__name__}); expected polynomials, quotients, Abs, Min, Max and relations"
    )
