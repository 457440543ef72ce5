// SPDX-License-Identifier: BSD-3-Clause
// The linear system of a pair of graphs, by a team of threads:
//
//   Z = diag(D/V) - W,   D_(i,i2) = d_i d_i2,   V_(i,i2) = k_v(i, i2),
//   W_(i,i2),(j,j2) = A_ij A'_i2j2 k_e(ij, i2j2).
//
// All vectors are matrices of a row for each node of G and a column for each node of G'; who owns
// which entry says `Owned`. Product nodes with V = 0 have no equation: D/V and what stands for its inverse are 0
// there, so that no direction of the solver ever reaches them.

#pragma once

#include "block.cuh"
#include "labels.cuh"
#include "problem.cuh"

namespace mgk {

// Vectors of a team, in shared memory or in its part of the workspace.
template <typename T>
struct Vectors {
  T* p;         // [rows][ld] direction
  T* r;         // [rows][ld] residual
  T* y;         // [rows][ld] W p
  T* diagonal;  // [rows][ld] D/V, or 0 where V = 0
  T* x;         // [rows][ld] solution
  T* z;         // [rows][ld] adjoint solution; only with derivatives
};

// Inverse of an entry of the diagonal, 0 where there is no equation.
template <typename T>
__device__ T inverse(T diagonal) {
  return diagonal > 0 ? T(1) / diagonal : T(0);
}

// Up to so many slots, rows are taken to be so short that fetching their entries together costs more
// than it saves.
constexpr int SPARSE = 4;

// Entries of a lane that share a window.
constexpr int ROUND = 4;

// Cost of a row, in entries, beside that of its entries.
constexpr int ROW_COST = 1;

// Keys of the entries of G that a warp needs.
template <typename T>
struct Window {
  T low, high;
  __device__ bool holds(T key) const { return low <= key && key <= high; }
};

// Window around n of a lane's entries from the given one on; of all lanes together.
template <class Edge, typename T = decltype(Edge::Entry::weight), int SLOTS>
__device__ Window<T> window_of(const typename Edge::Entry (&theirs)[SLOTS], int from, int n,
                               double reach) {
  T low = T(3e38), high = T(-3e38);
#pragma unroll
  for (int t = 0; t < ROUND; ++t) {
    if (t < n) {
      low = min(low, Edge::key(theirs[from + t].label()));
      high = max(high, Edge::key(theirs[from + t].label()));
    }
  }
  for (int step = WARP / 2; step > 0; step /= 2) {
    low = min(low, __shfl_xor_sync(ALL, low, step));
    high = max(high, __shfl_xor_sync(ALL, high, step));
  }
  return {low - T(reach), high + T(reach)};
}

// P_IS_SHARED: whether the direction lies in shared memory.
template <typename T, class Node, class Edge, int SLOTS, bool P_IS_SHARED, class Team>
struct Pair {
  using Real = T;
  using NodeKernel = Node;
  using EdgeKernel = Edge;
  using Entry = typename Edge::Entry;
  using Place = typename Team::Place;

  static constexpr int ROUNDS = SLOTS / ROUND;
  static_assert(SLOTS % ROUND == 0, "registers hold whole rounds");

  Team& team;
  const Problem<T>& problem;
  const Node node;
  const Edge edge;
  const int first, second, last;  // first node of G and of G', and the end of the latter's
  const Owned<Team> owned;
  Vectors<T> v;

  __device__ Pair(Team& team, const Problem<T>& problem, int g, int h, T* memory, T* p_memory)
      : team(team), problem(problem), node(problem.node), edge(problem.edge),
        first(problem.node_ptr[g]), second(problem.node_ptr[h]), last(problem.node_ptr[h + 1]),
        owned(team, problem.node_ptr[g + 1] - first, problem.n_red[g], last - second,
              [&](int group) { return 1 + (most_entries(group) + ROUND - 1) / ROUND; },
              [&](int i) { return problem.row_ptr[first + i] + ROW_COST * i; }) {
    const Index size = Index(owned.n_rows) * owned.ld;
    v = {p_memory, memory, memory + size, memory + 2 * size,
         memory + 3 * size, memory + 4 * size};
  }

  __device__ const Entry* entries() const { return static_cast<const Entry*>(problem.entries); }

  // Call f(a, b, at) for what this thread owns: nodes of G and of G', and their place.
  template <class F>
  __device__ void each(F f) const {
    owned.each(ALL_ROWS, [&](int i, int column, Place at) { f(first + i, second + column, at); });
  }

  // Sum over the pair; which thread writes it; wait for all of them.
  __device__ double sum(double value) const { return team.sum(value); }
  __device__ bool leads() const { return team.leads(); }
  __device__ void wait() const { team.wait(); }

