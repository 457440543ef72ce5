// SPDX-License-Identifier: BSD-3-Clause
// The threads that solve a pair, and what they own of its matrices of a row for each node of G and a
// column for each node of G'.
//
// A team is a block, or all blocks of the grid. 32 adjacent columns are a group; a lane owns one
// column of it. The warps of a team get equal parts of the work.

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
  unsigned* const arrived;   // arrivals of blocks at a barrier since the start; numbers taken
  const Index* const taken;  // the host asks for a stop by any number but 0
  unsigned expected = 0;     // arrivals at the present barrier
  bool odd = false;          // half of `sums` that is written next
  bool stopped = false;      // whether the host has asked for a stop
  unsigned handed = 0;       // numbers of units that were taken before the present product

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

  // From which blocks take numbers of units of work: those from `handed` on. All are taken when every
  // block has one past the last.
  __device__ unsigned* counter() const { return arrived + 1; }
  __device__ void all_taken(unsigned n_units) { handed += n_units + gridDim.x; }

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

// Rows of a matrix: all, or those that are red, or black.
enum Rows { ALL_ROWS, RED, BLACK };

// What a warp owns: in group after group the rows from one to another. The groups stand one behind
// the other, and every warp of the team gets an equal part of the work.
template <class Team>
struct Owned {
  using Place = typename Team::Place;

  struct Slice {
    int end[2][2];  // [first, one after the last][group, row]
  };

  int n_rows, n_red, n_columns, n_groups;
  int ld;  // columns, rounded up to whole groups
  int lane;
  const Slice* slices;  // [Rows] in shared memory

  // work(group): cost of a unit of rows in a group; cost(i): units of the rows before row i.
  template <class Work, class Cost>
  __device__ Owned(const Team& team, int n_rows, int n_red, int n_columns, Work work, Cost cost)
      : n_rows(n_rows), n_red(n_red), n_columns(n_columns),
        n_groups((n_columns + WARP - 1) / WARP), ld(round_up(n_columns)),
        lane(threadIdx.x % WARP) {
    __shared__ Slice shared[MAX_WARPS][3];
    const int warp = threadIdx.x / WARP, n_warps = blockDim.x / WARP;
    slices = shared[warp];
    // Six lanes look for one end each.
    const int rows = lane / 2 % 3, end = lane % 2, lo = first_row(rows), hi = last_row(rows);
    Index total = 0;
    for (int group = 0; group < n_groups; ++group) total += work(group);
    const Index units = cost(hi) - cost(lo), number = Index(team.rank()) * n_warps + warp + end;
    Index target = total * units * number / (Index(team.size()) * n_warps);
    int found = n_groups - 1, row = hi;
    bool is_found = false;
    for (int group = 0; group < n_groups; ++group) {
      const Index part = work(group) * units;
      if (!is_found && target < part) {
        is_found = true;
        found = group;
        row = first_with(lo, hi, cost, cost(lo) + target * units / part);
      }
      if (!is_found) target -= part;
    }
    if (lane < 6) {
      shared[warp][rows].end[end][0] = found;
      shared[warp][rows].end[end][1] = row;
    }
    __syncwarp();
  }

  // The first row before which there are so many units.
  template <class Cost>
  __device__ static int first_with(int lo, int hi, Cost cost, Index units) {
    while (lo < hi) {
      const int middle = (lo + hi) / 2;
      if (cost(middle) >= units) hi = middle;
      else lo = middle + 1;
    }
    return lo;
  }

  __device__ int first_row(int rows) const { return rows == BLACK ? n_red : 0; }
  __device__ int last_row(int rows) const { return rows == RED ? n_red : n_rows; }

  // Call f(group, from, to) for the rows that this warp owns.
  template <class F>
  __device__ void each_group(Rows rows, F f) const {
    const Slice own = slices[rows];
    for (int group = own.end[0][0]; group <= own.end[1][0]; ++group) {
      const int from = group == own.end[0][0] ? own.end[0][1] : first_row(rows);
      const int to = group == own.end[1][0] ? own.end[1][1] : last_row(rows);
      if (from < to) f(group, from, to);
    }
  }

  // Call f(i, column, place) for each entry that this thread owns. Who owns an entry depends on which
  // rows are asked for.
  template <class F>
  __device__ void each(Rows rows, F f) const {
    each_group(rows, [&](int group, int from, int to) {
      const int column = group * WARP + lane;
      if (column >= n_columns) return;
      for (int i = from; i < to; ++i) f(i, column, Place(i) * ld + column);
    });
  }
};

}  // namespace mgk
