# SPDX-License-Identifier: BSD-3-Clause
"""Matrices whose pairs and values lie on a device, with NumPy arrays in disguise as the device."""

from enum import Enum
from types import SimpleNamespace

import numpy as np
import pytest
from cases import GRAPH_SETS, make_kernel
from numpy.lib.mixins import NDArrayOperatorsMixin
from oracles import as_batch
from sklearn.exceptions import ConvergenceWarning

from sklearn_mgk import GraphBatch, clear_cache
from sklearn_mgk import gram as gram_layer
from sklearn_mgk.blocks import Matrix
from sklearn_mgk.solver.cpu import CPUBackend
from sklearn_mgk.solver.problem import NodalTarget, Solution

CALLS = ["ones", "zeros", "empty", "arange", "isnan", "nonzero", "stack", "where", "asarray", "ix_"]


class DeviceArray(NDArrayOperatorsMixin):
    """An array that NumPy may not read, and that mixes with arrays of its kind only."""

    def __init__(self, data):
        self.data = data

    def __array__(self, dtype=None, copy=None):
        raise TypeError("this array lies on a device")

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **options):
        assert not any(isinstance(x, np.ndarray | Enum) for x in inputs)
        options |= {"out": tuple(bare(x) for x in out)} if out else {}
        return wrapped(getattr(ufunc, method)(*map(bare, inputs), **options))

    def __len__(self):
        return len(self.data)

    def __getitem__(self, key):
        return wrapped(self.data[bare(key)])

    def __setitem__(self, key, value):
        assert isinstance(value, DeviceArray)
        self.data[bare(key)] = value.data

    def __getattr__(self, name):
        found = getattr(self.data, name)
        return (lambda *args: wrapped(found(*args))) if callable(found) else wrapped(found)

    def get(self, out=None):
        """Copy to the host."""
        if out is None:
            return np.ascontiguousarray(self.data)
        assert out.flags.c_contiguous
        assert out.shape == self.data.shape
        out[...] = self.data
        return out


def bare(x):
    if isinstance(x, tuple | list):
        return type(x)(map(bare, x))
    return x.data if isinstance(x, DeviceArray) else x


def wrapped(x):
    if isinstance(x, tuple) and any(isinstance(part, np.ndarray) for part in x):
        return tuple(map(wrapped, x))
    return DeviceArray(x) if isinstance(x, np.ndarray) else x


def on_device(call):
    return lambda *args: wrapped(call(*map(bare, args)))


device = SimpleNamespace(__name__="cupy", **{name: on_device(getattr(np, name)) for name in CALLS})


@pytest.fixture(params=[200, np.inf], ids=["matrix on the host", "matrix on the device"])
def room(request):
    """Bytes that a matrix may take on the device."""
    return request.param


@pytest.fixture(params=[1, 700, 10**9], ids=["rows", "some rows", "all"])
def device_calls(request, room, monkeypatch):
    """Let the CPU backend pose as one of a device; numbers of pairs of its calls."""
    calls, prepare = [], CPUBackend.solver

    def solver(self, problem, eval_gradient):
        solve = prepare(self, problem, eval_gradient)

        def posing(pairs, nodal=None):
            calls.append(len(pairs))
            if isinstance(pairs, np.ndarray):
                return solve(pairs, nodal)
            target = nodal and NodalTarget(*map(bare, vars(nodal).values()))
            found = solve(np.ascontiguousarray(pairs.get()), target)
            return Solution(*(wrapped(x) for x in vars(found).values()))

        return posing

    monkeypatch.setattr(CPUBackend, "solver", solver)
    monkeypatch.setattr(CPUBackend, "xp", device)
    monkeypatch.setattr(CPUBackend, "room", lambda self: room)
    monkeypatch.setitem(gram_layer.CHUNK_BYTES, "cupy", request.param)
    clear_cache()
    yield calls
    clear_cache()


@pytest.fixture
def batch():
    """Graphs of which two come twice."""
    graphs = as_batch(GRAPH_SETS["sparse"])
    return GraphBatch.concatenate([graphs, graphs[:2]])


