// SPDX-License-Identifier: BSD-3-Clause
// Small graphs: a warp for one graph G along the rows and several graphs G' side by side on its
// lanes, a *strip*; or several warps for one larger G'.
//
//   Z x = b,   Z = diag(D/V) - W.
//
// All lanes run through the same entries of G, so that they never part; a lane holds the entries of
// its node of G' in registers. Vectors lie in shared memory as [row][lane]; what one lane needs of
// another's they pass on by shuffles. The pairs of a strip are *segments* of lanes, each with its own
// step lengths and its own end.
//
// Rows of a bipartite G are sorted by colour, red ones first: the black ones are eliminated.

#pragma once

#include "block.cuh"
#include "labels.cuh"
#include "pair.cuh"
#include "problem.cuh"

namespace mgk {

// One direction of an edge of G, for edge kernels by table: sorted by the colour of the source, by
// label and by source, so that the lane's weights and its product with a row of p are used again.
template <typename T>
struct alignas(16) Arc {
  int source;  // row that is read, or -1: the same as before
  int target;  // row that is added to
  int code;    // label, or -1: the same as before
  T weight;
};

// An edge of G, for edge kernels by code: each value serves both directions.
template <typename T, class Label>
struct alignas(16) Bond {
  int i, j;  // rows of both ends
  T weight;  // half that of a self-loop, which has one direction
  Label features;
};

// Graphs along the rows.
struct Strips {
  const int* row_node;   // (n_nodes) position of the node of each row
  const int* n_red;      // (n_graphs) rows that are unknowns; the rest are eliminated
  const int* edge_ptr;   // (n_graphs + 1) arcs or bonds of each graph
  const int* edge_half;  // (n_graphs) end of the arcs that leave red rows
  const void* edges;     // arcs or bonds
  const int* begin;      // (n_strips + 1) pairs of each strip
  Index stride;          // shared memory of a strip [bytes]
};

template <typename T, class Node, class Edge, int WARPS, int SLOTS>
struct Strip {
  using Real = T;
  using NodeKernel = Node;
  using EdgeKernel = Edge;
  using Place = int;
  using Entry = typename Edge::Entry;
  static constexpr int LANES = WARPS * WARP;
  static constexpr int MAX_ROWS = 64;
  static constexpr int ROUNDS = Edge::is_table ? 0 : 32;  // most rounds
  static_assert(Edge::is_table || SLOTS % ROUND == 0, "registers hold whole rounds");

  const Problem<T>& problem;
  const Strips& strips;
  const Node node;
  const Edge edge;
  double* const partial;  // [WARPS] sums of the warps
  T* const start;         // [MAX_ROWS] starting probability of each row
  int* const bond_begin;  // [WARPS][ROUNDS] first bond in the window of each round of entries
  int* const bond_end;    // [WARPS][ROUNDS] and the one after its last
  T* const p;             // [n_rows][LANES] direction
  Vectors<T> v;           // of red rows r and y, of all rows the others; x and z lie in the workspace
  const int lane = threadIdx.x % LANES;
  int pair = -1;            // pair of the lane; -1 where it has none
  int begin = 0, end = 0;   // lanes of its segment
  int column = 0;           // its node
  int first_entry = 0, degree = 0, most = 0;  // its entries; the most of any lane
  int graph, first, n_rows, n_red;

  __device__ Strip(const Problem<T>& problem, const Strips& strips, void* memory, T* solutions)
      : problem(problem), strips(strips), node(problem.node), edge(problem.edge), partial(static_cast<double*>(memory)),
        start(reinterpret_cast<T*>(partial + WARPS)),
        bond_begin(reinterpret_cast<int*>(start + MAX_ROWS)), bond_end(bond_begin + WARPS * ROUNDS),
        p(reinterpret_cast<T*>(bond_end + WARPS * ROUNDS)) {
    v.x = solutions;
  }

  // Wait for all lanes of the strip.
  __device__ static void wait() {
    if constexpr (WARPS == 1) __syncwarp();
    else __syncthreads();
  }

