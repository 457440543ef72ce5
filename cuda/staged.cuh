// SPDX-License-Identifier: BSD-3-Clause
// The product with W by all blocks of the grid, which reads p from shared memory:
//
//   y_(i,i2) = sum_e w_e sum_e2 w_e2 k_e(e, e2) p_(end of e, end of e2),   e of node i, e2 of node i2.
//
// A block takes a row i of y, or of a part of the columns. It stages the rows of p at the ends of some
// entries e, which stand side by side, so that one load of a lane gets what several products read.
// Then a lane goes through the entries e2 of its column, each of which meets all these e. Lanes read
// the entries of G' from a copy in which those of a warp stand side by side.
//
// An entry of y is summed up by one thread, in a fixed order, whoever takes which row.

#pragma once

#include "block.cuh"
#include "lane_entries.cuh"
#include "pair.cuh"

namespace mgk {

// Numbers that a lane loads from shared memory at a time.
template <typename T>
constexpr int WIDTH = 16 / sizeof(T);

// Slabs of WIDTH rows of p each that are staged at a time, at most.
constexpr int SLABS = 2;

// Units of work for each block, at least, as far as all warps have columns: they are unequal.
constexpr int UNITS = 8;

#ifdef __CUDA_ARCH__
__device__ inline void load_shared(SharedPlace place, float (&out)[4]) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(out[0]), "=f"(out[1]), "=f"(out[2]), "=f"(out[3])
               : "r"(place));
}
__device__ inline void load_shared(SharedPlace place, double (&out)[2]) {
  asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(out[0]), "=d"(out[1]) : "r"(place));
}
__device__ inline void store_shared(SharedPlace place, const float (&in)[4]) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(place), "f"(in[0]), "f"(in[1]),
               "f"(in[2]), "f"(in[3])
               : "memory");
}
__device__ inline void store_shared(SharedPlace place, const double (&in)[2]) {
  asm volatile("st.shared.v2.f64 [%0], {%1, %2};" ::"r"(place), "d"(in[0]), "d"(in[1]) : "memory");
}
#else
template <typename T, int N>
void load_shared(SharedPlace place, T (&out)[N]) {
  memcpy(out, reinterpret_cast<const T*>(place), sizeof(out));
}
template <typename T, int N>
void store_shared(SharedPlace place, const T (&in)[N]) {
  memcpy(reinterpret_cast<T*>(place), in, sizeof(in));
}
#endif

// The product with W of one pair, after its entries are copied.
template <typename T, class Edge>
struct StagedProduct {
  using Entry = typename Edge::Entry;
  using Label = typename Edge::Label;

  Edge edge;
  const Entry* entries;  // of all graphs
  const int* row_ptr;    // (n_rows + 1) first entry of each node of G
  const T* p;            // [rows][ld]
  T* y;                  // [rows][ld]
  int n_columns, n_groups, ld;
  LaneEntries<T, Edge> theirs;
  SharedPlace staged;  // [slab][column][WIDTH] rows of p times weights
  int n_slabs;         // that find room

  // Rows of y, of which there are so many from one on; blocks take the next unit from a counter,
  // of which so many numbers were handed out before. Returns the number of units.
  __device__ int multiply(unsigned* counter, unsigned handed, int begin, int n_rows) const {
    __shared__ unsigned taken;
    const int n_parts = parts(n_rows), n_units = n_rows * n_parts;
    unsigned next = 0;
    if (threadIdx.x == 0) next = atomicAdd(counter, 1u) - handed;
    while (true) {
      if (threadIdx.x == 0) taken = next;
      __syncthreads();  // the number is known, and all are done with what is staged
      const unsigned unit = taken;
      __syncthreads();  // all have read it
      if (unit >= n_units) return n_units;
      if (threadIdx.x == 0) next = atomicAdd(counter, 1u) - handed;  // comes while the block works
      multiply_row(begin + int(unit) / n_parts, int(unit) % n_parts, n_parts);
    }
  }

