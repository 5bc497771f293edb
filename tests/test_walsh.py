"""The expectation operator and the finite-check lemma, against expansion by hand."""

import itertools

import pytest
import sympy as sp
from conftest import refuses
from hypothesis import given
from hypothesis import strategies as st
from sympy import KroneckerDelta as Delta

from sparsexor.walsh import D, Expectation, HypothesisError, X, expectation, for_every_d, hypotheses, over

i, j, k, l, p, q = sp.symbols("i j k l p q", integer=True)
c = sp.Symbol("c")
a, b = sp.IndexedBase("a"), sp.IndexedBase("b")


@given(st.lists(st.integers(0, 4), min_size=3, max_size=3))
def test_expectation_of_a_monomial_is_its_average_over_the_cube(powers):
    signs = sp.symbols("x y z")
    monomial = sp.Mul(*(s**n for s, n in zip(signs, powers, strict=True)))
    cube = list(itertools.product([-1, 1], repeat=3))
    average = sp.Rational(sum(monomial.subs(dict(zip(signs, point, strict=True))) for point in cube), len(cube))
    assert expectation(5 * monomial, signs) == 5 * average


def elementary_symmetric(n):
    """e_n by Newton's identities, as a polynomial in power sums, for every d."""
    e = [sp.Integer(1)]
    for m in range(1, n + 1):
        e.append(sp.expand(sum((-1) ** (r - 1) * e[m - r] * over(k, a[k] ** r) for r in range(1, m + 1)) / m))
    return e[n]


def test_an_identity_true_up_to_6_and_false_at_7_is_refused():
    e7 = elementary_symmetric(7)
    with pytest.raises(HypothesisError, match="degree 7 exceeds the allowed 2"):
        for_every_d(e7)
    honest = for_every_d(e7, degree=7)
    assert all(honest.at(d, {}) == 0 for d in range(2, 7))
    assert honest.at(7, {}) != 0
    assert honest.compare_for_every_d(for_every_d(sp.Integer(0))).outcome == "false"


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        (D * a[i], "used as a number"),
        (over(k, k * a[k]), "used as a number"),
        (over(k, a[i]), "counts"),
        (over(k, sp.Integer(1)), "counts"),
        (over(k, a[i] * (1 - Delta(k, i))), "counts"),
        (over(k, over(l, Delta(k, l))), "counts"),
        (over(k, X[k]), "counts"),
        (over(k, a[k] + a[i]), "counts"),
        (1 / over(k, a[k]), "power"),
        (sp.exp(a[i]), "not allowed"),
        (a[i] * X[i], "outside an expectation"),
        (Expectation(a[i] * Expectation(X[i])), "another expectation"),
        (a[1], "not indexed by one symbol"),
        (a[i, j], "not indexed by one symbol"),
        (sp.Sum(a[k], (k, 1, 3)), "not from 1 to d"),
        (sp.Sum(a[k], (k, 2, D)), "not from 1 to d"),
        (over(k, a[k] ** 3), "degree 3"),
        (over(k, a[k] * over(k, b[k])), "used twice"),
        (sp.Float("0.5") * a[i], "not allowed"),
        (a[i] ** sp.Symbol("n", integer=True, positive=True), "power"),
    ],
)
def test_what_breaks_a_hypothesis_is_refused(expr, words):
    assert words in hypotheses(expr, degree=2).violation
    with pytest.raises(HypothesisError, match=words):
        for_every_d(expr)


@pytest.mark.parametrize(
    "expr",
    [
        over(k, a[k] * b[k]) ** 2,
        over(k, Delta(k, i) * a[i]),
        over(k, over(l, a[k] * b[l] * (1 - Delta(k, l)))),
        Expectation(over(k, a[k] * X[k]) * X[i]),
        sp.Symbol("c") * a[i],
    ],
)
def test_equivariant_polynomials_are_accepted(expr):
    assert hypotheses(expr, degree=2).violation == ""


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("error", "expr"),
    [
        (TypeError, None),
        (TypeError, "c**2"),
        (TypeError, 1.5),
        (TypeError, sp.Float(0.5) * c**2),
        (TypeError, sp.oo),
        (TypeError, sp.Matrix([c])),
        (TypeError, sp.Eq(c, 1)),
        (ValueError, 1 / c),
        (ValueError, sp.exp(c)),
        (ValueError, sp.Sum(c * k, (k, 1, D))),
    ],
)
def test_what_is_no_polynomial_has_no_expectation(error, expr):
    with refuses(error, "expr"):
        expectation(expr, [c])


@pytest.mark.bad_input
def test_signs_are_different_symbols():
    for error, signs in [
        (TypeError, None),
        (TypeError, c),
        (TypeError, "c"),
        (TypeError, [2 * c]),
        (ValueError, [c, c]),
    ]:
        with refuses(error, "signs"):
            expectation(c**2, signs)


