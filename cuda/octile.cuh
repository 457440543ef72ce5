// SPDX-License-Identifier: BSD-3-Clause
// The product of two octiles, 8 x 8 tiles of the adjacency matrices of G and G', by one warp:
//
//   y_(i,i2) += sum_(j,j2) A_ij A'_i2j2 k_e(ij, i2j2) p_(j,j2),   i, j, i2, j2 from 0 to 7.
//
// A lane owns the sums of two rows (i, i2) of this product and adds them to y when they are
// complete. Tiles and the part of p lie in shared memory, where the warp, or the block, put them.

#pragma once

#include "problem.cuh"

namespace mgk {

constexpr int SIDE = 8;
constexpr int AREA = SIDE * SIDE;
static_assert(AREA == 2 * WARP, "a lane loads two cells of a tile and owns two rows of a product");

// Tiles of all graphs, sorted by graph, row and column. Filled by sklearn_mgk/solver/techniques.py.
struct Octiles {
  const Index* tile_ptr;             // (n_graphs + 1) first tile of each graph
  const int* row;                    // (n_tiles) place within the graph, in units of 8 nodes
  const int* column;                 // (n_tiles)
  const unsigned long long* bitmap;  // (n_tiles) bit 8 r + c is set where cell (r, c) holds an edge
  const Index* entry_ptr;            // (n_tiles + 1) first edge of each tile
  const void* entries;  // edges in the order of their bits, or all 64 cells of each tile
  Index most_sparse;    // edges up to which a tile counts as sparse
};

template <typename T, class Label>
struct Tile {
  T weight[AREA];     // [row][column] 0 where there is no edge
  Label label[AREA];  // [row][column]
  unsigned long long bitmap;
  int row, column;  // first node of G along the rows and the columns

  __device__ unsigned cells_of_row(int i) const { return unsigned(bitmap >> (SIDE * i)) & 0xffu; }
};

// Expand tile number t in shared memory, by a warp. COMPACT: only cells that hold an edge are stored.
template <class Edge, bool COMPACT, typename T>
__device__ void load_tile(Tile<T, typename Edge::Label>& tile, const Octiles& octiles, Index t) {
  using Entry = typename Edge::Entry;
  const Entry* const entries = static_cast<const Entry*>(octiles.entries);
  const unsigned long long bitmap = octiles.bitmap[t];
  const int lane = threadIdx.x % WARP;
  for (int cell = lane; cell < AREA; cell += WARP) {
    Entry entry = {};
    if constexpr (COMPACT) {
      const unsigned long long before = bitmap & ((1ull << cell) - 1);
      if (bitmap >> cell & 1) entry = entries[octiles.entry_ptr[t] + __popcll(before)];
    } else {
      entry = entries[t * AREA + cell];
    }
    tile.weight[cell] = entry.weight;
    tile.label[cell] = entry.label();
  }
  if (lane == 0) {
    tile.bitmap = bitmap;
    tile.row = SIDE * octiles.row[t];
    tile.column = SIDE * octiles.column[t];
  }
}

// Call f(j) for the cells of a row: those that hold an edge, or all 8.
template <bool SPARSE, class F>
__device__ void each_cell(unsigned cells, F f) {
  if constexpr (SPARSE) {
    for (; cells; cells &= cells - 1) f(__ffs(cells) - 1);
  } else {
#pragma unroll
    for (int j = 0; j < SIDE; ++j) f(j);
  }
}

// A row of a tile of G': a dense one is kept in registers, a sparse one is read where it lies.
template <bool SPARSE, typename T, class Label>
struct TileRow {
  const Tile<T, Label>& tile;
  const int begin;  // its first cell
  __device__ TileRow(const Tile<T, Label>& tile, int i) : tile(tile), begin(SIDE * i) {}
  __device__ T weight(int j) const { return tile.weight[begin + j]; }
  __device__ const Label& label(int j) const { return tile.label[begin + j]; }
};

template <typename T, class Label>
struct TileRow<false, T, Label> {
  T weights[SIDE];
  Label labels[SIDE];
  __device__ TileRow(const Tile<T, Label>& tile, int i) {
#pragma unroll
    for (int j = 0; j < SIDE; ++j) {
      weights[j] = tile.weight[SIDE * i + j];
      labels[j] = tile.label[SIDE * i + j];
    }
  }
  __device__ T weight(int j) const { return weights[j]; }
  __device__ const Label& label(int j) const { return labels[j]; }
};

// The product of one warp; SPARSE and SPARSE2 say how the loops go over the tiles of G and of G'.
// p: (8, 8) part of the source; add(i, i2, sum) adds to y.
template <bool SPARSE, bool SPARSE2, class Edge, typename T, class Label, class F>
__device__ void multiply_tiles(const Edge& edge, const Tile<T, Label>& a, const Tile<T, Label>& b,
                               const T* p, F add) {
  const int lane = threadIdx.x % WARP, i2 = lane % SIDE;
  const unsigned cells2 = b.cells_of_row(i2);
  const TileRow<SPARSE2, T, Label> row2(b, i2);
  for (int i = lane / SIDE; i < SIDE; i += WARP / SIDE) {
    const unsigned cells = a.cells_of_row(i);
    if ((SPARSE && cells == 0) || (SPARSE2 && cells2 == 0)) continue;
    T sum = 0;
    each_cell<SPARSE>(cells, [&](int j) {
      const T weight = a.weight[SIDE * i + j];
      if (weight == 0) return;
      T inner = 0;
      each_cell<SPARSE2>(cells2, [&](int j2) {
        if (row2.weight(j2) != 0) {
          const T value = edge.value(a.label[SIDE * i + j], row2.label(j2));
          inner += row2.weight(j2) * value * p[SIDE * j + j2];
        }
      });
      sum += weight * inner;
    });
    add(i, i2, sum);
  }
}

// The same, by the loops that suit the numbers of edges. A choice is the same for all lanes.
template <class Edge, typename T, class Label, class F>
__device__ void multiply_adaptively(const Edge& edge, int most_sparse, const Tile<T, Label>& a,
                                    const Tile<T, Label>& b, const T* p, F add) {
  const bool sparse = __popcll(a.bitmap) <= most_sparse;
  const bool sparse2 = __popcll(b.bitmap) <= most_sparse;
  if (sparse && sparse2)
    multiply_tiles<true, true>(edge, a, b, p, add);
  else if (sparse)
    multiply_tiles<true, false>(edge, a, b, p, add);
  else if (sparse2)
    multiply_tiles<false, true>(edge, a, b, p, add);
  else
    multiply_tiles<false, false>(edge, a, b, p, add);
}

}  // namespace mgk
