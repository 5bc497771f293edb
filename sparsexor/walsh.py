"""Exact expectations over random signs, and the finite-check lemma: one dimension proves all.

Identities are written with symbolic d, as polynomials in indexed variables::

    d, k = symbols("d", integer=True, positive=True), Symbol("k", integer=True)
    a, b = IndexedBase("a"), IndexedBase("b")
    over(k, a[k] * b[k])                      # the sum over k = 1, ..., d

`for_every_d` checks that such an expression satisfies the hypotheses of the lemma, and lets two of them be compared
at the one dimension that decides every d. Source: the chapter "The task", lemma `finite-check`.
"""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import sympy as sp
from sympy.polys.rings import PolyElement, ring

from sparsexor._arguments import check_count
from sparsexor._provers import Answer

D = sp.Symbol("d", integer=True, positive=True)
"""The dimension."""

X = sp.IndexedBase("x")
"""The input's signs; X[k] is the k-th bit, and X[k]**2 = 1."""


class HypothesisError(ValueError):
    """An expression to which the finite-check lemma does not apply."""


class Expectation(sp.Function):
    """E[...] over independent uniform signs; stays unevaluated until a dimension is put in."""

    nargs = 1

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        inner = rf"\mathbb{{E}}\left[{printer._print(self.args[0])}\right]"
        return inner if exp is None else f"{inner}^{{{exp}}}"


def over(index: sp.Symbol, summand: sp.Expr) -> sp.Sum:
    """The sum of `summand` over index = 1, ..., d."""
    return sp.Sum(summand, (index, 1, D))


def expectation(expr: sp.Expr, signs: Sequence[sp.Symbol]) -> sp.Expr:
    """Exact expectation of a polynomial over independent uniform signs.

    Parameters
    ----------
    expr
        a polynomial in `signs`; the coefficients are any expressions without them.
    signs
        the symbols that take the values +1 and -1, each with probability 1/2.

    Returns
    -------
    The coefficient that is left when every power x**2 is replaced by 1 and every odd power averages to 0.

    Raises
    ------
    TypeError
        for anything but an exact SymPy expression and a sequence of symbols.
    ValueError
        if `expr` is not a polynomial in `signs`, or a sign comes twice.
    """
    expr, signs = _check_expr(expr), _check_signs(signs)
    if expr.has(sp.Float, sp.nan, sp.oo, -sp.oo, sp.zoo):
        raise TypeError(f"expr: got a floating-point, infinite or undefined number in {expr}; expected exact numbers")
    if not signs:
        return expr
    try:
        poly = sp.Poly(sp.expand(expr), *signs)
    except sp.PolynomialError as error:
        raise ValueError(f"expr: got {expr}; expected a polynomial in {', '.join(map(str, signs))}") from error
    return sp.Add(*(c for powers, c in poly.terms() if all(p % 2 == 0 for p in powers)))


def _check_expr(expr: Any) -> sp.Expr:
    """An expression, or an integer as one."""
    if isinstance(expr, bool | sp.MatrixExpr) or not isinstance(expr, sp.Expr | numbers.Integral):
        raise TypeError(f"expr: got {expr!r} of type {type(expr).__name__}; expected a SymPy expression")
    return sp.sympify(expr)


def _check_signs(signs: Any) -> list[sp.Symbol]:
    """Different symbols, as a list."""
    found = list(signs) if isinstance(signs, Iterable) and not isinstance(signs, str) else None
    if found is None or not all(isinstance(sign, sp.Symbol | sp.Indexed) for sign in found):
        raise TypeError(f"signs: got {signs!r} of type {type(signs).__name__}; expected a sequence of SymPy symbols")
    if len(set(found)) < len(found):
        raise ValueError(f"signs: got {found}; expected different symbols")
    return found


@dataclass(frozen=True)
class Hypotheses:
    """What the structure of an expression shows about the finite-check lemma's hypotheses.

    Attributes
    ----------
    degree
        upper bounds of the degrees in the variables, by name, for every d.
    special
        the free indices, fixed by the permutations under which the expression is equivariant.
    violation
        "" if the lemma applies; else the first hypothesis that fails.
    """

    degree: dict[str, int]
    special: tuple[sp.Symbol, ...]
    violation: str = ""

    @property
    def dimension(self) -> int:
        """The dimension that decides every d, with one coordinate for each special index and each factor of a monomial."""
        return len(self.special) + sum(self.degree.values())