def reference(batch, *other, **options):
    return make_kernel("delta", "smooth", "reference", **options)(batch, *other)


@pytest.mark.parametrize("cache_size", [0, 128])
def test_values(batch, device_calls, cache_size):
    kernel = make_kernel("delta", "smooth", "cpu", cache_size=cache_size)
    n = len(batch) - 2
    for _ in range(2):
        K = kernel(batch)
        np.testing.assert_allclose(K, reference(batch), rtol=1e-6)
        np.testing.assert_array_equal(K, K.T)
    assert sum(device_calls) == n * (n + 1) // 2 * (1 if cache_size else 2)


def test_what_is_known_is_not_solved_again(batch, device_calls):
    kernel = make_kernel("delta", "smooth", "cpu", cache_size=128)
    kernel(batch[1:3])
    kernel.diag(batch[:4])
    before, n = sum(device_calls), len(batch) - 2
    np.testing.assert_allclose(kernel(batch), reference(batch), rtol=1e-6)
    assert sum(device_calls) - before == n * (n + 1) // 2 - 1 - 4


def test_a_known_matrix_stays_on_the_host(batch, device_calls, monkeypatch):
    kernel = make_kernel("delta", "smooth", "cpu", cache_size=128)
    expected = kernel(batch)
    monkeypatch.setattr(device, "zeros", None)
    np.testing.assert_array_equal(kernel(batch), expected)


def test_two_sides(batch, device_calls):
    kernel = make_kernel("delta", "smooth", "cpu", cache_size=128)
    for _ in range(2):
        found = kernel(batch[:4], batch[2:])
        np.testing.assert_allclose(found, reference(batch[:4], batch[2:]), rtol=1e-6)


def test_values_by_node(batch, device_calls):
    kernel = make_kernel("delta", "smooth", "cpu")
    expected = make_kernel("delta", "smooth", "reference").nodal(batch)
    found = kernel.nodal(batch)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(
        kernel.nodal(batch[:3], batch), expected[: batch.node_ptr[3]], rtol=1e-5, atol=1e-9
    )


def test_derivatives(batch, device_calls):
    kernel = make_kernel("delta", "smooth", "cpu")
    found, expected = kernel(batch, eval_gradient=True), reference(batch, None, True)
    for matrix, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(matrix, other, rtol=1e-5, atol=1e-7)


def test_pairs_that_did_not_converge_are_named_and_solved_again(batch, device_calls):
    kernel = make_kernel("delta", "smooth", "cpu", cache_size=128, max_iter=1)
    for k in (1, 2):
        with pytest.warns(ConvergenceWarning, match=r"of \d+ pairs did not .* \(X\[0\], X\[\d+\]"):
            kernel(batch)
        assert sum(device_calls) > k * (len(batch) - 2)


@pytest.mark.parametrize("most", [1, 5])
def test_a_block_that_finds_no_room_is_cut(batch, device_calls, most, monkeypatch):
    solver = CPUBackend.solver

    def crowded(self, problem, eval_gradient):
        solve = solver(self, problem, eval_gradient)

        def solve_few(pairs, nodal=None):
            if len(pairs) > most:
                raise MemoryError("no room for the pairs")
            return solve(pairs, nodal)

        return solve_few

    monkeypatch.setattr(CPUBackend, "solver", crowded)
    kernel, n = make_kernel("delta", "smooth", "cpu", cache_size=128), len(batch) - 2
    if most < n:
        with pytest.raises(MemoryError, match="no room"):
            kernel(batch)
        return
    np.testing.assert_allclose(kernel(batch), reference(batch), rtol=1e-6)
    assert sum(device_calls) == n * (n + 1) // 2
    assert max(device_calls) <= most


def test_a_matrix_that_finds_no_room_on_the_device_lies_on_the_host(monkeypatch):
    def full(shape):
        raise MemoryError("no room for the matrix")

    monkeypatch.setattr(device, "zeros", full)
    matrix = Matrix.of(device, np.inf, (2, 3))
    assert matrix.xp is np
    np.testing.assert_array_equal(matrix.array, np.zeros((2, 3)))
