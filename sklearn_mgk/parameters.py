# SPDX-License-Identifier: BSD-3-Clause
"""Parameters, nested parameters and hyperparameters, read off the constructor's signature."""

from __future__ import annotations

import inspect
from functools import cache

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Hyperparameter


@cache
def signature(cls: type) -> dict[str, inspect.Parameter]:
    """Arguments of a class's constructor, in order."""
    return dict(inspect.signature(cls).parameters)


class Parametrized:
    """Mixin for objects with hyperparameters, some of which are such objects themselves.

    An argument that comes with ``<name>_bounds`` is a hyperparameter; an argument that is
    `Parametrized` contributes its own as ``<name>__<nested>``. Order is that of the signature, and
    so is the order of ``theta`` in scikit-learn's `Kernel`.
    """

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """Hyperparameters, free and fixed, in the order of the constructor's arguments."""
        found = []
        for name in signature(type(self)):
            value = getattr(self, name)
            if isinstance(value, Parametrized):
                nested = value.hyperparameters
                found += [h._replace(name=f"{name}__{h.name}") for h in nested]
            elif f"{name}_bounds" in signature(type(self)):
                found += self._hyperparameter(name, value, getattr(self, f"{name}_bounds"))
        return found

    def _hyperparameter(self, name: str, value, bounds) -> list[Hyperparameter]:
        """Describe one hyperparameter; a value that is no number, such as a name, makes none."""
        if value is None or isinstance(value, str):
            return []
        hyperparameter = Hyperparameter(name, "numeric", bounds, np.size(value))
        if not hyperparameter.fixed and not np.all(np.asarray(value) > 0):
            raise ValueError(
                f"{name}={value!r} of {type(self).__name__} is optimised on a logarithmic scale "
                "and has to be positive. Give a positive value, or bounds 'fixed'."
            )
        return [hyperparameter]

    def get_params(self, deep: bool = True) -> dict:
        """Return the parameters, with those of nested objects as ``name__nested`` if `deep`."""
        params = {name: getattr(self, name) for name in signature(type(self))}
        for name, value in list(params.items()) if deep else ():
            if isinstance(value, Parametrized):
                params |= {f"{name}__{key}": v for key, v in value.get_params().items()}
        return params

    def set_params(self, **params) -> Parametrized:
        """Set parameters, those of nested objects as ``name__nested``, and return the object."""
        nested: dict[str, dict] = {}
        for key, value in params.items():
            name, is_nested, rest = key.partition("__")
            known = name in signature(type(self))
            if not known or (is_nested and not isinstance(getattr(self, name), Parametrized)):
                raise ValueError(
                    f"{type(self).__name__} has no parameter {key!r}; it has "
                    f"{sorted(self.get_params())}."
                )
            if is_nested:
                nested.setdefault(name, {})[rest] = value
            else:
                setattr(self, name, value)
        for name, values in nested.items():
            getattr(self, name).set_params(**values)
        return self

    def fixed(self) -> Parametrized:
        """Return a copy whose hyperparameters are all fixed, for an optimiser to leave alone."""
        bounds = [name for name in self.get_params() if name.endswith("_bounds")]
        return clone(self).set_params(**dict.fromkeys(bounds, "fixed"))

    def __eq__(self, other: object) -> bool:
        """Return whether both are of one class with equal parameters."""
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(_same(mine[name], theirs[name]) for name in mine)

    __hash__ = None

    def __repr__(self) -> str:
        """Return a call that makes the object anew; leaves out defaults of settings."""
        hyperparameters = {h.name for h in self.hyperparameters}
        shown = []
        for position, (name, argument) in enumerate(signature(type(self)).items()):
            value = getattr(self, name)
            if name in hyperparameters or not _same(value, argument.default):
                prefix = "" if position == 0 else f"{name}="
                shown.append(f"{prefix}{_text(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"


def _same(a, b) -> bool:
    """Equality of parameters, arrays and sequences by content."""
    if isinstance(a, np.ndarray | list | tuple) or isinstance(b, np.ndarray | list | tuple):
        return np.array_equal(np.asarray(a, dtype=object), np.asarray(b, dtype=object))
    return a is b or bool(a == b)


def _text(value) -> str:
    """Python text of a parameter; NumPy numbers as plain numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return repr(value.tolist())
    if isinstance(value, tuple | list):
        inner = ", ".join(map(_text, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    return repr(value)
