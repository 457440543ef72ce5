// SPDX-License-Identifier: BSD-3-Clause
// Kernel values of small graphs: a warp for one graph G along the rows and several graphs G' side by
// side on its lanes, a *strip*; or several warps for one larger G'.
//
//   Z x = f f',   K = sum p p' x.
//
// All lanes run through the same entries of G, so that they never part; a lane holds the entries of
// its node of G' in registers. Directions lie in shared memory as [row][lane], where a gather along
// a row has no bank conflicts; residual and diagonal lie in registers, row by row. The pairs of a
// strip are *segments* of lanes, each with its own step lengths and its own end.
//
// Rows of a bipartite G are sorted by colour, and the black ones are eliminated: the rest of the
// system,  (Z_r - W_rb Z_b^-1 W_br) x_r = b_r + W_rb Z_b^-1 b_b,  needs half the iterations for the
// same product. K is added up along the way from the directions, so that x is never stored.

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
};

template <typename T, class Node, class Edge, int WARPS, int ROWS, int SLOTS>
struct Strip {
  using Entry = typename Edge::Entry;
  static constexpr int LANES = WARPS * WARP;
  static constexpr int ROUNDS = WARP;  // most rounds of slots

  const Problem<T>& problem;
  const Strips& strips;
  const Edge edge;
  T* const p;  // [ROWS][LANES]
  T* const y;  // [ROWS][LANES] a lane reads and writes its own column only
  T* const start;         // [ROWS] starting probability of each row
  T* const partial;       // [WARPS] sums of the warps
  int* const bond_begin;  // [WARPS][ROUNDS] first bond in the window of each round of slots
  int* const bond_end;    // [WARPS][ROUNDS] and the one after its last
  const int lane = threadIdx.x % LANES;
  int pair = -1;            // pair of the lane; -1 where it has none
  int begin = 0, end = 0;   // lanes of its segment
  int node = 0;             // its node
  int first_entry = 0, degree = 0, most = 0;  // its entries; the most of any lane
  int graph, first, n_rows, n_red;

  __device__ Strip(const Problem<T>& problem, const Strips& strips, T* memory)
      : problem(problem), strips(strips), edge(problem.edge), p(memory), y(memory + ROWS * LANES),
        start(y + ROWS * LANES), partial(start + ROWS),
        bond_begin(reinterpret_cast<int*>(partial + (WARPS + 1) / 2 * 2)),
        bond_end(bond_begin + WARPS * ROUNDS) {}

  // Shared memory of a strip.
  static constexpr int bytes = (2 * ROWS * LANES + ROWS + (WARPS + 1) / 2 * 2) * sizeof(T) +
                               2 * WARPS * ROUNDS * sizeof(int);

  // Wait for all lanes of the strip.
  __device__ static void wait() {
    if constexpr (WARPS == 1) __syncwarp();
    else __syncthreads();
  }

