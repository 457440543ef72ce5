// SPDX-License-Identifier: BSD-3-Clause
// A device of host threads: runs the kernels of cuda/truss.cuh where there is no GPU. Blocks run one
// after the other, or all at once where they wait for each other.

#include <barrier>
#include <deque>
#include <thread>
#include <vector>

struct Dimension {
  unsigned x;
};
static Dimension blockDim, gridDim;
static thread_local Dimension threadIdx, blockIdx;
static std::deque<std::barrier<>> blocks, warps;
static std::vector<long long> lanes;

static unsigned warp() { return (blockIdx.x * blockDim.x + threadIdx.x) / 32; }
static void __syncthreads() { blocks[blockIdx.x].arrive_and_wait(); }
static void __syncwarp() { warps[warp()].arrive_and_wait(); }
static void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static int __popc(unsigned bits) { return __builtin_popcount(bits); }

static unsigned __ballot_sync(unsigned, bool vote) {
  lanes[warp() * 32 + threadIdx.x % 32] = vote;
  __syncwarp();
  unsigned bits = 0;
  for (unsigned k = 0; k < 32; ++k) bits |= unsigned(lanes[warp() * 32 + k]) << k;
  __syncwarp();
  return bits;
}

template <typename T>
static T __shfl_down_sync(unsigned, T value, int offset) {
  const unsigned lane = threadIdx.x % 32;
  lanes[warp() * 32 + lane] = value;
  __syncwarp();
  const T found = lane + offset < 32 ? T(lanes[warp() * 32 + lane + offset]) : value;
  __syncwarp();
  return found;
}

template <typename T>
static T atomicAdd(T* place, T value) {
  return __atomic_fetch_add(place, value, __ATOMIC_SEQ_CST);
}

template <typename T>
static T atomicMin(T* place, T value) {
  T seen = __atomic_load_n(place, __ATOMIC_SEQ_CST);
  while (value < seen && !__atomic_compare_exchange_n(place, &seen, value, false, __ATOMIC_SEQ_CST,
                                                      __ATOMIC_SEQ_CST)) {
  }
  return seen;
}

#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(n)
#include "truss.cuh"

template <typename Kernel, typename... Arguments>
static void launch(Kernel kernel, bool together, unsigned n_blocks, unsigned n_threads,
                   Arguments... arguments) {
  gridDim = {n_blocks};
  blockDim = {n_threads};
  blocks.clear();
  warps.clear();
  lanes.assign(n_blocks * n_threads, 0);
  for (unsigned b = 0; b < n_blocks; ++b) blocks.emplace_back(n_threads);
  for (unsigned w = 0; w < n_blocks * n_threads / 32; ++w) warps.emplace_back(32);
  std::vector<std::thread> running;
  const auto join = [&] {
    for (auto& thread : running) thread.join();
    running.clear();
  };
  for (unsigned b = 0; b < n_blocks; ++b) {
    for (unsigned t = 0; t < n_threads; ++t) {
      running.emplace_back([=] {
        blockIdx = {b};
        threadIdx = {t};
        kernel(arguments...);
      });
    }
    if (!together) join();
  }
  join();
}

template <typename Index>
static void support(int variant, const Index* ptr, const Index* stop, const Index* columns,
                    Index* counts, const Index* row, Index n_rows, Index n_slots, Index* tasks,
                    Index* counters) {
  Index* none = nullptr;
  if (variant == 0) {
    launch(truss::support_coarse<Index>, false, 2, 64, ptr, stop, columns, counts, n_rows,
           counters);
    return;
  }
  launch(truss::support_fine<Index>, false, 2, 64, ptr, stop, columns, counts, row, n_slots,
         variant == 1 ? none : tasks, counters);
  if (variant == 1) return;
  const Index* own = tasks;
  const Index* number = counters + 1;
  launch(variant == 2 ? truss::support_listed<32, Index> : truss::support_listed<64, Index>, false,
         2, 64, ptr, stop, columns, counts, row, own, number);
}

#define EXPORT(Index, suffix)                                                                      \
  extern "C" void support_##suffix(int variant, const Index* ptr, const Index* stop,               \
                                   const Index* columns, Index* counts, const Index* row,          \
                                   Index n_rows, Index n_slots, Index* tasks, Index* counters) {   \
    support<Index>(variant, ptr, stop, columns, counts, row, n_rows, n_slots, tasks, counters);    \
  }                                                                                                \
  extern "C" void prune_##suffix(const Index* ptr, Index* stop, Index* columns, Index* edge,       \
                                 Index* counts, Index n_rows, Index needed, Index* counters) {     \
    launch(truss::prune<Index>, false, 2, 64, ptr, stop, columns, edge, counts, n_rows, needed,    \
           counters);                                                                              \
  }                                                                                                \
  extern "C" void blocks_##suffix(const Index* ptr, const Index* node, const Index* edge,          \
                                  const Index* low, const Index* high, Index* counts,              \
                                  Index* queue, Index* trussness, const Index* edge_ptr,           \
                                  const Index* graphs, Index n_graphs, Index* counters,            \
                                  Index* next) {                                                   \
    launch(truss::peel_blocks<Index>, false, 2, 64, ptr, node, edge, low, high, counts, queue,     \
           trussness, edge_ptr, graphs, n_graphs, counters, next);                                 \
  }                                                                                                \
  extern "C" void grid_##suffix(const Index* ptr, const Index* node, const Index* edge,            \
                                const Index* low, const Index* high, Index* counts, Index* queue,  \
                                Index* trussness, Index first, Index last, Index* counters,        \
                                unsigned* arrived) {                                               \
    launch(truss::peel_grid<Index>, true, 2, 32, ptr, node, edge, low, high, counts, queue,        \
           trussness, first, last, counters, arrived);                                             \
  }

EXPORT(int, int32)
EXPORT(long long, int64)