def hypotheses(expr: sp.Expr, degree: int | None = None) -> Hypotheses:
    """Read off the finite-check lemma's hypotheses from the structure of an expression, for all d at once.

    Parameters
    ----------
    expr
        built from rational numbers, constants, variables a[k], signs X[k] inside `Expectation`, KroneckerDelta of
        two indices, sums `over` an index, +, * and non-negative integer powers. Names are unambiguous: no constant
        is numbered or named like d, the signs or a family of variables, and families carry no assumptions.
    degree
        largest degree allowed in any one family of variables; None for no limit.

    Returns
    -------
    Hypotheses, whose `violation` names the offending part: d outside the range of a sum, an index used as a number,
    a sum that merely counts (its value would depend on d), a sign outside an expectation, a division, too high a degree.
    """
    expr = _check_expr(expr)
    degree = None if degree is None else check_count("degree", degree, minimum=0)
    special = tuple(sorted(_free_indices(expr, frozenset()), key=str))
    degrees: dict[str, int] = {}
    try:
        _check_names(expr)
        degrees = _degrees(expr, frozenset(special), inside_expectation=False)
        worst = max(degrees.values(), default=0)
        if degree is not None and worst > degree:
            raise HypothesisError(f"degree {worst} exceeds the allowed {degree}")
    except HypothesisError as violated:
        return Hypotheses(degrees, special, str(violated))
    return Hypotheses(degrees, special)


def for_every_d(
    expr: sp.Expr, distinct: Sequence[tuple[sp.Symbol, sp.Symbol]] = (), degree: int = 2
) -> EquivariantPolynomial:
    """Bring one side of an identity under the finite-check lemma.

    Parameters
    ----------
    expr
        an expression as described in `hypotheses`.
    distinct
        pairs of free indices that are assumed to differ; other coincidences are all checked.
    degree
        largest degree allowed in any one family of variables.

    Raises
    ------
    HypothesisError
        if the structure of the expression does not show the lemma's hypotheses.
    ValueError
        for a pair in `distinct` that is not two different indices: nothing would be left to check.
    """
    expr = _check_expr(expr)
    pairs = _check_pairs(distinct)
    found = hypotheses(expr, degree)
    if found.violation:
        raise HypothesisError(
            f"expr: {found.violation}; expected an equivariant polynomial whose coefficients do not depend on d"
        )
    return EquivariantPolynomial(expr, found, pairs)


def _check_pairs(distinct: Any) -> tuple[tuple[sp.Symbol, sp.Symbol], ...]:
    allowed = "expected pairs of two different indices"
    pairs = list(distinct) if isinstance(distinct, Iterable) and not isinstance(distinct, str | dict) else [distinct]
    for pair in pairs:
        if not isinstance(pair, tuple | list) or not all(isinstance(index, sp.Symbol) for index in pair):
            raise TypeError(f"distinct: got {pair!r} of type {type(pair).__name__}; {allowed}")
        if len(pair) != 2 or pair[0] == pair[1]:
            raise ValueError(f"distinct: got {pair}; {allowed}")
    return tuple((first, second) for first, second in pairs)


@dataclass(frozen=True)
class EquivariantPolynomial:
    """A polynomial, one for each d, whose coefficients depend only on which indices are equal."""

    expr: sp.Expr
    hypotheses: Hypotheses
    distinct: tuple[tuple[sp.Symbol, sp.Symbol], ...] = ()

    def at(self, d: int, where: dict[sp.Symbol, int]) -> sp.Expr:
        """The polynomial in dimension d with the special indices put at the positions `where` (from 1)."""
        d = check_count("d", d, minimum=1)
        if not isinstance(where, dict):
            raise TypeError(f"where: got {type(where).__name__}; expected a dict from the special indices to positions")
        missing = [index for index in self.hypotheses.special if index not in where]
        if missing:
            raise ValueError(f"where: got no position for {missing[0]}; expected one for each special index")
        where = {index: check_count("where", position, minimum=1, maximum=d) for index, position in where.items()}
        return _Instantiation(self.expr, d).value(self.expr, where).as_expr()

    def compare_for_every_d(self, other: Any) -> Answer:
        """Decide equality for every d: at the lemma's dimension, for every coincidence of the special indices."""
        if not isinstance(other, EquivariantPolynomial):
            raise TypeError(f"other: got {type(other).__name__}; expected a side made by for_every_d")
        special = tuple(sorted({*self.hypotheses.special, *other.hypotheses.special}, key=str))
        factors = max(sum(side.hypotheses.degree.values()) for side in (self, other))
        d = max(len(special) + factors, 2)
        cases = list(_coincidences(special, {*self.distinct, *other.distinct}))
        for where in cases:
            difference = sp.expand(self.at(d, where) - other.at(d, where))
            if difference != 0:
                at = ", ".join(f"{s} = {p}" for s, p in where.items())
                shown = sp.Add(*sp.Add.make_args(difference)[:3])
                more = " + …" if len(sp.Add.make_args(difference)) > 3 else ""
                return Answer(
                    "false",
                    f"finite check at d = {d}",
                    f"the sides differ by {shown}{more}" + (f" for {at}" if at else ""),
                )
        return Answer("true", f"equal at d = {d}, hence for every d by the finite-check lemma")


