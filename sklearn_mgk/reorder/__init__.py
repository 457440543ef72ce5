# SPDX-License-Identifier: BSD-3-Clause
"""Node orders that gather the edges of a graph in few 8 x 8 tiles."""

from sklearn_mgk.reorder.order import Reorder, node_order, permute

__all__ = ["Reorder", "node_order", "permute"]