  // Fill the diagonal.
  __device__ void prepare() {
    owned.each(ALL_ROWS, [&](int i, int column, Place at) {
      const T value = node.value(node.load(first + i), node.load(second + column));
      const T d = problem.degree[first + i] * problem.degree[second + column];
      v.diagonal[at] = value > T(problem.tiny) ? d / value : T(0);
    });
  }

  // Entries of the node in a group of columns that has the most.
  __device__ int most_entries(int group) const {
    const int node = min(second + group * WARP + int(threadIdx.x) % WARP, last - 1);
    return __reduce_max_sync(ALL, problem.row_ptr[node + 1] - problem.row_ptr[node]);
  }

  // Load entries of a node from one on; those that it does not have get the weight 0.
  template <int N>
  __device__ void load_slots(int first_entry, int degree, int slot, Entry (&theirs)[N]) const {
#pragma unroll
    for (int t = 0; t < N; ++t) {
      theirs[t] = entries()[slot + t < degree ? first_entry + slot + t : 0];
      if (slot + t >= degree) theirs[t].weight = 0, theirs[t].column = 0;
    }
  }

  // y = W p in some rows, a sum over the entries of both nodes. Up to SLOTS entries of the lane's
  // node stay in registers while the warp runs through its rows, in rounds that each meet only
  // the entries of G in their window. The entries of a node are sorted by key.
  __device__ void multiply(Rows rows) const {
    const SharedPlace place = P_IS_SHARED ? shared_place(v.p) : 0;
    owned.each_group(rows, [&](int group, int begin, int end) {
      const int column = group * WARP + owned.lane;
      const bool inside = column < owned.n_columns;
      const int first_entry = inside ? problem.row_ptr[second + column] : 0;
      const int degree = inside ? problem.row_ptr[second + column + 1] - first_entry : 0;
      const int most = most_entries(group);
      int slot = 0;
      do {
        Entry theirs[SLOTS];
        load_slots(first_entry, degree, slot, theirs);
        SharedPlace places[SLOTS];  // of what the entries read in the first row of p
#pragma unroll
        for (int t = 0; t < SLOTS; ++t) places[t] = place + theirs[t].column * sizeof(T);
        Window<T> windows[ROUNDS];
#pragma unroll
        for (int r = 0; r < ROUNDS; ++r)
          windows[r] = window_of<Edge>(theirs, r * ROUND, degree - slot - r * ROUND, problem.reach);
        for (int i = begin; i < end; ++i) {
          const int from = problem.row_ptr[first + i], to = problem.row_ptr[first + i + 1];
          const T sum = row_product(theirs, places, windows, from, to);
          const Place at = Place(i) * owned.ld + column;
          if (inside) v.y[at] = slot > 0 ? v.y[at] + sum : sum;
        }
        slot += SLOTS;
      } while (slot < most);
    });
  }

  // Sum over the entries of a row of G, from one to another, and the entries of the lane's node.
  __device__ T row_product(const Entry (&theirs)[SLOTS], const SharedPlace (&places)[SLOTS],
                           const Window<T> (&windows)[ROUNDS], int from, int to) const {
    T sum = 0;
    if constexpr (SLOTS <= SPARSE) {
      for (int e = from; e < to; ++e) sum += entry_product(theirs, places, windows, entries()[e]);
    } else {
      for (int e = from; e < to; e += WARP) {
        // Lanes fetch an entry of G each, and pass on those that are needed.
        const bool fetched = e + owned.lane < to;
        const Entry mine = entries()[fetched ? e + owned.lane : e];
        bool used = false;
#pragma unroll
        for (int r = 0; r < ROUNDS; ++r) used |= windows[r].holds(Edge::key(mine.label()));
        unsigned needed = __ballot_sync(ALL, fetched && used);
        for (; needed; needed &= needed - 1)
          sum += entry_product(theirs, places, windows, mine.from(__ffs(needed) - 1));
      }
    }
    return sum;
  }

  __device__ T entry_product(const Entry (&theirs)[SLOTS], const SharedPlace (&places)[SLOTS],
                             const Window<T> (&windows)[ROUNDS], const Entry& own) const {
    const Place row = Place(own.column) * owned.ld;
    T sum = 0;
#pragma unroll
    for (int r = 0; r < ROUNDS; ++r) {
      if (!windows[r].holds(Edge::key(own.label()))) continue;  // for all lanes of the warp
#pragma unroll
      for (int t = r * ROUND; t < (r + 1) * ROUND; ++t) {
        T source;
        if constexpr (P_IS_SHARED) load_shared(places[t] + unsigned(row) * sizeof(T), source);
        else source = v.p[row + theirs[t].column];
        sum += theirs[t].weight * edge.value(own.label(), theirs[t].label()) * source;
      }
    }
    return own.weight * sum;
  }
};

}  // namespace mgk
