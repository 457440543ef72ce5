# SPDX-License-Identifier: BSD-3-Clause
"""What a formula computes from hyperparameters alone, taken out of it."""

from functools import lru_cache
from math import log


@lru_cache(maxsize=256)
def take_out(expressions: tuple, n_theta: int) -> tuple[tuple, tuple]:
    """Replace what depends on hyperparameters alone, so that it is computed once.

    Exponentials become powers of two, which hardware computes; the factor goes to the constants.

    Parameters
    ----------
    expressions : tuple
        SymPy expressions of ``x[k]``, ``y[k]`` and ``theta[k]``.
    n_theta : int
        Number of hyperparameters.

    Returns
    -------
    constants : tuple
        Expressions of hyperparameters; they get the names ``theta[n_theta]`` and following ones.
    expressions : tuple
        What is left.
    """
    from sklearn_mgk.base_kernels.symbolic import symbol

    names = {}

    def name(constant):
        return names.setdefault(constant, symbol(f"theta[{n_theta + len(names)}]"))

    rest = tuple(_without_constants(expression, name) for expression in expressions)
    return tuple(names), rest


def _without_constants(expression, name):
    from sympy import Add, Mul, exp
    from sympy.codegen.cfunctions import exp2
    from sympy.functions.elementary.piecewise import ExprCondPair

    def go(part):
        return _without_constants(part, name)

    if not expression.args or not expression.free_symbols:
        return expression
    if isinstance(expression, ExprCondPair):
        return ExprCondPair(go(expression.expr), go(expression.cond))
    if not _reads_labels(expression):
        return name(expression)
    if isinstance(expression, exp):
        terms = Add.make_args(expression.args[0])
        return exp2(go(Add(*(term / log(2) for term in terms))))
    if isinstance(expression, Add | Mul):
        fixed = expression.func(*(a for a in expression.args if not _reads_labels(a)))
        rest = [go(a) for a in expression.args if _reads_labels(a)]
        if isinstance(expression, Mul):  # one power for all
            powers = [a for a in rest if isinstance(a, exp2)]
            rest = [a for a in rest if not isinstance(a, exp2)]
            rest += [exp2(Add(*(a.args[0] for a in powers)))] if powers else []
        return expression.func(go(fixed), *rest)
    return expression.func(*map(go, expression.args))


def _reads_labels(expression) -> bool:
    return any(s.name[0] in "xy" for s in expression.free_symbols)
