// SPDX-License-Identifier: BSD-3-Clause
// Kernel values, derivatives and node-by-node values of small graphs, by strips:
//
//   K = sum p p' x,   Z x = f f'.
//
// With black rows eliminated the rest of the system,
//
//   (Z_r - W_rb Z_b^-1 W_br) x_r = b_r + W_rb Z_b^-1 b_b,
//
// needs half the iterations for the same product. Where only K is asked for, it is added up along
// the way from the directions, and x is not kept.

#pragma once

#include "adjoint.cuh"
#include "solve.cuh"
#include "strip.cuh"

namespace mgk {

// What a launch is asked for: values of K; x too, for values by node or without the first step; or
// derivatives as well.
enum Wanted { VALUES, SOLUTIONS, GRADIENTS };

// Fill the diagonal for the right-hand side b_(i,i2) = quantity_i quantity_i2; the black rows of p
// become Z^-1 b, and r becomes b. Returns b.Z^-1 b of the lane's column.
template <typename T, class Node, class Edge, int WARPS, int SLOTS>
__device__ T prepare(const Strip<T, Node, Edge, WARPS, SLOTS>& s, const T* quantity) {
  constexpr int LANES = WARPS * WARP;
  const bool inside = s.pair >= 0;
  const T column_quantity = inside ? quantity[s.column] : T(0);
  const T column_degree = inside ? s.problem.degree[s.column] : T(0);
  const auto label = s.node.load(s.column);
  T sum = 0;
  for (int i = 0; i < s.n_rows; ++i) {
    const int row = s.strips.row_node[s.first + i], at = i * LANES + s.lane;
    const T v = s.node.value(s.node.load(row), label);
    const T own = v > T(s.problem.tiny) ? s.problem.degree[row] * column_degree / v : T(0);
    const T b = quantity[row] * column_quantity, scaled = inverse(own) * b;
    s.v.diagonal[at] = own;
    sum += b * scaled;
    if (i < s.n_red) s.v.r[at] = b;
    else s.p[at] = scaled;
  }
  return sum;
}

// The black rows of the solution, which follow from the red ones, and from b where the iteration
// leaves no trace of it: x_b = Z_b^-1 (b_b + W_br x_r). Overwrites p.
template <typename T, class Node, class Edge, int WARPS, int SLOTS>
__device__ void complete(const Strip<T, Node, Edge, WARPS, SLOTS>& s, const T* quantity, T* x) {
  constexpr int LANES = WARPS * WARP;
  for (int i = 0; i < s.n_red; ++i) s.p[i * LANES + s.lane] = x[i * LANES + s.lane];
  s.wait();  // the red rows of p are complete
  s.push_to_black();
  const T column_quantity = s.pair >= 0 ? quantity[s.column] : T(0);
  for (int i = s.n_red; i < s.n_rows; ++i) {
    const int row = s.strips.row_node[s.first + i], at = i * LANES + s.lane;
    x[at] = s.p[at] + inverse(s.v.diagonal[at]) * (quantity[row] * column_quantity);
  }
}

// Solve the system of each segment. With KEEP the solution goes to x; otherwise value becomes what
// the lane's column adds to K.
template <bool KEEP, typename T, class Node, class Edge, int WARPS, int SLOTS>
__device__ End conjugate_gradients(const Strip<T, Node, Edge, WARPS, SLOTS>& s, const T* quantity,
                                   T* x, double& value) {
  constexpr int LANES = WARPS * WARP;
  const auto& problem = s.problem;
  T *const p = s.p, *const r = s.v.r, *const y = s.v.y, *const diagonal = s.v.diagonal;
  const int n_red = s.n_red, n_rows = s.n_rows;
  const bool has_black = n_red < n_rows;
  const T goal = T(problem.tol * problem.tol) * s.segment_sum(prepare(s, quantity));
  value = 0;
  if (has_black) {
    if constexpr (!KEEP) {
      for (int i = n_red; i < n_rows; ++i) value += s.start[i] * p[i * LANES + s.lane];
    }
    s.wait();  // the black rows of p are complete
    s.push_to_red();
  }
  T sum = 0;
  for (int i = 0; i < n_red; ++i) {
    const int at = i * LANES + s.lane;
    if (has_black) r[at] += y[at];
    p[at] = inverse(diagonal[at]) * r[at];
    sum += r[at] * p[at];
  }
  T rz = s.segment_sum(sum);
  End end = {CONVERGED, 0};
  bool is_first = true;
  // With several warps there is one segment, and all lanes agree.
  bool active = (WARPS > 1 || s.pair >= 0) && rz > goal;
  while (WARPS == 1 ? __any_sync(ALL, active) : active) {
    s.wait();  // p is complete
    T weighted = 0, curvature = 0;
    if constexpr (Edge::is_table) {
      if (has_black) {
        weighted = s.push_to_black();
        s.wait();  // the black rows of p are complete
      }
    }
    s.push_to_red();
    for (int i = 0; i < n_red; ++i) {
      const int at = i * LANES + s.lane;
      y[at] = diagonal[at] * p[at] - y[at];
      curvature += p[at] * y[at];
      weighted += s.start[i] * p[at];
    }
    curvature = s.segment_sum(curvature);
    if (active && end.iterations == problem.max_iter) {
      end.outcome = STEP_LIMIT;
      active = false;
    } else if (active && !(curvature > 0)) {
      end.outcome = BREAKDOWN;
      active = false;
    }
    const T alpha = active ? rz / curvature : T(0);
    if (!KEEP && active) value += double(alpha) * weighted;
    sum = 0;
    for (int i = 0; i < n_red; ++i) {
      const int at = i * LANES + s.lane;
      if constexpr (KEEP) x[at] = (is_first ? T(0) : x[at]) + alpha * p[at];
      r[at] -= alpha * y[at];
      sum += r[at] * r[at] * inverse(diagonal[at]);
    }
    is_first = false;
    const T next = s.segment_sum(sum);
    const T beta = active ? next / rz : T(0);
    if (active) {
      rz = next;
      ++end.iterations;
      active = rz > goal;
    }
    s.wait();  // all have read p
    for (int i = 0; i < n_red; ++i) {
      const int at = i * LANES + s.lane;
      p[at] = inverse(diagonal[at]) * r[at] + beta * p[at];
    }
  }
  if (!isfinite(rz) || !isfinite(goal)) end.outcome = NOT_FINITE;
  if constexpr (KEEP) {
    for (int i = 0; is_first && i < n_red; ++i) x[i * LANES + s.lane] = 0;
    if (Edge::is_table && has_black) complete(s, quantity, x);
  }
  if (s.pair >= 0) value *= problem.start[s.column];
  s.wait();  // x is complete
  return end;
}

// Sum of z x A A' dk_e over the arcs of G; each label meets the lane's entries once.
template <typename T, class Node, class Edge, int WARPS, int SLOTS>
__device__ void arc_slopes(const Strip<T, Node, Edge, WARPS, SLOTS>& s, T* part) {
  constexpr int LANES = WARPS * WARP;
  typename Edge::Entry theirs[SLOTS];
  s.load_slots(0, theirs);
  T sum[SLOTS] = {}, seen[SLOTS] = {};
  int code = -1;
  const auto add_label = [&] {
#pragma unroll
    for (int t = 0; t < SLOTS; ++t) {
      if (sum[t] == 0) continue;  // a branch: slopes of all entries at once would not fit
      T slope[Edge::n_free];
      s.edge.gradient(code, theirs[t].label(), slope);
      for (int h = 0; h < Edge::n_free; ++h) part[h] += theirs[t].weight * sum[t] * slope[h];
      sum[t] = 0;
    }
  };
  const Arc<T>* const arcs = static_cast<const Arc<T>*>(s.strips.edges);
  for (int a = s.strips.edge_ptr[s.graph]; a < s.strips.edge_ptr[s.graph + 1]; ++a) {
    const Arc<T> own = arcs[a];
    if (own.code >= 0) {
      if (code >= 0) add_label();
      code = own.code;
    }
    if (own.source >= 0) {
      const T x = s.v.x[own.source * LANES + s.lane];
#pragma unroll
      for (int t = 0; t < SLOTS; ++t) seen[t] = s.gather(s.v.x, own.source, x, theirs[t].column);
    }
    const T z = own.weight * s.v.z[own.target * LANES + s.lane];
#pragma unroll
    for (int t = 0; t < SLOTS; ++t) sum[t] += z * seen[t];
  }
  if (code >= 0) add_label();
}

// The same over bonds: both directions at once.
template <typename T, class Node, class Edge, int WARPS, int SLOTS>
__device__ void bond_slopes(const Strip<T, Node, Edge, WARPS, SLOTS>& s, T* part) {
  using Own = Strip<T, Node, Edge, WARPS, SLOTS>;
  for (int slot = 0; slot < s.most; slot += ROUND) {
    typename Edge::Entry theirs[ROUND];
    s.load_slots(slot, theirs);
    for (int b = s.strips.edge_ptr[s.graph]; b < s.strips.edge_ptr[s.graph + 1]; ++b) {
      const auto own = s.bonds()[b];
      const int i = own.i * Own::LANES + s.lane, j = own.j * Own::LANES + s.lane;
      const T x_i = s.v.x[i], x_j = s.v.x[j], z_i = own.weight * s.v.z[i], z_j = own.weight * s.v.z[j];
#pragma unroll
      for (int t = 0; t < ROUND; ++t) {
        T slope[Edge::n_free];
        s.edge.gradient(own.features, theirs[t].label(), slope);
        const int column = theirs[t].column;
        const T both = theirs[t].weight * (z_i * s.gather(s.v.x, own.j, x_j, column) +
                                           z_j * s.gather(s.v.x, own.i, x_i, column));
        for (int h = 0; h < Edge::n_free; ++h) part[h] += both * slope[h];
      }
    }
  }
}

template <typename T, class Node, class Edge, int WARPS, int SLOTS>
__device__ void edge_slopes(const Strip<T, Node, Edge, WARPS, SLOTS>& s, double* out) {
  if constexpr (Edge::n_free > 0) {
    T part[Edge::n_free] = {};
    if constexpr (Edge::is_table) arc_slopes(s, part);
    else bond_slopes(s, part);
    double sums[Edge::n_free];
    for (int h = 0; h < Edge::n_free; ++h) sums[h] = part[h];
    store_sums<Edge::n_free>(s, sums, out);
  }
}

template <Wanted WANTED, typename T, class Node, class Edge, int WARPS, int SLOTS>
__device__ void solve_strip(const Strip<T, Node, Edge, WARPS, SLOTS>& s, const Results& results) {
  double value, unused;
  End end = conjugate_gradients<WANTED != VALUES>(s, s.problem.flow, s.v.x, value);
  const Index k = max(s.pair, 0);
  if constexpr (WANTED == GRADIENTS) {
    const End adjoint = conjugate_gradients<true>(s, s.problem.start, s.v.z, unused);
    end = {max(end.outcome, adjoint.outcome), end.iterations + adjoint.iterations};
    all_slopes(s, results.gradient + k * s.problem.n_theta);
  } else if constexpr (WANTED == SOLUTIONS) {
    if (s.problem.min_steps == 1) drop_first_step(s);
  }
  if constexpr (WANTED == VALUES) value = s.sum(value);
  else value = finish(s, k, results);
  store(s, k, value, end, results);
}

template <typename T, class Node, class Edge, int WARPS, int SLOTS, Wanted WANTED>
__device__ void solve_strips(const Problem<T>& problem, const Strips& strips, const Work& work,
                             const Results& results) {
  using Own = Strip<T, Node, Edge, WARPS, SLOTS>;
  extern __shared__ double dynamic[];  // [strips of the block] of what `Strip` points to
  __shared__ Index taken;
  const int number = threadIdx.x / Own::LANES, n_strips = blockDim.x / Own::LANES;
  char* const memory = reinterpret_cast<char*>(dynamic) + number * strips.stride;
  // What is kept lies in the workspace, as it is touched once an iteration.
  T* const own = static_cast<T*>(work.workspace) + blockIdx.x * work.stride;
  Own strip(problem, strips, memory, own + number * (work.stride / n_strips));
  unsigned long long* const next = reinterpret_cast<unsigned long long*>(work.next);
  while (true) {
    Index s = 0;
    if constexpr (WARPS == 1) {
      s = __shfl_sync(ALL, strip.lane == 0 ? atomicAdd(next, 1ull) : 0ull, 0);
    } else {
      if (strip.lane == 0) taken = atomicAdd(next, 1ull);
      __syncthreads();  // the number of the strip is known
      s = taken;
      __syncthreads();  // all have read it
    }
    if (s >= work.n_items) return;
    strip.load(work, strips.begin[s], strips.begin[s + 1]);
    solve_strip<WANTED>(strip, results);
    Own::wait();  // the strip is done with
  }
}

}  // namespace mgk