  // Sum over the lanes of the segment, the same in each of them and in every run.
  template <typename Real>
  __device__ Real segment_sum(Real value) const {
    if constexpr (WARPS == 1) {
      for (int step = 1; step < WARP; step *= 2) {
        const Real other = __shfl_down_sync(ALL, value, step);
        if (lane + step < end) value += other;
      }
      return __shfl_sync(ALL, value, begin);
    } else {
      for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL, value, step);
      if (lane % WARP == 0) partial[lane / WARP] = value;
      __syncthreads();  // the sums of all warps are there
      Real total = 0;
      for (int warp = 0; warp < WARPS; ++warp) total += Real(partial[warp]);
      __syncthreads();  // all have read them
      return total;
    }
  }

  // Put the graphs of pairs k to last side by side.
  __device__ void load(const Work& work, int k, int last) {
    graph = work.first[k];
    first = problem.node_ptr[graph];
    n_rows = problem.node_ptr[graph + 1] - first;
    n_red = strips.n_red[graph];
    v.p = p;
    v.diagonal = p + n_rows * LANES;
    v.r = v.diagonal + n_rows * LANES;
    v.y = v.r + n_red * LANES;
    v.z = v.x + n_rows * LANES;
    pair = -1;
    begin = end = lane;
    int at = 0;
    for (; k < last; ++k) {
      const int h = work.second[k], start = problem.node_ptr[h];
      const int size = problem.node_ptr[h + 1] - start;
      if (lane >= at && lane < at + size) {
        pair = k;
        begin = at;
        end = at + size;
        column = start + lane - at;
      }
      at += size;
    }
    first_entry = pair >= 0 ? problem.row_ptr[column] : 0;
    degree = pair >= 0 ? problem.row_ptr[column + 1] - first_entry : 0;
    most = degree;
    for (int step = WARP / 2; step > 0; step /= 2) most = max(most, __shfl_xor_sync(ALL, most, step));
    for (int i = lane; i < n_rows; i += LANES)
      start[i] = problem.start[strips.row_node[first + i]];
    if constexpr (!Edge::is_table) find_windows();
    wait();  // starts and windows are known to all lanes
  }

  // Bonds are sorted by key: find those that each round of entries needs.
  __device__ void find_windows() const {
    for (int slot = 0; slot < most; slot += ROUND) {
      int low = strips.edge_ptr[graph], high = strips.edge_ptr[graph + 1];
      if constexpr (Edge::has_windows) {
        Entry theirs[ROUND];
        load_slots(slot, theirs);
        const Window<T> window = window_of<Edge>(theirs, 0, degree - slot, problem.reach);
        while (low < high && Edge::key(bonds()[low].features) < window.low) ++low;
        while (low < high && Edge::key(bonds()[high - 1].features) > window.high) --high;
      }
      const int round = lane / WARP * ROUNDS + slot / ROUND;
      if (lane % WARP == 0) {
        bond_begin[round] = low;
        bond_end[round] = high;
      }
    }
  }

  __device__ const Bond<T, typename Edge::Label>* bonds() const {
    return static_cast<const Bond<T, typename Edge::Label>*>(strips.edges);
  }

  template <int N>
  __device__ void load_slots(int slot, Entry (&theirs)[N]) const {
#pragma unroll
    for (int t = 0; t < N; ++t) {
      const bool used = slot + t < degree;
      theirs[t] = static_cast<const Entry*>(problem.entries)[used ? first_entry + slot + t : 0];
      theirs[t].column = used ? begin + theirs[t].column : lane;
      if (!used) theirs[t].weight = 0;
    }
  }

  // What another lane of the strip has in a row of a vector, of which the own number is given.
  __device__ T gather(const T* vector, int row, T own, int column) const {
    if constexpr (WARPS == 1) return __shfl_sync(ALL, own, column);
    else return vector[row * LANES + column];
  }

