// SPDX-License-Identifier: BSD-3-Clause
// The linear system of a pair of graphs by the techniques of the paper, each of which can be left out:
//
//   Z = diag(D/V) - W,   K = sum p p' x,   Z x = f f'.
//
// W is multiplied by a vector either from a matrix that the block wrote before (`MatrixPair`) or tile
// by tile (`TilePair`). Z, vectors and owners are those of `Pair`; all vectors lie in the workspace.
// A block solves one pair at a time. It takes a fixed share of the list, or the next pair when it is
// done.

#pragma once

#include "octile.cuh"
#include "pair.cuh"
#include "pcg.cuh"
#include "solve.cuh"

namespace mgk {

// Product matrices of all pairs of a launch, in rows (i, i2) of d_i d_i2 entries.
template <typename T>
struct Matrices {
  const Index* base;  // (n_pairs) first entry of each pair
  T* values;          // (n_entries) A_ij A'_i2j2 k_e(ij, i2j2)
  int* columns;       // (n_entries) place of (j, j2) in a vector
};

// What operators read besides the problem; one of the two is empty.
template <typename T>
struct Operands {
  Octiles octiles;
  Matrices<T> matrices;
};

// A pair with all vectors in the workspace, of which no rows are eliminated.
template <typename T, class Node, class Edge>
using WholePair = Pair<T, Node, Edge, ROUND, false, BlockTeam>;

// W as a matrix of compressed rows. 8 lanes share a row.
template <typename T, class Node, class Edge>
struct MatrixPair : WholePair<T, Node, Edge> {
  static constexpr int LANES = 8;

  T* const values;
  int* const columns;

  __device__ MatrixPair(BlockTeam& team, const Problem<T>& problem, const Operands<T>& operands, int g, int h, Index k,
                        T* memory, T* p_memory)
      : WholePair<T, Node, Edge>(team, problem, g, h, memory, p_memory),
        values(operands.matrices.values + operands.matrices.base[k]),
        columns(operands.matrices.columns + operands.matrices.base[k]) {}

  // Call f(i, i2, lane) for each row of W, by its lanes; those past the last row get row (0, 0) too,
  // and are told that they are not inside.
  template <class F>
  __device__ void each_row(F f) const {
    const int n_columns = this->owned.n_columns, n_rows = this->owned.n_rows * n_columns;
    for (int begin = 0; begin < n_rows; begin += blockDim.x / LANES) {
      const int row = begin + threadIdx.x / LANES;
      const bool inside = row < n_rows;
      f(inside ? row / n_columns : 0, inside ? row % n_columns : 0, threadIdx.x % LANES, inside);
    }
  }

  __device__ void prepare() {
    WholePair<T, Node, Edge>::prepare();
    each_row([&](int i, int i2, int lane, bool inside) {
      if (!inside) return;
      const int begin = from(i), begin2 = from2(i2), count2 = from2(i2 + 1) - begin2;
      const int n_entries = (from(i + 1) - begin) * count2;
      for (int m = lane; m < n_entries; m += LANES) {
        const auto own = this->entries()[begin + m / count2];
        const auto theirs = this->entries()[begin2 + m % count2];
        const T value = this->edge.value(own.label(), theirs.label());
        values[first_entry(i, i2) + m] = own.weight * theirs.weight * value;
        columns[first_entry(i, i2) + m] = own.column * this->owned.ld + theirs.column;
      }
    });
    __syncthreads();  // the matrix is complete
  }

  // y = W p in all rows.
  __device__ void multiply(Rows) const {
    each_row([&](int i, int i2, int lane, bool inside) {
      T sum = 0;
      if (inside) {
        const Index begin = first_entry(i, i2);
        const int n_entries = (from(i + 1) - from(i)) * (from2(i2 + 1) - from2(i2));
        for (int m = lane; m < n_entries; m += LANES)
          sum += values[begin + m] * this->v.p[columns[begin + m]];
      }
      for (int step = LANES / 2; step > 0; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
      if (inside && lane == 0) this->v.y[i * this->owned.ld + i2] = sum;
    });
    __syncthreads();  // owners of y are others than its writers
  }

 private:
  __device__ int from(int i) const { return this->problem.row_ptr[this->first + i]; }
  __device__ int from2(int i2) const { return this->problem.row_ptr[this->second + i2]; }

  // Rows (i, i2) before this one hold so many entries.
  __device__ Index first_entry(int i, int i2) const {
    const Index count = from(i + 1) - from(i), all2 = from2(this->owned.n_columns) - from2(0);
    return (from(i) - from(0)) * all2 + count * (from2(i2) - from2(0));
  }
};

// W from tiles of both adjacency matrices, N_WARPS warps a block. COMPACT: tiles are stored without
// their empty cells, and products are chosen by the numbers of edges. SHARING: N_WARPS warps load
// N_WARPS tiles of both graphs together for N_WARPS^2 products; otherwise each warp loads its own.
template <typename T, class Node, class Edge, int N_WARPS, bool COMPACT, bool SHARING>
struct TilePair : WholePair<T, Node, Edge> {
  using Label = typename Edge::Label;

  struct Stage {
    Tile<T, Label> tiles[N_WARPS];   // [warp] of G
    Tile<T, Label> tiles2[N_WARPS];  // [warp] of G'
    T source[N_WARPS][AREA];         // [warp][j][j2] what the warp multiplies by
  };
  static_assert(sizeof(Stage) <= (46 << 10), "labels are too long for so many warps of a block");

