# SPDX-License-Identifier: BSD-3-Clause
"""Adjacency rules: how strongly two atoms are joined, given their distance and their radii."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from numbers import Real

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sklearn_mgk.graphs.structures.elements import RADII, atomic_numbers, radii_of

LengthScale = str | float | Mapping[str, float]


class AdjacencyRule(BaseEstimator, ABC):
    """Weight of an edge as a function of two radii and a distance.

    Its parameters are those of a scikit-learn object, so that a grid search reaches them as
    ``structurestographs__adjacency__zoom``. A rule of your own derives from
    it, keeps its parameters in ``__init__``, one of them ``length_scale``, and writes `reach` and
    `weights`.
    """

    length_scale: LengthScale

    def check(self) -> None:
        """Raise a ValueError or TypeError for a parameter without meaning."""
        check_length_scale(self)

    def radii(self, numbers: NDArray[np.int64] | None, n: int) -> NDArray[np.float64]:
        """Return the radius of each of n nodes [angstrom], shape (n,).

        Parameters
        ----------
        numbers : ndarray of shape (n,), int64, or None
            Atomic numbers; None if the nodes are no atoms.
        n : int
            Number of nodes.

        Returns
        -------
        ndarray of shape (n,), float64
            The radii.
        """
        if isinstance(self.length_scale, Real):
            return np.full(n, float(self.length_scale))
        if numbers is None:
            raise ValueError(
                f"residues have no radius of their own, but adjacency={self!r} has "
                f"length_scale={self.length_scale!r}: give a number [angstrom]"
            )
        return radii_of(numbers, self.length_scale)

    @abstractmethod
    def reach(self, radii: NDArray[np.float64]) -> float:
        """Return a distance that no edge between nodes of these radii exceeds [angstrom]."""

    @abstractmethod
    def weights(
        self,
        radius_i: NDArray[np.float64],
        radius_j: NDArray[np.float64],
        distance: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the weight of each pair; 0 is no edge.

        Parameters
        ----------
        radius_i, radius_j : ndarray of shape (n_pairs,), float64
            The radii of both nodes [angstrom].
        distance : ndarray of shape (n_pairs,), float64
            Their distance [angstrom].

        Returns
        -------
        ndarray of shape (n_pairs,), float64
            The weights, finite and >= 0.
        """