def test_without_signs_the_expectation_is_the_expression():
    assert expectation(c, []) == c


@pytest.mark.bad_input
def test_arguments_of_the_lemma_of_the_wrong_kind_are_refused():
    for expr in (None, "a", 1.0, [a[i]], sp.Matrix([a[i]]), sp.Symbol):
        for call in (hypotheses, for_every_d):
            with refuses(TypeError, "expr"):
                call(expr)
    for error, degree in [(TypeError, "2"), (TypeError, True), (TypeError, 2.0), (ValueError, -1)]:
        with refuses(error, "degree"):
            for_every_d(a[i], degree=degree)
    for error, distinct in [(TypeError, None), (TypeError, (i, j)), (TypeError, [(i, 3)]), (ValueError, [(i,)])]:
        with refuses(error, "distinct"):
            for_every_d(a[i] * a[j], distinct=distinct)


@pytest.mark.bad_input
def test_positions_that_a_polynomial_cannot_be_put_at_are_refused():
    side = for_every_d(a[i] * a[j])
    for error, where in [
        (TypeError, None),
        (ValueError, {i: 1}),
        (ValueError, {i: 1, j: 4}),
        (TypeError, {i: 1, j: 1.0}),
    ]:
        with refuses(error, "where"):
            side.at(3, where)


def test_a_constant_named_like_its_family_is_refused():
    assert "mistaken" in hypotheses(sp.Symbol("a") * a[i]).violation


def test_the_dimension_counts_special_indices_and_factors():
    assert hypotheses(a[i] * b[j] * over(k, a[k] * b[k])).dimension == 2 + 4
    assert hypotheses(over(k, a[k])).dimension == 1


def test_free_indices_may_coincide_unless_declared_distinct():
    left, right = Delta(i, j) * a[i] * b[j], sp.Integer(0)
    assert for_every_d(left).compare_for_every_d(for_every_d(right)).outcome == "false"
    apart = [(i, j)]
    assert for_every_d(left, distinct=apart).compare_for_every_d(for_every_d(right, distinct=apart)).outcome == "true"


@given(d=st.integers(2, 7), seed=st.integers(0, 10**6))
def test_a_lemma_verdict_of_true_survives_random_numbers_in_any_dimension(d, seed):
    """E[(a·x)²(b·x)²] in closed form, proved at d = 6, evaluated with random rationals in dimension d."""
    import random

    draw = random.Random(seed)
    u, v = ([sp.Rational(draw.randint(-9, 9), draw.randint(1, 5)) for _ in range(d)] for _ in range(2))
    head, other = over(k, a[k] * X[k]), over(k, b[k] * X[k])
    moment = for_every_d(Expectation(head**2 * other**2))
    closed = for_every_d(
        over(k, a[k] ** 2) * over(k, b[k] ** 2) + 2 * over(k, a[k] * b[k]) ** 2 - 2 * over(k, a[k] ** 2 * b[k] ** 2)
    )
    assert moment.compare_for_every_d(closed).outcome == "true"
    values = {sp.Symbol(f"a_{n + 1}"): u[n] for n in range(d)} | {sp.Symbol(f"b_{n + 1}"): v[n] for n in range(d)}
    cube = list(itertools.product([-1, 1], repeat=d))
    total = sum(
        sum(r * s for r, s in zip(u, x, strict=True)) ** 2 * sum(r * s for r, s in zip(v, x, strict=True)) ** 2
        for x in cube
    )
    assert closed.at(d, {}).subs(values) == sp.Rational(total, len(cube))


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        (sp.Symbol("a_1") + 0 * a[i], "mistaken"),
        (sp.Symbol("a") * a[i], "mistaken"),
        (sp.Symbol("x") * a[i], "mistaken"),
        (sp.Symbol("d") * a[i], "mistaken"),
        (Expectation(sp.IndexedBase("x", real=True)[i]), "mistaken for another"),
        (sp.IndexedBase("a", real=True)[i], "mistaken for another"),
        (sp.Symbol("A", commutative=False) * a[i], "commute"),
        (a[D], "not indexed by one symbol"),
        (Delta(i, D) * a[i], "does not compare two indices"),
        (sp.Sum(a[D], (D, 1, D)), "index d"),
    ],
)
def test_names_that_could_be_mistaken_are_refused(expr, words):
    """Each of these was once a way to make two different things one generator, or d an index."""
    assert words in hypotheses(expr).violation


@pytest.mark.bad_input
@pytest.mark.parametrize("distinct", [[(i, i)], [(i, j), (j, j)], [(i,)]])
def test_assumptions_that_leave_nothing_to_check_are_refused(distinct):
    with pytest.raises(ValueError, match="distinct"):
        for_every_d(a[i], distinct=distinct)


def test_a_side_is_compared_with_a_side():
    with pytest.raises(TypeError, match="for_every_d"):
        for_every_d(a[i]).compare_for_every_d(a[i])
