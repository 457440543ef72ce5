// SPDX-License-Identifier: BSD-3-Clause
// The threads that solve a pair, and what they own of its matrices of a row for each node of G and a
// column for each node of G'.
//
// A team is a block, or all blocks of the grid. Each block of a team of n owns every n-th row. 32
// adjacent columns are a group. Where a block has more warps than groups, the warps are shared out
// in proportion to the work of a row in each group, and a warp owns every row_step-th row of its
// group; otherwise a warp owns whole groups. A lane owns one column.

#pragma once

#include "problem.cuh"

namespace mgk {

constexpr int MAX_WARPS = 32;

// Columns of a matrix in whole groups.
__device__ inline int round_up(int n_columns) { return (n_columns + WARP - 1) / WARP * WARP; }

// Place of a number in shared memory, as instructions take it: from a pointer the compiler would
// compute it anew for every load.
#ifdef __CUDA_ARCH__
using SharedPlace = unsigned;

__device__ inline SharedPlace shared_place(const void* pointer) {
  return SharedPlace(__cvta_generic_to_shared(pointer));
}
__device__ inline void load_shared(SharedPlace place, float& value) {
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(place));
}
__device__ inline void load_shared(SharedPlace place, double& value) {
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(value) : "r"(place));
}
// The same pointer to shared memory, in a register: the compiler no longer knows where it is from.
__device__ inline void* in_register(void* pointer) {
  size_t place = __cvta_generic_to_shared(pointer);
  asm volatile("" : "+l"(place));
  return __cvta_shared_to_generic(place);
}
#else  // tests run threads of the host
using SharedPlace = unsigned long long;

inline SharedPlace shared_place(const void* pointer) { return SharedPlace(pointer); }
inline void* in_register(void* pointer) { return pointer; }
template <typename T>
void load_shared(SharedPlace place, T& value) {
  value = *reinterpret_cast<const T*>(place);
}
#endif

// Sum over the lanes of a warp, the same number in each and in every run: the order is fixed.
__device__ inline double warp_sum(double value) {
  for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL, value, step);
  return value;
}

// The same over all threads of a block.
__device__ inline double block_sum(double value) {
  __shared__ double partial[MAX_WARPS];  // [warp]
  value = warp_sum(value);
  if (threadIdx.x % WARP == 0) partial[threadIdx.x / WARP] = value;
  __syncthreads();  // the partial sums are written
  double total = 0;
  for (int warp = 0; warp < blockDim.x / WARP; ++warp) total += partial[warp];
  __syncthreads();  // all have read them: the next sum may overwrite
  return total;
}

// A block that solves a pair by itself.
struct BlockTeam {
  using Place = int;  // counts the entries of a matrix

  __device__ int rank() const { return 0; }  // of the block
  __device__ int size() const { return 1; }  // blocks
  __device__ bool leads() const { return threadIdx.x == 0; }
  __device__ void wait() { __syncthreads(); }
  __device__ double sum(double value) { return block_sum(value); }
};

// All blocks, which must be resident at once. What a block wrote before it waits, every block reads
// afterwards with ordinary loads: the fences empty the caches of its multiprocessor.
struct GridTeam {
  using Place = Index;

  double* const sums;        // [2][size + 1] sums of the blocks, and a stop where the last is not 0
  unsigned* const arrived;   // arrivals of blocks at a barrier since the start
  const Index* const taken;  // the host asks for a stop by any number but 0
  unsigned expected = 0;     // arrivals at the present barrier
  bool odd = false;          // half of `sums` that is written next
  bool stopped = false;      // whether the host has asked for a stop

  __device__ GridTeam(double* sums, const Index* taken)
      : sums(sums), arrived(reinterpret_cast<unsigned*>(sums + 2 * (gridDim.x + 1))), taken(taken) {}

  __device__ int rank() const { return blockIdx.x; }
  __device__ int size() const { return gridDim.x; }
  __device__ bool leads() const { return blockIdx.x == 0 && threadIdx.x == 0; }

  __device__ void wait() {
    expected += gridDim.x;
    __syncthreads();  // the block has written what it had to
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(arrived, 1u);
      // As a difference, which survives the overflow of the counter.
      while (int(*static_cast<const volatile unsigned*>(arrived) - expected) < 0) __nanosleep(40);
      __threadfence();
    }
    __syncthreads();  // all blocks have arrived
  }

  // Sum over all threads. Not a number from the moment that the host asks for a stop, which ends all
  // iterations. The halves of `sums` take turns: none is overwritten before all have read it.
  __device__ double sum(double value) {
    double* const half = sums + odd * (gridDim.x + 1);
    odd = !odd;
    value = block_sum(value);
    if (threadIdx.x == 0) half[blockIdx.x] = value;
    if (leads()) half[gridDim.x] = *static_cast<const volatile Index*>(taken) != 0;
    wait();
    stopped = half[gridDim.x] != 0;
    value = 0;
    for (int block = threadIdx.x % WARP; block < gridDim.x; block += WARP) value += half[block];
    value = warp_sum(value);
    return stopped ? nan("") : value;
  }
};

template <class Team>
struct Owned {
  using Place = typename Team::Place;

  int n_rows, n_columns, n_groups;
  int ld;  // columns, rounded up to whole groups
  int lane, first_group, group_step, first_row, row_step;

  // work(group): cost of a row in a group.
  template <class F>
  __device__ Owned(const Team& team, int n_rows, int n_columns, F work)
      : n_rows(n_rows), n_columns(n_columns), n_groups((n_columns + WARP - 1) / WARP),
        ld(round_up(n_columns)), lane(threadIdx.x % WARP) {
    share_out(threadIdx.x / WARP, blockDim.x / WARP, work);
    first_row = first_row * team.size() + team.rank();
    row_step *= team.size();
  }

  // Give a warp of a block its groups, and its rows of those that the block owns.
  template <class F>
  __device__ void share_out(int warp, int n_warps, F work) {
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
      for (int i = lo + first_row; i < hi; i += row_step) f(i, column, Place(i) * ld + column);
    }
  }

  // The same for all rows. Who owns an entry depends on the rows given: call with the same ones.
  template <class F>
  __device__ void each(F f) const {
    each(0, n_rows, f);
  }
};

}  // namespace mgk