  const Octiles& octiles;
  const Index begin, begin2;  // first tiles
  const int count, count2;    // numbers of tiles

  __device__ TilePair(BlockTeam& team, const Problem<T>& problem, const Operands<T>& operands, int g, int h, Index,
                      T* memory, T* p_memory)
      : WholePair<T, Node, Edge>(team, problem, g, h, memory, p_memory),
        octiles(operands.octiles),
        begin(octiles.tile_ptr[g]), begin2(octiles.tile_ptr[h]),
        count(int(octiles.tile_ptr[g + 1] - begin)), count2(int(octiles.tile_ptr[h + 1] - begin2)) {}

  // y = W p in all rows.
  __device__ void multiply(Rows) const {
    __shared__ Stage stage;
    this->owned.each(ALL_ROWS, [&](int, int, int at) { this->v.y[at] = 0; });
    __syncthreads();  // y is 0 before anyone adds to it
    if constexpr (SHARING)
      multiply_together(stage);
    else
      multiply_apart(stage);
    __syncthreads();  // y is complete
  }

 private:
  // Warps take every N_WARPS-th pair of tiles.
  __device__ void multiply_apart(Stage& stage) const {
    const int warp = threadIdx.x / WARP;
    Tile<T, Label>&a = stage.tiles[warp], &b = stage.tiles2[warp];
    int loaded = -1;
    for (Index m = warp; m < Index(count) * count2; m += N_WARPS) {
      const int t = int(m / count2);
      if (t != loaded) load_tile<Edge, COMPACT>(a, octiles, begin + t);
      loaded = t;
      load_tile<Edge, COMPACT>(b, octiles, begin2 + m % count2);
      __syncwarp();  // the tiles are complete
      multiply_one(stage.source[warp], a, b);
    }
  }

  // The block takes N_WARPS tiles of G and N_WARPS tiles of G' at a time.
  __device__ void multiply_together(Stage& stage) const {
    const int warp = threadIdx.x / WARP;
    for (int t = 0; t < count; t += N_WARPS) {
      const int n = min(N_WARPS, count - t);
      for (int t2 = 0; t2 < count2; t2 += N_WARPS) {
        const int n2 = min(N_WARPS, count2 - t2);
        if (t2 == 0 && warp < n) load_tile<Edge, COMPACT>(stage.tiles[warp], octiles, begin + t + warp);
        if (warp < n2) load_tile<Edge, COMPACT>(stage.tiles2[warp], octiles, begin2 + t2 + warp);
        __syncthreads();  // the tiles are complete
        for (int m = warp; m < n * n2; m += N_WARPS)
          multiply_one(stage.source[warp], stage.tiles[m / n2], stage.tiles2[m % n2]);
        __syncthreads();  // all are done with the tiles
      }
    }
  }

  // Load the part of p that a pair of tiles is multiplied by, and add the product to y.
  __device__ void multiply_one(T* part, const Tile<T, Label>& a, const Tile<T, Label>& b) const {
    const int ld = this->owned.ld;
    for (int cell = threadIdx.x % WARP; cell < AREA; cell += WARP) {
      const int j = a.column + cell / SIDE, j2 = b.column + cell % SIDE;
      const bool inside = j < this->owned.n_rows && j2 < this->owned.n_columns;
      part[cell] = inside ? this->v.p[j * ld + j2] : T(0);
    }
    __syncwarp();  // the part is complete
    const auto add = [&](int i, int i2, T sum) {
      // Other warps add to the same rows. Tiles without an edge in a row have nothing to add there,
      // so that rows behind the last node are never written.
      if (sum != 0) atomicAdd(this->v.y + (a.row + i) * ld + b.row + i2, sum);
    };
    if constexpr (COMPACT)
      multiply_adaptively(this->edge, int(octiles.most_sparse), a, b, part, add);
    else
      multiply_tiles<false, false>(this->edge, a, b, part, add);
    __syncwarp();  // all lanes are done with the part, and with the tiles where they are its own
  }
};

// Solve the pairs of a list; without a counter of items taken, block b takes the pairs b,
// b + gridDim.x and so on.
template <typename T, class Operator>
__device__ void solve_list(const Problem<T>& problem, const Operands<T>& operands, const Work& work,
                           const Results& results) {
  __shared__ Index taken;
  BlockTeam team;
  T* const memory = static_cast<T*>(work.workspace) + blockIdx.x * work.stride;
  for (Index k = blockIdx.x;; k += gridDim.x) {
    if (work.next) {
      if (threadIdx.x == 0) taken = atomicAdd(reinterpret_cast<unsigned long long*>(work.next), 1ull);
      __syncthreads();  // the number of the pair is known
      k = taken;
      __syncthreads();  // all have read it
    }
    if (k >= work.n_items) return;
    const int g = work.first[k], h = work.second[k];
    T* const vectors = memory + matrix_size(problem, g, h);
    Operator pair(team, problem, operands, g, h, k, vectors, memory);
    pair.prepare();
    const End end = conjugate_gradients(pair, problem.flow, pair.v.x);
    if (problem.min_steps == 1) drop_first_step(pair);
    store(pair, k, finish(pair, k, results), end, results);  // also ends the use of the memory
  }
}

}  // namespace mgk
