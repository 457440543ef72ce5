// SPDX-License-Identifier: BSD-3-Clause
// Derivatives of a kernel value by all hyperparameters, from the solution x and the adjoint z:
//
//   dK = sum (dp p' + p dp') x + z.d(f f') - z.dZ x,   dZ = d(D)/V - D/V^2 dV - A A' dk_e,
//
// with respect to the logarithms, in the order node kernel, edge kernel, starting, stopping. Every
// thread adds up what its own entries give; sums over the team follow.

#pragma once

#include "block.cuh"
#include "pair.cuh"

namespace mgk {

template <int N, class Team>
__device__ void store_sums(Team& team, const double* part, double* out) {
  for (int h = 0; h < N; ++h) {
    const double total = team.sum(part[h]);
    if (team.leads()) out[h] = total;
  }
}

// Node kernel: sum of D/V^2 z x dV; min_steps = 1 takes the walks of length zero off.
template <typename T, class Node, class Edge, int SLOTS, class Team>
__device__ void node_slopes(const Pair<T, Node, Edge, SLOTS, Team>& pair, double* out) {
  if constexpr (Node::n_free > 0) {
    using Place = typename Team::Place;
    const auto& problem = pair.problem;
    double part[Node::n_free] = {};
    pair.owned.each([&](int i, int column, Place at) {
      if (pair.v.diagonal[at] == 0) return;
      const int a = pair.first + i, b = pair.second + column;
      T slope[Node::n_free];
      const T value = pair.node.gradient(pair.node.load(a), pair.node.load(b), slope);
      T change = pair.v.z[at] * pair.v.x[at] * pair.v.diagonal[at] / value;
      if (problem.min_steps == 1)
        change -= problem.start[a] * problem.start[b] * problem.stop[a] * problem.stop[b];
      for (int h = 0; h < Node::n_free; ++h) part[h] += double(change) * slope[h];
    });
    store_sums<Node::n_free>(pair.team, part, out);
  }
}

// Edge kernel: sum of z x A A' dk_e over the entries of W.
template <typename T, class Node, class Edge, int SLOTS, class Team>
__device__ void edge_slopes(const Pair<T, Node, Edge, SLOTS, Team>& pair, double* out) {
  if constexpr (Edge::n_free > 0) {
    using Place = typename Team::Place;
    const auto& problem = pair.problem;
    const auto& edge = pair.edge;
    double part[Edge::n_free] = {};
    pair.owned.each([&](int i, int column, Place at) {
      const int a = pair.first + i, b = pair.second + column;
      T sum[Edge::n_free] = {};
      for (int e = problem.row_ptr[a]; e < problem.row_ptr[a + 1]; ++e) {
        const auto own = pair.entries()[e];
        const T* row = pair.v.x + Place(own.column) * pair.owned.ld;
        for (int k = problem.row_ptr[b]; k < problem.row_ptr[b + 1]; ++k) {
          const auto theirs = pair.entries()[k];
          T slope[Edge::n_free];
          edge.gradient(own.label(), theirs.label(), slope);
          const T weight = own.weight * theirs.weight * row[theirs.column];
          for (int h = 0; h < Edge::n_free; ++h) sum[h] += weight * slope[h];
        }
      }
      for (int h = 0; h < Edge::n_free; ++h) part[h] += double(pair.v.z[at]) * sum[h];
    });
    store_sums<Edge::n_free>(pair.team, part, out);
  }
}

// Stopping probability: through f f', D and q q'.
template <typename T, class Node, class Edge, int SLOTS, class Team>
__device__ void stop_slope(const Pair<T, Node, Edge, SLOTS, Team>& pair, double* out) {
  using Place = typename Team::Place;
  const auto& problem = pair.problem;
  double part = 0;
  pair.owned.each([&](int i, int column, Place at) {
    const int a = pair.first + i, b = pair.second + column;
    const T diagonal = pair.v.diagonal[at];
    const T degree = problem.degree_slope[a] + problem.degree_slope[b];
    const T stop = problem.stop_slope[a] + problem.stop_slope[b];
    const T d = problem.degree[a] * problem.degree[b], q = problem.stop[a] * problem.stop[b];
    part += double(pair.v.z[at]) * (d * q * (degree + stop) - diagonal * degree * pair.v.x[at]);
    if (problem.min_steps == 1 && diagonal > 0)
      part -= double(problem.start[a] * problem.start[b]) * (d / diagonal) * q * stop;
  });
  part = pair.team.sum(part);
  if (pair.team.leads()) *out = part;
}

// Starting probabilities: category c takes the values of all nodes in it, on either side.
template <typename T, class Node, class Edge, int SLOTS, class Team>
__device__ void start_slopes(const Pair<T, Node, Edge, SLOTS, Team>& pair, double* out) {
  using Place = typename Team::Place;
  const auto& problem = pair.problem;
  for (int c = 0; c < problem.n_categories; ++c) {
    double part = 0;
    pair.owned.each([&](int i, int column, Place at) {
      const int a = pair.first + i, b = pair.second + column;
      const int times = (problem.category[a] == c) + (problem.category[b] == c);
      part += times * double(problem.start[a] * problem.start[b] * pair.v.x[at]);
    });
    part = pair.team.sum(part);
    if (pair.team.leads()) out[c] = part;
  }
}

}  // namespace mgk