  // Parts of the columns that are units of their own.
  __device__ int parts(int n_rows) const {
    const int n_warps = blockDim.x / WARP;
    const int wanted = (UNITS * gridDim.x + n_rows - 1) / max(n_rows, 1);
    return max(min(wanted, n_groups / n_warps), 1);
  }

  // One row of y, in one of some parts of the columns.
  __device__ void multiply_row(int i, int part, int n_parts) const {
    const int from = row_ptr[i], to = row_ptr[i + 1];
    const int lo = n_groups * part / n_parts, hi = n_groups * (part + 1) / n_parts;
    T* const sums = y + Index(i) * ld;
    if (from == to) {
      for (int column = lo * WARP + threadIdx.x; column < min(hi * WARP, n_columns);
           column += blockDim.x)
        sums[column] = 0;
    }
    for (int e = from; e < to; e += n_slabs * WIDTH<T>) {
      const int n = min(to - e, n_slabs * WIDTH<T>);
      if (e > from) __syncthreads();  // all are done with what is staged
      if (n > WIDTH<T>) add_entries<SLABS>(e, n, lo, hi, e > from, sums);
      else add_entries<1>(e, n, lo, hi, e > from, sums);
    }
  }

  // What n entries of G from e on bring to groups of columns of a row of y.
  template <int N_SLABS>
  __device__ void add_entries(int e, int n, int lo, int hi, bool adds, T* sums) const {
    stage<N_SLABS>(e, n);
    Label label[N_SLABS * WIDTH<T>];
#pragma unroll
    for (int r = 0; r < N_SLABS * WIDTH<T>; ++r) label[r] = entries[e + min(r, n - 1)].label();
    __syncthreads();  // the rows are staged
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, n_warps = blockDim.x / WARP;
    const T key = Edge::key(entries[e + min(lane, n - 1)].label());
    // There and back, since the first groups have the most entries.
    for (int turn = 0, begin = lo; begin < hi; ++turn, begin += n_warps) {
      const int group = begin + (turn % 2 ? n_warps - 1 - warp : warp);
      if (group >= hi) continue;
      T sum[WIDTH<T>] = {};
      const int end = theirs.first_round[group + 1];
#pragma unroll 1
      for (int round = theirs.first_round[group]; round < end; ++round)
        add_round<N_SLABS>(round, label, key, n, sum);
      T total = 0;
#pragma unroll
      for (int r = 0; r < WIDTH<T>; ++r) total += sum[r];
      const int column = group * WARP + lane;
      if (column < n_columns) sums[column] = adds ? sums[column] + total : total;
    }
  }

  // Stage the rows of p at the ends of n entries of G from e on, times their weights.
  template <int N_SLABS>
  __device__ void stage(int e, int n) const {
    constexpr int N = N_SLABS * WIDTH<T>;
    const T* source[N];
    T weight[N];
#pragma unroll
    for (int r = 0; r < N; ++r) {
      const Entry own = entries[e + min(r, n - 1)];
      source[r] = p + Index(own.column) * ld;
      weight[r] = r < n ? own.weight : T(0);
    }
#pragma unroll 1
    for (int column = threadIdx.x; column < n_columns; column += blockDim.x) {
      T values[N_SLABS][WIDTH<T>];
#pragma unroll
      for (int r = 0; r < N; ++r)
        values[r / WIDTH<T>][r % WIDTH<T>] = weight[r] * source[r][column];
#pragma unroll
      for (int slab = 0; slab < N_SLABS; ++slab) store_shared(staged_at(slab, column), values[slab]);
    }
  }

  __device__ SharedPlace staged_at(int slab, int column) const {
    return staged + SharedPlace(slab * n_columns + column) * SharedPlace(WIDTH<T> * sizeof(T));
  }

