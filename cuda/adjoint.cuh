// SPDX-License-Identifier: BSD-3-Clause
// What a solved pair gives: K = sum p p' x, and its derivatives by all hyperparameters from the
// solution x and the adjoint z:
//
//   dK = sum (dp p' + p dp') x + z.d(f f') - z.dZ x,   dZ = d(D)/V - D/V^2 dV - A A' dk_e,
//
// with respect to the logarithms, in the order node kernel, edge kernel, starting, stopping. Every
// thread adds up what its own entries give; sums over the team follow.

#pragma once

#include "block.cuh"
#include "pair.cuh"

namespace mgk {

template <int N, class Solved>
__device__ void store_sums(const Solved& solved, const double* part, double* out) {
  for (int h = 0; h < N; ++h) {
    const double total = solved.sum(part[h]);
    if (solved.leads()) out[h] = total;
  }
}

// Node kernel: sum of D/V^2 z x dV; min_steps = 1 takes the walks of length zero off.
template <class Solved>
__device__ void node_slopes(const Solved& solved, double* out) {
  using Node = typename Solved::NodeKernel;
  if constexpr (Node::n_free > 0) {
    using T = typename Solved::Real;
    const auto& problem = solved.problem;
    const auto& v = solved.v;
    double part[Node::n_free] = {};
    solved.each([&](int a, int b, typename Solved::Place at) {
      if (v.diagonal[at] == 0) return;
      T slope[Node::n_free];
      const T value = solved.node.gradient(solved.node.load(a), solved.node.load(b), slope);
      T change = v.z[at] * v.x[at] * v.diagonal[at] / value;
      if (problem.min_steps == 1)
        change -= problem.start[a] * problem.start[b] * problem.stop[a] * problem.stop[b];
      for (int h = 0; h < Node::n_free; ++h) part[h] += double(change) * slope[h];
    });
    store_sums<Node::n_free>(solved, part, out);
  }
}

// Edge kernel: sum of z x A A' dk_e over the entries of W. A round of the lane's entries stays in
// registers while the warp runs through its rows.
template <typename T, class Node, class Edge, int SLOTS, bool P_IS_SHARED, class Team>
__device__ void edge_slopes(const Pair<T, Node, Edge, SLOTS, P_IS_SHARED, Team>& pair, double* out) {
  using Place = typename Team::Place;
  if constexpr (Edge::n_free > 0) {
    const int* const ptr = pair.problem.row_ptr;
    const Place ld = pair.owned.ld;
    double part[Edge::n_free] = {};
    pair.owned.each_group(ALL_ROWS, [&](int group, int begin, int end) {
      const int column = group * WARP + pair.owned.lane;
      const int first_entry = ptr[min(pair.second + column, pair.last)];
      const int degree = ptr[min(pair.second + column + 1, pair.last)] - first_entry;
      for (int slot = 0; slot < degree; slot += ROUND) {
        typename Edge::Entry theirs[ROUND];
        pair.load_slots(first_entry, degree, slot, theirs);
        for (int i = begin; i < end; ++i) {
          T sum[Edge::n_free] = {};
          for (int e = ptr[pair.first + i]; e < ptr[pair.first + i + 1]; ++e) {
            const auto own = pair.entries()[e];
            const T* const row = pair.v.x + own.column * ld;
#pragma unroll
            for (int t = 0; t < ROUND; ++t) {
              T slope[Edge::n_free];
              pair.edge.gradient(own.label(), theirs[t].label(), slope);
              const T weight = own.weight * theirs[t].weight * row[theirs[t].column];
              for (int h = 0; h < Edge::n_free; ++h) sum[h] += weight * slope[h];
            }
          }
          for (int h = 0; h < Edge::n_free; ++h)
            part[h] += double(pair.v.z[i * ld + column]) * sum[h];
        }
      }
    });
    store_sums<Edge::n_free>(pair, part, out);
  }
}

// Stopping probability: through f f', D and q q'.
template <class Solved>
__device__ void stop_slope(const Solved& solved, double* out) {
  using T = typename Solved::Real;
  const auto& problem = solved.problem;
  const auto& v = solved.v;
  double part = 0;
  solved.each([&](int a, int b, typename Solved::Place at) {
    const T diagonal = v.diagonal[at];
    const T degree = problem.degree_slope[a] + problem.degree_slope[b];
    const T stop = problem.stop_slope[a] + problem.stop_slope[b];
    const T d = problem.degree[a] * problem.degree[b], q = problem.stop[a] * problem.stop[b];
    part += double(v.z[at]) * (d * q * (degree + stop) - diagonal * degree * v.x[at]);
    if (problem.min_steps == 1 && diagonal > 0)
      part -= double(problem.start[a] * problem.start[b]) * (d / diagonal) * q * stop;
  });
  store_sums<1>(solved, &part, out);
}

// Starting probabilities: category c takes the values of all nodes in it, on either side.
template <class Solved>
__device__ void start_slopes(const Solved& solved, double* out) {
  const auto& problem = solved.problem;
  for (int c = 0; c < problem.n_categories; ++c) {
    double part = 0;
    solved.each([&](int a, int b, typename Solved::Place at) {
      const int times = (problem.category[a] == c) + (problem.category[b] == c);
      part += times * double(problem.start[a] * problem.start[b] * solved.v.x[at]);
    });
    store_sums<1>(solved, &part, out + c);
  }
}

// Take off the walks of length zero: x - V q q', or 0 where only rounding is left.
template <class Solved>
__device__ void drop_first_step(const Solved& solved) {
  const auto& problem = solved.problem;
  const auto& v = solved.v;
  solved.each([&](int a, int b, typename Solved::Place at) {
    const auto diagonal = v.diagonal[at];
    if (diagonal > 0) {
      const auto value = problem.degree[a] * problem.degree[b] / diagonal;
      const auto first = value * problem.stop[a] * problem.stop[b];
      const auto rest = v.x[at] - first;
      v.x[at] = rest > problem.epsilon * first ? rest : 0;
    }
  });
}

// K, and p p' x by node where it is asked for; k is the number of the pair.
template <class Solved>
__device__ double finish(const Solved& solved, Index k, const Results& results) {
  const auto& problem = solved.problem;
  double total = 0;
  solved.each([&](int a, int b, typename Solved::Place at) {
    const auto value = problem.start[a] * problem.start[b] * solved.v.x[at];
    total += value;
    if (results.nodal)
      results.nodal[results.base[k] + problem.local[a] * results.row_stride[k] +
                    problem.local[b] * results.column_stride[k]] = value;
  });
  return solved.sum(total);
}

// Write what is known of pair k, by one thread.
template <class Solved>
__device__ void store(const Solved& solved, Index k, double value, End end,
                      const Results& results) {
  if (!solved.leads()) return;
  results.values[k] = value;
  results.outcome[k] = end.outcome == CONVERGED && !isfinite(value) ? NOT_FINITE : end.outcome;
  results.iterations[k] = end.iterations;
}

// All derivatives. Those by starting probabilities come after the walks of length zero are taken off.
template <class Solved>
__device__ void all_slopes(const Solved& solved, double* out) {
  using Node = typename Solved::NodeKernel;
  using Edge = typename Solved::EdgeKernel;
  const auto& problem = solved.problem;
  node_slopes(solved, out);
  edge_slopes(solved, out + Node::n_free);
  if (problem.trainable_stop) stop_slope(solved, out + problem.n_theta - 1);
  solved.wait();  // the slopes have read x, which the next line changes
  if (problem.min_steps == 1) drop_first_step(solved);
  start_slopes(solved, out + Node::n_free + Edge::n_free);
}

}  // namespace mgk
