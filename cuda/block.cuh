// SPDX-License-Identifier: BSD-3-Clause
// The threads of a block and the matrix of a pair: a row for each node of G, a column for each node
// of G'.
//
// 32 adjacent columns are a group. Where there are more warps than groups, the warps are shared out
// in proportion to the work of a row in each group, and a warp owns every row_step-th row of its
// group; otherwise a warp owns whole groups. A lane owns one column.

#pragma once

#include "problem.cuh"

namespace mgk {

constexpr int MAX_WARPS = 32;

// Columns of a matrix in whole groups.
__device__ inline int round_up(int n_columns) { return (n_columns + WARP - 1) / WARP * WARP; }

struct Owned {
  int n_rows, n_columns, n_groups;
  int ld;  // columns, rounded up to whole groups
  int lane, first_group, group_step, first_row, row_step;

  // work(group): cost of a row in a group.
  template <class F>
  __device__ Owned(int n_rows, int n_columns, F work)
      : n_rows(n_rows), n_columns(n_columns), n_groups((n_columns + WARP - 1) / WARP),
        ld(round_up(n_columns)), lane(threadIdx.x % WARP) {
    const int warp = threadIdx.x / WARP, n_warps = blockDim.x / WARP;
    first_group = warp;
    group_step = n_warps;
    first_row = 0;
    row_step = 1;
    if (n_warps <= n_groups) return;
    int total = 0;
    for (int group = 0; group < n_groups; ++group) total += work(group);
    // Each group gets one warp, and its part of the others.
    int end = 0;
    for (first_group = 0; first_group < n_groups; ++first_group) {
      row_step = 1 + (n_warps - n_groups) * work(first_group) / total;
      first_row = warp - end;
      end += row_step;
      if (warp < end) break;  // past the last group the warp owns nothing
    }
    group_step = n_groups;
  }

  // Call f(i, column, place) for each entry in rows lo to hi that this thread owns.
  template <class F>
  __device__ void each(int lo, int hi, F f) const {
    for (int group = first_group; group < n_groups; group += group_step) {
      const int column = group * WARP + lane;
      if (column >= n_columns) continue;
      for (int i = lo + first_row; i < hi; i += row_step) f(i, column, i * ld + column);
    }
  }

  // The same for all rows. Who owns an entry depends on the rows given: call with the same ones.
  template <class F>
  __device__ void each(F f) const {
    each(0, n_rows, f);
  }
};

// Sum over all threads of the block, the same number in each and in every run: the order is fixed.
__device__ inline double block_sum(double value) {
  __shared__ double partial[MAX_WARPS];  // [warp]
  for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL, value, step);
  if (threadIdx.x % WARP == 0) partial[threadIdx.x / WARP] = value;
  __syncthreads();  // the partial sums are written
  double total = 0;
  for (int warp = 0; warp < blockDim.x / WARP; ++warp) total += partial[warp];
  __syncthreads();  // all have read them: the next sum may overwrite
  return total;
}

}  // namespace mgk
