# SPDX-License-Identifier: BSD-3-Clause
"""From a kernel and graphs to a problem for a backend, and a plan for the Gram layer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import cache, partial
from weakref import WeakKeyDictionary

import numpy as np

from sklearn_mgk.base_kernels import BaseKernel, Constant, FunctionKernel
from sklearn_mgk.base_kernels.labels import intern
from sklearn_mgk.blocks import Side
from sklearn_mgk.gram import Plan
from sklearn_mgk.graphs import GraphBatch, as_batch
from sklearn_mgk.identity import fingerprints
from sklearn_mgk.parameters import Parametrized
from sklearn_mgk.solver import get_backend
from sklearn_mgk.solver.problem import LabelKernel, Problem
from sklearn_mgk.solver.topology import topology
from sklearn_mgk.starting import StartingProbability
from sklearn_mgk.walk import describe_walk

# Parameters that change how values are obtained or shaped afterwards, not the values themselves.
_NOT_IN_KEY = {"cache_size", "verbose", "normalization", "size_scale"}


def read_sides(kernel, X, Y) -> tuple[GraphBatch, GraphBatch | None]:
    """Take the graphs of both sides as batches, and check the attributes that the kernel reads.

    Each side is checked by itself, so that messages count its graphs from 0.
    """
    left, right = as_batch(X), None if Y is None or Y is X else as_batch(Y)
    for batch in (left, right):
        for kind, names in zip(("node", "edge"), _attributes_read(kernel), strict=True):
            for name in names if batch is not None else ():
                batch.read(kind, name)
    return left, right


def make_sides(kernel, left: GraphBatch, right: GraphBatch | None) -> tuple[Side, Side | None]:
    """Find the distinct graphs along each side of a matrix."""
    names = _attributes_read(kernel)

    def side(batch: GraphBatch) -> Side:
        return batch.cached(("side", *names), partial(_side, batch, names))

    if right is None:
        return side(left), None
    second = side(right)
    return side(left), replace(second, graphs=second.graphs + len(left), name="Y")


def _side(batch: GraphBatch, names: tuple) -> Side:
    return Side.of(np.arange(len(batch)), fingerprints(batch, *names), "X")


def make_plan(kernel, left: GraphBatch, right: GraphBatch | None, eval_gradient: bool) -> Plan:
    """Prepare the solves between the graphs of both sides, and the key of the cache.

    The backend starts its work at the first pair: there may be none that is not known already.
    """
    backend = get_backend(kernel.backend)

    @cache
    def prepared():
        batch = left if right is None else _joined(left, right)
        problem = make_problem(kernel, batch)
        return backend.solver(problem, eval_gradient)

    def solve(pairs, nodal=None):
        return prepared()(pairs, nodal)

    key = settings_key(kernel) if kernel.cache_size > 0 else None
    n_theta = kernel.n_dims if eval_gradient else 0
    room, limit = backend.room(), kernel.cache_size * 1e6
    return Plan(solve, backend.xp, room, n_theta, key, limit, kernel.verbose)


def _joined(left: GraphBatch, right: GraphBatch) -> GraphBatch:
    """Join both sides, and keep the result for as long as both are there."""
    known = left.cached("joined", WeakKeyDictionary)
    if right not in known:
        known[right] = GraphBatch.concatenate([left, right])
    return known[right]


def make_problem(kernel, batch: GraphBatch) -> Problem:
    """Describe the linear systems between all graphs of a batch."""
    node_kernel, edge_kernel = base_kernels_of(kernel)
    walk = describe_walk(kernel, batch, topology(batch).weight_sum)
    return Problem(
        batch=batch,
        node=_label_kernel(batch, "node", node_kernel),
        edge=_label_kernel(batch, "edge", edge_kernel),
        degree=walk.degree,
        stop=walk.stop,
        start=walk.start,
        degree_slope=walk.degree_slope,
        stop_slope=walk.stop_slope,
        category=walk.category,
        n_categories=walk.n_categories,
        trainable_stop=walk.trainable_stop,
        min_steps=kernel.min_steps,
        max_iter=kernel.max_iter,
        tol=kernel.tol,
        dtype=np.dtype(kernel.dtype),
    )


def _label_kernel(batch: GraphBatch, kind: str, kernel: BaseKernel) -> LabelKernel:
    """Join a base kernel and the labels it reads, which are numbered once a batch."""
    names = tuple(kernel.attributes)
    labels = batch.cached(("labels", kind, names), partial(intern, batch, kind, names))
    return LabelKernel(kernel, labels, f"{kind}_kernel")


def base_kernels_of(kernel):
    """Node and edge kernel, `Constant(1.0)` where none is given."""
    return tuple(
        k if k is not None else Constant(1.0) for k in (kernel.node_kernel, kernel.edge_kernel)
    )


def _attributes_read(kernel) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Node and edge attributes that the values depend on."""
    node_kernel, edge_kernel = base_kernels_of(kernel)
    p, q = kernel.starting_probability, kernel.stopping_probability
    names = [*node_kernel.attributes]
    names += [p.attribute] if isinstance(p, StartingProbability) else []
    names += [value for value in (p, q) if isinstance(value, str)]
    return tuple(dict.fromkeys(names)), tuple(edge_kernel.attributes)


def settings_key(kernel) -> Hashable | None:
    """All parameters that values depend on; None where one of them cannot be compared."""
    params = kernel.get_params(deep=False)
    try:
        key = _freeze({k: v for k, v in params.items() if k not in _NOT_IN_KEY})
        hash(key)
    except TypeError:
        return None
    return key


def _freeze(value) -> Hashable:
    """Return a hashable stand-in, equal for equal parameters; bounds do not matter.

    A Python function has none: what it returns may depend on variables that nobody sees.
    """
    if isinstance(value, FunctionKernel):
        raise TypeError(f"{value!r} cannot be compared")
    if isinstance(value, BaseKernel):
        # Hyperparameters in a dict stand there with their bounds; their values come apart.
        params = {k: v for k, v in value.get_params(deep=False).items() if k != "parameters"}
        return type(value), _freeze(params), _freeze(value.hyperparameter_values)
    if isinstance(value, Parametrized):
        return type(value), _freeze(value.get_params(deep=False))
    if isinstance(value, Mapping):
        return tuple((k, _freeze(v)) for k, v in value.items() if not str(k).endswith("_bounds"))
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(_freeze(v) for v in value)
    return value