  // out += W p, over the arcs from one to another.
  __device__ void push_arcs(int arc, int last, T* out) const {
    Entry theirs[SLOTS];
    load_slots(0, theirs);
    T weight[SLOTS] = {}, product = 0;
    const Arc<T>* const arcs = static_cast<const Arc<T>*>(strips.edges);
    Arc<T> next = arcs[arc < last ? arc : 0];
    for (; arc < last; ++arc) {
      const Arc<T> own = next;
      next = arcs[arc + 1 < last ? arc + 1 : arc];  // on its way while this one is added
      if constexpr (Edge::is_table) {
        if (own.code >= 0) {
#pragma unroll
          for (int t = 0; t < SLOTS; ++t)
            weight[t] = theirs[t].weight * edge.value(own.code, theirs[t].label());
        }
      }
      if (own.source >= 0) {
        const T p_i = p[own.source * LANES + lane];
        product = 0;
#pragma unroll
        for (int t = 0; t < SLOTS; ++t)
          product += weight[t] * gather(p, own.source, p_i, theirs[t].column);
      }
      out[own.target * LANES + lane] += own.weight * product;
    }
  }

  // y += W p, over all bonds. SLOTS entries of the lane's node stay in registers; those of a round
  // meet only the bonds in their window.
  __device__ void push_bonds() const {
    constexpr int N = SLOTS / ROUND;
    for (int slot = 0; slot < most; slot += SLOTS) {
      Entry theirs[SLOTS];
      load_slots(slot, theirs);
      int low[N], high[N], b = 0, last = 0;
#pragma unroll
      for (int r = 0; r < N; ++r) {
        const bool used = slot + r * ROUND < most;
        const int round = lane / WARP * ROUNDS + slot / ROUND + r;
        low[r] = used ? bond_begin[round] : 0;
        high[r] = used ? bond_end[round] : 0;
        if (low[r] < high[r]) {
          b = last == 0 ? low[r] : min(b, low[r]);
          last = max(last, high[r]);
        }
      }
      auto next = bonds()[b];
      for (; b < last; ++b) {
        const auto own = next;
        next = bonds()[b + 1 < last ? b + 1 : b];  // on its way while this one is added
        const T p_i = p[own.i * LANES + lane], p_j = p[own.j * LANES + lane];
        T at_i = 0, at_j = 0;
#pragma unroll
        for (int r = 0; r < N; ++r) {
          if (b < low[r] || b >= high[r]) continue;  // for all lanes of the warp
#pragma unroll
          for (int t = r * ROUND; t < (r + 1) * ROUND; ++t) {
            const T value = theirs[t].weight * edge.value(own.features, theirs[t].label());
            at_i += value * gather(p, own.j, p_j, theirs[t].column);
            at_j += value * gather(p, own.i, p_i, theirs[t].column);
          }
        }
        v.y[own.i * LANES + lane] += own.weight * at_i;
        v.y[own.j * LANES + lane] += own.weight * at_j;
      }
    }
  }

  // y = W p from black rows to red ones, or between all rows where none is black.
  __device__ void push_to_red() const {
#pragma unroll 2  // more would cost registers, which run short
    for (int i = 0; i < n_red; ++i) v.y[i * LANES + lane] = 0;
    if constexpr (Edge::is_table)
      push_arcs(n_red < n_rows ? strips.edge_half[graph] : strips.edge_ptr[graph],
                strips.edge_ptr[graph + 1], v.y);
    else push_bonds();
  }

  // p = Z^-1 W p from red rows to black ones; returns the sum of start p over the latter.
  __device__ T push_to_black() const {
#pragma unroll 2
    for (int i = n_red; i < n_rows; ++i) p[i * LANES + lane] = 0;
    push_arcs(strips.edge_ptr[graph], strips.edge_half[graph], p);
    T sum = 0;
#pragma unroll 2
    for (int i = n_red; i < n_rows; ++i) {
      const int at = i * LANES + lane;
      p[at] *= inverse(v.diagonal[at]);
      sum += start[i] * p[at];
    }
    return sum;
  }

  // Call f(a, b, at) for each row of the lane's column: nodes of G and of G', and their place.
  template <class F>
  __device__ void each(F f) const {
    if (pair < 0) return;
    for (int i = 0; i < n_rows; ++i) f(strips.row_node[first + i], column, i * LANES + lane);
  }

  // Sum over the pair; which lane writes it.
  __device__ double sum(double value) const { return segment_sum(value); }
  __device__ bool leads() const { return pair >= 0 && lane == begin; }
};

}  // namespace mgk