  // What a round of entries of the lane's column brings with n entries of G. `key` is that of the
  // entry whose number is the lane's.
  template <int N_SLABS>
  __device__ void add_round(int number, const Label (&label)[N_SLABS * WIDTH<T>], T key, int n,
                            T (&sum)[WIDTH<T>]) const {
    constexpr unsigned FULL = (1u << WIDTH<T>) - 1;
    unsigned needed = (1u << n) - 1;  // the same in all lanes, bit r for entry r
    if constexpr (Edge::has_windows) {
      const Window<T> window = theirs.window(number);
      // Both comparisons at once: the second load shall not wait for the first.
      needed &= __ballot_sync(ALL, bool(int(window.low <= key) & int(key <= window.high)));
    }
    Entry own[ROUND];
    theirs.load(number, own);
#pragma unroll
    for (int slab = 0; slab < N_SLABS; ++slab) {
      const int begin = slab * WIDTH<T>;
      const unsigned these = needed >> begin & FULL;
      if (these == 0) continue;
      T source[ROUND][WIDTH<T>];
#pragma unroll
      for (int t = 0; t < ROUND; ++t) load_shared(staged_at(slab, own[t].column), source[t]);
      if (these == FULL) {
#pragma unroll
        for (int r = 0; r < WIDTH<T>; ++r) add_products(label[begin + r], own, source, r, sum[r]);
      } else {
#pragma unroll
        for (int r = 0; r < WIDTH<T>; ++r)
          if (these >> r & 1) add_products(label[begin + r], own, source, r, sum[r]);
      }
    }
  }

  // What an entry of G brings, by the numbers at its place r in what was loaded.
  __device__ void add_products(const Label& label, const Entry (&own)[ROUND],
                               const T (&source)[ROUND][WIDTH<T>], int r, T& sum) const {
#pragma unroll
    for (int t = 0; t < ROUND; ++t)
      sum += own[t].weight * edge.value(label, own[t].label()) * source[t][r];
  }
};

template <typename T, class Node, class Edge>
struct StagedPair : Pair<T, Node, Edge, ROUND, false, GridTeam> {
  using Base = Pair<T, Node, Edge, ROUND, false, GridTeam>;
  using Base::edge;
  using Base::entries;
  using Base::first;
  using Base::owned;
  using Base::problem;
  using Base::second;
  using Base::team;
  using Base::v;
  using typename Base::Entry;

  LaneEntries<T, Edge> theirs;
  SharedPlace staged;  // where slabs begin
  int n_slabs;         // that find room; 0 for the product of `Pair`

  // There are so many bytes of shared memory, and so many at `spare` in the workspace.
  __device__ StagedPair(GridTeam& team, const Problem<T>& problem, int g, int h, T* memory, T* p,
                        void* shared, Index shared_bytes, void* spare, Index spare_bytes)
      : Base(team, problem, g, h, memory, p), theirs(spare, owned.n_groups) {
    const SharedPlace place = shared_place(shared);
    staged = (place + 15) / 16 * 16;
    n_slabs = int(min(Index(SLABS), (shared_bytes - Index(staged - place)) / slab_bytes()));
    // With fewer columns, most warps would wait.
    if (2 * owned.n_groups < int(blockDim.x) / WARP) n_slabs = 0;
    if (n_slabs > 0) copy_entries(spare_bytes);
  }

  __device__ Index slab_bytes() const { return Index(owned.n_columns) * (WIDTH<T> * sizeof(T)); }

  // Fill `theirs`, if there is room.
  __device__ void copy_entries(Index n_bytes) {
    const int n_warps = blockDim.x / WARP, warp = threadIdx.x / WARP;
    if (theirs.n_bytes(owned.n_groups, 0) > n_bytes) {
      n_slabs = 0;
      return;
    }
    if (team.rank() == 0 && warp == 0) count_rounds();
    team.wait();  // the rounds are counted
    if (theirs.n_bytes(owned.n_groups, theirs.first_round[owned.n_groups]) > n_bytes) {
      n_slabs = 0;
      return;
    }
    for (int group = team.rank() * n_warps + warp; group < owned.n_groups;
         group += team.size() * n_warps)
      copy_group(group);
    team.wait();  // the copy is complete
  }

