// SPDX-License-Identifier: BSD-3-Clause
// What the kernels read: the graphs of a batch as columns in device memory, and the settings.
//
// Nodes of a graph are sorted by the number of their entries, largest first, so that the lanes of a
// warp do equal work; in a bipartite graph the red nodes come before the black ones. An entry is one
// direction of an edge with all that a product reads of it; the entries of a node are adjacent.
// Filled by sklearn_mgk/solver/cuda.py, in fields of eight bytes.

#pragma once

namespace mgk {

using Index = long long;

constexpr int WARP = 32;
constexpr unsigned ALL = 0xffffffffu;

// A base kernel: labels by number with a table over all of them, or labels as features.
template <typename T>
struct Columns {
  const int* code;    // (n_nodes) number of the label of each node; for nodes only, like the next
  const T* features;  // (n_nodes, n_features) what generated code reads
  const T* values;    // (n_labels, n_labels) table of the kernel
  const T* slopes;    // (n_free, n_labels, n_labels) its derivatives by log hyperparameter
  const T* theta;     // (n_hyperparameters) arguments of generated code
  Index n_labels;
};

template <typename T>
struct Problem {
  const int* node_ptr;     // (n_graphs + 1) first node of each graph
  const int* row_ptr;      // (n_nodes + 1) first entry of each node
  const void* entries;     // (n_entries) as the edge kernel defines them
  const T* degree;         // (n_nodes) d
  const T* flow;           // (n_nodes) f = d q
  const T* stop;           // (n_nodes) q
  const T* start;          // (n_nodes) p
  const T* degree_slope;   // (n_nodes) derivative of d by log q, over d
  const T* stop_slope;     // (n_nodes) derivative of q by log q, over q
  const int* category;     // (n_nodes) trainable starting probability, -1 for none
  const int* local;        // (n_nodes) number of the node in the graph as it came
  const int* n_red;        // (n_graphs) red nodes; all nodes where the graph is not bipartite
  Columns<T> node, edge;
  double tol;              // residual at which a solve ends, relative to the right-hand side
  double tiny;             // V at or below this counts as 0
  double epsilon;          // relative rounding error of a solution without any step
  double reach;            // edges whose keys differ by more are negligible together
  Index max_iter;
  Index min_steps;         // 0 or 1
  Index n_categories;
  Index trainable_stop;
  Index n_theta;           // columns of the gradient
};

// What a launch writes; row k belongs to pair k of its list.
struct Results {
  double* values;       // (n_pairs)
  double* gradient;     // (n_pairs, n_theta), or null
  int* outcome;         // (n_pairs)
  int* iterations;      // (n_pairs)
  double* nodal;        // node-by-node values of all pairs, or null
  const Index* base;    // (n_pairs) place of nodes (0, 0) in nodal
  const Index* row_stride;     // (n_pairs)
  const Index* column_stride;  // (n_pairs)
};

// A list of pairs for one launch: blocks take the next one, or warps the next strip of pairs, when
// they are done.
struct Work {
  const int* first;   // (n_pairs) graph along the rows
  const int* second;  // (n_pairs) graph along the columns
  Index n_items;      // pairs, or strips
  Index* next;        // items taken so far; the host ends a launch by a large number
  void* workspace;    // vectors of all blocks, or null where they lie in shared memory
  Index stride;       // numbers of T that each block has there
  double* sums;       // (2, n_blocks + 1) and one more, all 0; where all blocks solve a pair together
};

enum Outcome { CONVERGED, STEP_LIMIT, BREAKDOWN, NOT_FINITE };

// How a solve ended.
struct End {
  int outcome, iterations;
};

}  // namespace mgk