def _coincidences(
    special: Sequence[sp.Symbol], distinct: set[tuple[sp.Symbol, sp.Symbol]]
) -> list[dict[sp.Symbol, int]]:
    """One placement of the special indices for each way in which they may coincide."""
    found: dict[tuple[int, ...], dict[sp.Symbol, int]] = {}
    for places in itertools.product(range(1, len(special) + 1), repeat=len(special)):
        where = dict(zip(special, places, strict=True))
        if any(where.get(p) == where.get(q) for p, q in distinct if p in where and q in where):
            continue
        pattern = tuple(places.index(p) for p in places)
        found.setdefault(pattern, where)
    return list(found.values())


def _free_indices(expr: sp.Basic, bound: frozenset[sp.Symbol]) -> set[sp.Symbol]:
    if isinstance(expr, sp.Sum):
        bound = bound | {limit[0] for limit in expr.limits}
        return _free_indices(expr.function, bound)
    if isinstance(expr, sp.Indexed):
        return {i for i in expr.indices if isinstance(i, sp.Symbol) and i not in bound}
    if isinstance(expr, sp.KroneckerDelta):
        return {i for i in expr.args if isinstance(i, sp.Symbol) and i not in bound}
    return set().union(*(_free_indices(a, bound) for a in expr.args))


def _check_names(expr: sp.Basic) -> None:
    """Two things that print alike would become one generator, so only unmistakable names are allowed."""
    bases = {indexed.base for indexed in expr.atoms(sp.Indexed)}
    for base in bases:
        if base != sp.IndexedBase(str(base)):
            raise HypothesisError(
                f"the family {base} carries assumptions or a shape, so it could be mistaken for another"
            )
    constants = expr.free_symbols - expr.atoms(sp.Indexed) - {base.label for base in bases} - {D}
    # a constant named like its family is hidden by the family's own label among the free symbols
    bare = expr.xreplace({indexed: sp.Dummy() for indexed in expr.atoms(sp.Indexed)}).free_symbols
    for symbol in bare & {base.label for base in bases}:
        raise HypothesisError(f"the name of the constant {symbol} could be mistaken for d or for a variable")
    for symbol in constants:
        if not symbol.is_commutative:
            raise HypothesisError(f"the constant {symbol} does not commute")
        if symbol.name[-1:].isdigit() or symbol.name in {str(D), str(X), *map(str, bases)}:
            raise HypothesisError(f"the name of the constant {symbol} could be mistaken for d or for a variable")


def _degrees(expr: sp.Basic, indices: frozenset[sp.Symbol], inside_expectation: bool) -> dict[str, int]:
    """Upper bounds of the degrees, by structure; raises HypothesisError at the first violation."""

    def recurse(
        part: sp.Basic, known: frozenset[sp.Symbol] = indices, inside: bool = inside_expectation
    ) -> dict[str, int]:
        return _degrees(part, known, inside)

    if isinstance(expr, sp.Rational):
        return {}
    if isinstance(expr, sp.Symbol):
        if expr == D or expr in indices:
            raise HypothesisError(f"{expr} is used as a number, so a coefficient depends on it")
        return {}
    if isinstance(expr, sp.Indexed):
        if len(expr.indices) != 1 or expr.indices[0] not in indices - {D}:
            raise HypothesisError(f"{expr} is not indexed by one symbol that a sum or the statement names")
        if expr.base == X:
            if not inside_expectation:
                raise HypothesisError(f"the sign {expr} stands outside an expectation")
            return {}
        return {str(expr.base): 1}
    if isinstance(expr, sp.KroneckerDelta):
        if not all(i in indices - {D} for i in expr.args):
            raise HypothesisError(f"{expr} does not compare two indices")
        return {}
    if isinstance(expr, Expectation):
        if inside_expectation:
            raise HypothesisError(f"{expr} stands inside another expectation")
        return recurse(expr.args[0], inside=True)
    if isinstance(expr, sp.Sum):
        return _sum_degrees(expr, indices, inside_expectation)
    if isinstance(expr, sp.Pow):
        if not (expr.exp.is_Integer and expr.exp >= 0):
            raise HypothesisError(f"{expr} is not a non-negative integer power, so the expression is no polynomial")
        return {name: n * int(expr.exp) for name, n in recurse(expr.base).items()}
    if isinstance(expr, sp.Add | sp.Mul):
        parts = [recurse(a) for a in expr.args]
        combine = max if isinstance(expr, sp.Add) else sum
        names = {name for p in parts for name in p}
        return {name: combine([p.get(name, 0) for p in parts]) for name in sorted(names)}
    raise HypothesisError(f"{expr} ({type(expr).__name__}) is not allowed in an equivariant polynomial")