  __device__ int degree(int column) const {
    return problem.row_ptr[second + column + 1] - problem.row_ptr[second + column];
  }

  // By one warp: write `first_round`, a lane for each group.
  __device__ void count_rounds() const {
    int before = 0;
    for (int begin = 0; begin < owned.n_groups; begin += WARP) {
      const int group = begin + owned.lane;
      int most = 0;
      for (int column = group * WARP; column < min((group + 1) * WARP, owned.n_columns); ++column)
        most = max(most, degree(column));
      const int rounds = (most + ROUND - 1) / ROUND;
      int sum = rounds;  // of this group and of those before
      for (int step = 1; step < WARP; step *= 2) {
        const int other = __shfl_sync(ALL, sum, max(owned.lane - step, 0));
        if (owned.lane >= step) sum += other;
      }
      if (group < owned.n_groups) theirs.first_round[group] = before + sum - rounds;
      before += __shfl_sync(ALL, sum, WARP - 1);
    }
    if (owned.lane == 0) theirs.first_round[owned.n_groups] = before;
  }

  // By one warp.
  __device__ void copy_group(int group) const {
    const int column = group * WARP + owned.lane;
    const bool inside = column < owned.n_columns;
    const int first_entry = inside ? problem.row_ptr[second + column] : 0;
    const int n = inside ? degree(column) : 0, begin = theirs.first_round[group];
    const int end = theirs.first_round[group + 1];
    const bool any_order = (end - begin) * ROUND <= BankOrder::MOST && meet_all(first_entry, n);
    BankOrder order(n);
    for (int k = 0; any_order && k < n; ++k) order.count(entries()[first_entry + k].column);
    for (int round = begin; round < end; ++round) {
      const int slot = (round - begin) * ROUND;
      Entry own[ROUND];
      this->load_slots(first_entry, n, slot, own);
      for (int t = 0; any_order && t < ROUND; ++t) {
        const int bank = order.next_bank();
        for (int k = 0; k < n; ++k) {
          const Entry other = entries()[first_entry + k];
          if (!order.take(k, bank, other.column)) continue;
          own[t] = other;
          break;
        }
      }
      theirs.store(round, own);
      if constexpr (Edge::has_windows) {
        const Window<T> window = window_of<Edge>(own, 0, n - slot, problem.reach);
        if (owned.lane == 0) theirs.window(round) = window;
      }
    }
  }

  // Whether the keys in a group, of whose columns this lane has n sorted entries, are so close that
  // windows leave nothing out.
  __device__ bool meet_all(int first_entry, int n) const {
    if constexpr (!Edge::has_windows) return true;
    T lowest = T(3e38), highest = T(-3e38);
    if (n > 0) {
      lowest = Edge::key(entries()[first_entry].label());
      highest = Edge::key(entries()[first_entry + n - 1].label());
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
      lowest = min(lowest, __shfl_xor_sync(ALL, lowest, step));
      highest = max(highest, __shfl_xor_sync(ALL, highest, step));
    }
    return highest - lowest <= T(problem.reach);
  }

  // y = W p in some rows, complete in all blocks when this returns.
  __device__ void multiply(Rows rows) const {
    if (n_slabs == 0) {
      Base::multiply(rows);
      return;
    }
    const int begin = owned.first_row(rows), n_rows = owned.last_row(rows) - begin;
    const StagedProduct<T, Edge> product = {
        edge, entries(), problem.row_ptr + first, v.p, v.y, owned.n_columns,
        owned.n_groups, owned.ld, theirs, staged, n_slabs};
    team.all_taken(product.multiply(team.counter(), team.handed, begin, n_rows));
    team.wait();
  }
};

}  // namespace mgk