  // Sum over the lanes of the segment, the same in each of them and in every run.
  __device__ T segment_sum(T value) const {
    if constexpr (WARPS == 1) {
      for (int step = 1; step < WARP; step *= 2) {
        const T other = __shfl_down_sync(ALL, value, step);
        if (lane + step < end) value += other;
      }
      return __shfl_sync(ALL, value, begin);
    } else {
      for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL, value, step);
      if (lane % WARP == 0) partial[lane / WARP] = value;
      __syncthreads();  // the sums of all warps are there
      T total = 0;
      for (int warp = 0; warp < WARPS; ++warp) total += partial[warp];
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
        node = start + lane - at;
      }
      at += size;
    }
    first_entry = pair >= 0 ? problem.row_ptr[node] : 0;
    degree = pair >= 0 ? problem.row_ptr[node + 1] - first_entry : 0;
    most = degree;
    for (int step = WARP / 2; step > 0; step /= 2) most = max(most, __shfl_xor_sync(ALL, most, step));
    if (lane < n_rows) start[lane] = problem.start[strips.row_node[first + lane]];
    if constexpr (!Edge::is_table) find_windows();
    wait();  // starts and windows are known to all lanes
  }

  // Bonds are sorted by key: find those that each round of slots needs.
  __device__ void find_windows() const {
    for (int slot = 0; slot < most; slot += SLOTS) {
      int low = strips.edge_ptr[graph], high = strips.edge_ptr[graph + 1];
      if constexpr (Edge::has_windows) {
        Entry theirs[SLOTS];
        load_slots(slot, theirs);
        const Window<T> window = window_of<Edge>(theirs, min(degree - slot, SLOTS), problem.reach);
        while (low < high && Edge::key(bonds()[low].features) < window.low) ++low;
        while (low < high && Edge::key(bonds()[high - 1].features) > window.high) --high;
      }
      const int round = lane / WARP * ROUNDS + slot / SLOTS;
      if (lane % WARP == 0) {
        bond_begin[round] = low;
        bond_end[round] = high;
      }
    }
  }

  __device__ const Bond<T, typename Edge::Label>* bonds() const {
    return static_cast<const Bond<T, typename Edge::Label>*>(strips.edges);
  }

  __device__ void load_slots(int slot, Entry* theirs) const {
#pragma unroll
    for (int t = 0; t < SLOTS; ++t) {
      const bool used = slot + t < degree;
      theirs[t] = static_cast<const Entry*>(problem.entries)[used ? first_entry + slot + t : 0];
      theirs[t].column = used ? begin + theirs[t].column : lane;
      if (!used) theirs[t].weight = 0;
    }
  }

  // y += W p, over the arcs from one to another.
  __device__ void push_arcs(int arc, int last) const {
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
        product = 0;
#pragma unroll
        for (int t = 0; t < SLOTS; ++t) product += weight[t] * p[own.source * LANES + theirs[t].column];
      }
      y[own.target * LANES + lane] += own.weight * product;
    }
  }

  // y += W p, over all bonds.
  __device__ void push_bonds() const {
    for (int slot = 0; slot < most; slot += SLOTS) {
      Entry theirs[SLOTS];
      load_slots(slot, theirs);
      const int round = lane / WARP * ROUNDS + slot / SLOTS;
      const int last = bond_end[round];
      auto next = bonds()[bond_begin[round] < last ? bond_begin[round] : 0];
      for (int b = bond_begin[round]; b < last; ++b) {
        const auto own = next;
        next = bonds()[b + 1 < last ? b + 1 : b];  // on its way while this one is added
        T at_i = 0, at_j = 0;
#pragma unroll
        for (int t = 0; t < SLOTS; ++t) {
          const T value = theirs[t].weight * edge.value(own.features, theirs[t].label());
          at_i += value * p[own.j * LANES + theirs[t].column];
          at_j += value * p[own.i * LANES + theirs[t].column];
        }
        y[own.i * LANES + lane] += own.weight * at_i;
        y[own.j * LANES + lane] += own.weight * at_j;
      }
    }
  }

  __device__ void push(bool from_red) const {
    if constexpr (Edge::is_table) {
      const int half = strips.edge_half[graph];
      push_arcs(from_red ? strips.edge_ptr[graph] : half, from_red ? half : strips.edge_ptr[graph + 1]);
    } else {
      push_bonds();
    }
  }

  __device__ static T inverse(T diagonal) { return diagonal > 0 ? T(1) / diagonal : T(0); }

  // Solve the system of each segment; returns K of the lane's segment.
  __device__ End solve(double& value) {
    const Node node_kernel(problem.node);
    const T column_flow = pair >= 0 ? problem.flow[node] : T(0);
    const T column_start = pair >= 0 ? problem.start[node] : T(0);
    const T column_degree = pair >= 0 ? problem.degree[node] : T(0);
    const bool has_black = n_red < n_rows;
    T diagonal[ROWS], r[ROWS];
    const auto label = node_kernel.load(node);
    T sum = 0, known = 0;
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      diagonal[i] = r[i] = 0;
      y[i * LANES + lane] = 0;
      p[i * LANES + lane] = 0;
      if (i < n_rows) {
        const int row = strips.row_node[first + i];
        const T v = node_kernel.value(node_kernel.load(row), label);
        if (pair >= 0 && v > T(problem.tiny)) diagonal[i] = problem.degree[row] * column_degree / v;
        const T b = problem.flow[row] * column_flow, scaled = inverse(diagonal[i]) * b;
        sum += b * scaled;
        r[i] = b;
        if (i >= n_red) {
          p[i * LANES + lane] = scaled;
          known += start[i] * scaled;
        }
      }
    }
    const T goal = T(problem.tol * problem.tol) * segment_sum(sum);
    value = segment_sum(known * column_start);
    if (has_black) {
      wait();  // the black rows of p are complete
      push(false);
      wait();  // all have read p
    }
    sum = 0;
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      if (i < n_red) {
        r[i] += y[i * LANES + lane];
        const T z = inverse(diagonal[i]) * r[i];
        p[i * LANES + lane] = z;
        sum += r[i] * z;
      }
    }
    T rz = segment_sum(sum);
    End result = {CONVERGED, 0};
    // With several warps there is one segment, and all lanes agree.
    bool active = (WARPS > 1 || pair >= 0) && rz > goal;
    while (WARPS == 1 ? __any_sync(ALL, active) : active) {
      wait();  // p is complete
      if (has_black) {
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
          if (i >= n_red && i < n_rows) y[i * LANES + lane] = 0;
        push(true);
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
          if (i >= n_red && i < n_rows)
            p[i * LANES + lane] = inverse(diagonal[i]) * y[i * LANES + lane];
        wait();  // the black rows of p are complete
      }
#pragma unroll
      for (int i = 0; i < ROWS; ++i)
        if (i < n_red) y[i * LANES + lane] = 0;
      push(!has_black);
      T curvature = 0, weighted = 0;
#pragma unroll
      for (int i = 0; i < ROWS; ++i) {
        if (i < n_rows) {
          const T own = p[i * LANES + lane];
          weighted += start[i] * own;
          if (i < n_red) curvature += own * (diagonal[i] * own - y[i * LANES + lane]);
        }
      }
      curvature = segment_sum(curvature);
      weighted = segment_sum(weighted * column_start);
      if (active && result.iterations == problem.max_iter) {
        result.outcome = STEP_LIMIT;
        active = false;
      } else if (active && !(curvature > 0)) {
        result.outcome = BREAKDOWN;
        active = false;
      }
      const T alpha = active ? rz / curvature : T(0);
      if (active) value += double(alpha) * weighted;
      sum = 0;
#pragma unroll
      for (int i = 0; i < ROWS; ++i) {
        if (i < n_red) {
          r[i] -= alpha * (diagonal[i] * p[i * LANES + lane] - y[i * LANES + lane]);
          sum += r[i] * r[i] * inverse(diagonal[i]);
        }
      }
      const T next = segment_sum(sum);
      const T beta = active ? next / rz : T(0);
      if (active) {
        rz = next;
        ++result.iterations;
        active = rz > goal;
      }
      wait();  // all have read p
#pragma unroll
      for (int i = 0; i < ROWS; ++i)
        if (i < n_red)
          p[i * LANES + lane] = inverse(diagonal[i]) * r[i] + beta * p[i * LANES + lane];
    }
    if (!isfinite(rz) || !isfinite(goal)) result.outcome = NOT_FINITE;
    return result;
  }
};

template <typename T, class Node, class Edge, int WARPS, int ROWS, int SLOTS>
__device__ void solve_strips(const Problem<T>& problem, const Strips& strips, const Work& work,
                             const Results<T>& results) {
  using Own = Strip<T, Node, Edge, WARPS, ROWS, SLOTS>;
  extern __shared__ double dynamic[];  // [strips of the block] of what `Strip` points to
  __shared__ Index taken;
  char* memory = reinterpret_cast<char*>(dynamic) + threadIdx.x / Own::LANES * Own::bytes;
  Own strip(problem, strips, reinterpret_cast<T*>(memory));
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
    double value;
    const End end = strip.solve(value);
    if (strip.pair >= 0 && strip.lane == strip.begin) {
      results.values[strip.pair] = value;
      results.outcome[strip.pair] =
          end.outcome == CONVERGED && !isfinite(value) ? NOT_FINITE : end.outcome;
      results.iterations[strip.pair] = end.iterations;
    }
    Own::wait();  // the strip is done with
  }
}

}  // namespace mgk
