# SPDX-License-Identifier: BSD-3-Clause
"""k-truss on a real device, against the CPU."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from truss.graphs import SETS, edge_set

from sklearn_mgk import from_networkx
from sklearn_mgk.truss import cuda, edge_support, k_truss, max_truss, trussness
from sklearn_mgk.truss.edges import ORDERS, make_rows
from sklearn_mgk.truss.support import row_support

pytestmark = pytest.mark.gpu

every_set = pytest.mark.parametrize("name", SETS)


@every_set
@pytest.mark.parametrize("granularity", ["fine", "coarse", "threads"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_counts_are_those_of_the_cpu(name, granularity, order, dtype):
    rows = make_rows(edge_set(SETS[name]), order, dtype)
    device = cuda.DeviceRows(rows)
    device.count(granularity)
    assert_array_equal(device.support.get(), row_support(rows))


@every_set
@pytest.mark.parametrize("large", [1, 10**9], ids=["grid", "blocks"])
def test_backends_agree(name, large, monkeypatch):
    monkeypatch.setattr(cuda, "_LARGE", large)
    batch = from_networkx(SETS[name])
    assert_array_equal(trussness(batch, backend="cuda"), trussness(batch))
    assert_array_equal(edge_support(batch, backend="cuda"), edge_support(batch))
    assert_array_equal(max_truss(batch, backend="cuda"), max_truss(batch))
    for k in range(2, 8):
        for granularity in ("fine", "coarse"):
            found = k_truss(batch, k, granularity=granularity, backend="cuda")
            assert_array_equal(found.edge_index, k_truss(batch, k).edge_index)


def test_too_little_memory_says_what_to_do():
    import cupy

    pool = cupy.get_default_memory_pool()
    before = pool.get_limit()
    pool.free_all_blocks()
    pool.set_limit(size=4096)
    try:
        with pytest.raises(MemoryError, match=r"\d+ edges: pass fewer graphs .*backend='cpu'"):
            trussness(from_networkx(SETS["random"]), backend="cuda")
    finally:
        pool.set_limit(size=before)