class ScaledRule(AdjacencyRule):
    r"""A function of the distance in units of :math:`s_{ij} = z \sqrt{r_i r_j}`.

    A subclass writes `extent`, beyond which it is 0, and `shape`.
    """

    zoom: float

    def check(self) -> None:
        super().check()
        check_positive(self, "zoom")

    @property
    @abstractmethod
    def extent(self) -> float:
        """The reduced distance u at which edges end."""

    @abstractmethod
    def shape(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weight at reduced distances u below `extent`."""

    def reach(self, radii: NDArray[np.float64]) -> float:
        return float(self.extent * self.zoom * radii.max())

    def weights(self, radius_i, radius_j, distance):
        u = distance / (self.zoom * np.sqrt(radius_i * radius_j))
        weights, inside = np.zeros(len(u)), u < self.extent
        weights[inside] = self.shape(u[inside])
        return weights


class Tent(ScaledRule):
    r"""Weight that falls to zero like a tent.

    .. math:: w = (1 - u/3)^{n} \text{ for } u < 3, \quad 0 \text{ beyond}, \qquad
        u = d / s, \quad s = z \sqrt{r_i r_j}

    The cutoff is 3 s: 5.1 Å between carbon atoms by default. The rule of the published kernel for
    molecular energies [1]_.

    Parameters
    ----------
    order : float, default=1
        Exponent n > 0; the larger, the more the nearest atoms count.
    length_scale : str, float or mapping of str to float, default="van_der_waals"
        The radii r: the name of a table ("van_der_waals", "covalent"), one number for all atoms
        [Å], or a number for each element [Å].
    zoom : float, default=1.0
        Factor z > 0 of all radii.

    References
    ----------
    .. [1] Y.-H. Tang, W. A. de Jong, "Prediction of atomization energy using graph kernel and
       active learning", J. Chem. Phys. 150 (2019) 044107. :doi:`10.1063/1.5078640`

    Examples
    --------
    >>> import numpy as np
    >>> rule = Tent(length_scale=1.0)
    >>> rule.weights(np.ones(3), np.ones(3), np.array([0.75, 1.5, 3.0])).tolist()
    [0.75, 0.5, 0.0]
    """

    def __init__(
        self,
        order: float = 1,
        length_scale: LengthScale = "van_der_waals",
        zoom: float = 1.0,
    ):
        self.order = order
        self.length_scale = length_scale
        self.zoom = zoom

    extent = 3.0

    def check(self) -> None:
        super().check()
        check_positive(self, "order")

    def shape(self, u):
        return (1 - u / 3) ** self.order


class CompactBell(ScaledRule):
    r"""Smooth weight with slope zero at both ends.

    .. math:: w = \frac{a t^b - b t^a}{a - b} \text{ for } u < 3, \quad 0 \text{ beyond}, \qquad
        t = 1 - u/3, \quad u = d / s, \quad s = z \sqrt{r_i r_j}

    The cutoff is 3 s. With a = 3 and b = 2 it is the cubic step :math:`3t^2 - 2t^3`.

    Parameters
    ----------
    a, b : float, default=3, 2
        Exponents, a > b >= 2; the larger, the narrower.
    length_scale : str, float or mapping of str to float, default="van_der_waals"
        The radii r: the name of a table ("van_der_waals", "covalent"), one number for all atoms
        [Å], or a number for each element [Å].
    zoom : float, default=1.0
        Factor z > 0 of all radii.

    Examples
    --------
    >>> import numpy as np
    >>> rule = CompactBell(length_scale=1.0)
    >>> rule.weights(np.ones(3), np.ones(3), np.array([0.75, 1.5, 3.0])).tolist()
    [0.84375, 0.5, 0.0]
    """

    def __init__(
        self,
        a: float = 3,
        b: float = 2,
        length_scale: LengthScale = "van_der_waals",
        zoom: float = 1.0,
    ):
        self.a = a
        self.b = b
        self.length_scale = length_scale
        self.zoom = zoom

    extent = 3.0

    def check(self) -> None:
        super().check()
        check_positive(self, "a")
        check_positive(self, "b")
        if not self.a > self.b >= 2:
            raise ValueError(f"CompactBell needs a > b >= 2, got a={self.a}, b={self.b}")

    def shape(self, u):
        t = 1 - u / 3
        return (self.a * t**self.b - self.b * t**self.a) / (self.a - self.b)


class Gaussian(ScaledRule):
    r"""Gaussian of the distance, cut off where it is small.

    .. math:: w = \exp(-u^2/2) \text{ for } u < c, \quad 0 \text{ beyond}, \qquad
        u = d / s, \quad s = z \sqrt{r_i r_j}

    The cutoff is c s. With the default c = 4 the weight drops to zero from 0.0003.

    Parameters
    ----------
    length_scale : str, float or mapping of str to float, default="van_der_waals"
        The radii r: the name of a table ("van_der_waals", "covalent"), one number for all atoms
        [Å], or a number for each element [Å].
    zoom : float, default=1.0
        Factor z > 0 of all radii.
    truncation : float, default=4.0
        The cutoff c > 0 in units of s.

    Examples
    --------
    >>> import numpy as np
    >>> rule = Gaussian(length_scale=1.0)
    >>> rule.weights(np.ones(3), np.ones(3), np.array([1.0, 2.0, 4.0])).round(4).tolist()
    [0.6065, 0.1353, 0.0]
    """

    def __init__(
        self,
        length_scale: LengthScale = "van_der_waals",
        zoom: float = 1.0,
        truncation: float = 4.0,
    ):
        self.length_scale = length_scale
        self.zoom = zoom
        self.truncation = truncation

    @property
    def extent(self) -> float:
        return self.truncation

    def check(self) -> None:
        super().check()
        check_positive(self, "truncation")

    def shape(self, u):
        return np.exp(-(u**2) / 2)


class HardCutoff(ScaledRule):
    r"""Weight 1 below a distance.

    .. math:: w = 1 \text{ for } d < c \sqrt{r_i r_j}, \quad 0 \text{ beyond}

    With the default length scale of 1 Å the cutoff c is a distance in Å, the same for all atoms;
    ``HardCutoff(2.5, length_scale="covalent")`` joins bonded atoms. In a crystal choose c between
    two shells of neighbors: atoms exactly at the cutoff are joined or not as rounding has it.

    Parameters
    ----------
    cutoff : float, default=5.0
        The cutoff c > 0, in units of the length scale.
    length_scale : str, float or mapping of str to float, default=1.0
        The radii r: the name of a table ("van_der_waals", "covalent"), one number for all atoms
        [Å], or a number for each element [Å].

    Examples
    --------
    >>> import numpy as np
    >>> HardCutoff(5.0).weights(np.ones(2), np.ones(2), np.array([4.9, 5.1])).tolist()
    [1.0, 0.0]
    """

    def __init__(self, cutoff: float = 5.0, length_scale: LengthScale = 1.0):
        self.cutoff = cutoff
        self.length_scale = length_scale

    zoom = 1.0

    @property
    def extent(self) -> float:
        return self.cutoff

    def check(self) -> None:
        super().check()
        check_positive(self, "cutoff")

    def shape(self, u):
        return np.ones(len(u))


class AdjacencyFunction(AdjacencyRule):
    r"""Any Python function of both radii and the distance.

    .. math:: w = f(r_i, r_j, d) \text{ for } d < c, \quad 0 \text{ beyond}

    Parameters
    ----------
    function : callable
        Takes three arrays of shape (n_pairs,), the two radii and the distance [Å], and returns the
        weights, finite and >= 0. It has to be symmetric in the two radii. A function at the top
        level of a module can be pickled, a lambda cannot.
    cutoff : float
        The distance c > 0 beyond which nothing is joined [Å].
    length_scale : str, float or mapping of str to float, default="van_der_waals"
        The radii r: the name of a table ("van_der_waals", "covalent"), one number for all atoms
        [Å], or a number for each element [Å].

    Examples
    --------
    >>> import numpy as np
    >>> bonded = AdjacencyFunction(
    ...     lambda r, r2, d: d < 1.25 * (r + r2), cutoff=6.0, length_scale="covalent")
    >>> bonded.weights(np.array([0.76]), np.array([0.31]), np.array([1.09])).tolist()
    [1.0]
    """

    def __init__(
        self,
        function: Callable[[NDArray, NDArray, NDArray], NDArray],
        cutoff: float,
        length_scale: LengthScale = "van_der_waals",
    ):
        self.function = function
        self.cutoff = cutoff
        self.length_scale = length_scale

    def check(self) -> None:
        super().check()
        check_positive(self, "cutoff")
        if not callable(self.function):
            raise TypeError(
                "function has to be a Python function of (radius_i, radius_j, distance), got "
                f"{self.function!r}"
            )

    def reach(self, radii: NDArray[np.float64]) -> float:
        return float(self.cutoff)

    def weights(self, radius_i, radius_j, distance):
        weights = self._call(radius_i, radius_j, distance)
        exchanged = self._call(radius_j, radius_i, distance)
        if not np.allclose(weights, exchanged, rtol=1e-9, atol=0, equal_nan=True):
            raise ValueError(
                f"the function of {self!r} gives another weight when the two radii are exchanged: "
                "it has to be symmetric, for edges have no direction"
            )
        return np.where(distance < self.cutoff, weights, 0.0)

    def _call(self, radius_i, radius_j, distance):
        """Return what the function returns, as float64."""
        returned = np.asarray(self.function(radius_i, radius_j, distance))
        if returned.shape != distance.shape or returned.dtype.kind not in "biuf":
            raise ValueError(
                f"the function of {self!r} has to return {len(distance)} weights, one a pair; it "
                f"returned {returned.dtype} of shape {returned.shape}"
            )
        return returned.astype(np.float64)


def check_positive(rule: AdjacencyRule, name: str) -> None:
    """Raise unless a parameter is a finite number > 0."""
    value = getattr(rule, name)
    if not _is_positive(value):
        raise ValueError(
            f"{name} of {type(rule).__name__} must be a finite number > 0, got {value!r}"
        )


def check_length_scale(rule: AdjacencyRule) -> None:
    """Raise unless the length scale is a table, a positive number, or one for each element."""
    scale, name = rule.length_scale, type(rule).__name__
    if isinstance(scale, str):
        known = scale in RADII
    elif isinstance(scale, Mapping):
        atomic_numbers(list(scale))
        known = len(scale) > 0 and all(map(_is_positive, scale.values()))
    else:
        known = _is_positive(scale)
    if not known:
        raise ValueError(
            f"length_scale of {name} must be one of {list(RADII)}, a number > 0 or a mapping of "
            f"elements to such numbers [angstrom], got {scale!r}"
        )


def _is_positive(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < value < np.inf