def _sum_degrees(expr: sp.Sum, indices: frozenset[sp.Symbol], inside: bool) -> dict[str, int]:
    for index, low, high in expr.limits:
        if (low, high) != (1, D):
            raise HypothesisError(f"the sum over {index} runs from {low} to {high}, not from 1 to d")
        if index == D or index in indices:
            raise HypothesisError(f"the index {index} is used twice, by a sum inside another sum or by the statement")
        indices = indices | {index}
    bound = [limit[0] for limit in expr.limits]
    special = indices - set(bound)
    for index in bound:
        if not _ties(sp.expand(expr.function), index, special):
            raise HypothesisError(
                f"the sum over {index} has a term without a variable indexed by {index}, so it counts and depends on d"
            )
    return _degrees(expr.function, indices, inside)


def _ties(expr: sp.Basic, index: sp.Symbol, fixed: frozenset[sp.Symbol]) -> bool:
    """Whether every monomial names `index` in a variable, or sets it equal to an index fixed outside the sum."""
    if expr == 0:
        return True
    if isinstance(expr, sp.Indexed):
        return expr.base != X and index in expr.indices
    if isinstance(expr, sp.KroneckerDelta):
        return index in expr.args and any(other in fixed for other in expr.args)
    if isinstance(expr, sp.Add):
        return all(_ties(a, index, fixed) for a in expr.args)
    if isinstance(expr, sp.Mul):
        return any(_ties(a, index, fixed) for a in expr.args)
    if isinstance(expr, sp.Pow):
        return expr.exp.is_Integer and expr.exp >= 1 and _ties(expr.base, index, fixed)
    if isinstance(expr, sp.Sum):
        return _ties(sp.expand(expr.function), index, fixed)
    if isinstance(expr, Expectation):
        return _ties(sp.expand(expr.args[0]), index, fixed)
    return False


class _Instantiation:
    """Puts a number in for d and expands, over the ring of all variables, signs and constants that occur."""

    def __init__(self, expr: sp.Expr, d: int):
        self.d = d
        bases = sorted({str(e.base) for e in expr.atoms(sp.Indexed)} - {str(X)})
        constants = sorted({s for s in expr.free_symbols if isinstance(s, sp.Symbol)}, key=str)
        constants = [c for c in constants if c != D and c not in _free_indices(expr, frozenset())]
        constants = [c for c in constants if str(c) not in {*bases, str(X)}]
        names = [f"{base}_{k}" for base in [str(X), *bases] for k in range(1, d + 1)]
        self.ring, *gens = ring([sp.Symbol(n) for n in names] + constants, sp.QQ)
        self.generator = dict(zip([*names, *constants], gens, strict=True))

    def value(self, expr: sp.Basic, where: dict[sp.Symbol, int]) -> PolyElement:
        """The expression as an element of the ring, with every index at the position that `where` gives."""
        if isinstance(expr, sp.Rational):
            return self.ring(sp.QQ(int(expr.p), int(expr.q)))
        if isinstance(expr, sp.Symbol):
            return self.generator[expr]
        if isinstance(expr, sp.Indexed):
            return self.generator[f"{expr.base}_{where[expr.indices[0]]}"]
        if isinstance(expr, sp.KroneckerDelta):
            first, second = (where[i] for i in expr.args)
            return self.ring(int(first == second))
        if isinstance(expr, Expectation):
            return self._average(self.value(expr.args[0], where))
        if isinstance(expr, sp.Sum):
            bound = [limit[0] for limit in expr.limits]
            places = itertools.product(range(1, self.d + 1), repeat=len(bound))
            terms = (self.value(expr.function, where | dict(zip(bound, p, strict=True))) for p in places)
            return sum(terms, self.ring.zero)
        if isinstance(expr, sp.Pow):
            return self.value(expr.base, where) ** int(expr.exp)
        parts = [self.value(a, where) for a in expr.args]
        return sum(parts, self.ring.zero) if isinstance(expr, sp.Add) else reduce(lambda p, q: p * q, parts)

    def _average(self, element: PolyElement) -> PolyElement:
        """Expectation over the signs, the first d generators: even powers become 1, odd powers vanish."""
        total = self.ring.zero
        for powers, coefficient in element.terms():
            if all(p % 2 == 0 for p in powers[: self.d]):
                total += self.ring({(0,) * self.d + powers[self.d :]: coefficient})
        return total
