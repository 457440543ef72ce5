// SPDX-License-Identifier: BSD-3-Clause
// A device of host threads: runs kernels of cuda/ where there is no GPU. Include it, then the header
// with the kernels. Blocks run one after the other, or all at once where they wait for each other.
// Shared memory is static, so kernels that use it run one block at a time.

#pragma once

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using std::isfinite;
using std::max;
using std::min;

struct Dimension {
  unsigned x, y;
};
static Dimension blockDim, gridDim;
static thread_local Dimension threadIdx, blockIdx;
static std::deque<std::barrier<>> blocks;
static std::map<std::pair<unsigned, unsigned>, std::unique_ptr<std::barrier<>>> lanes_together;
static std::mutex making;
static std::vector<long long> lanes;

struct uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

static unsigned warp() { return (blockIdx.x * blockDim.x + threadIdx.x) / 32; }
static int __popc(unsigned bits) { return __builtin_popcount(bits); }
static int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
static int __ffs(int bits) { return __builtin_ffs(bits); }
static void __syncthreads() { blocks[blockIdx.x].arrive_and_wait(); }
static void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

static void __syncwarp(unsigned mask = 0xffffffffu) {
  std::barrier<>* all;
  {
    const std::lock_guard<std::mutex> lock(making);
    auto& made = lanes_together[{warp(), mask}];
    if (!made) made = std::make_unique<std::barrier<>>(__popc(mask));
    all = made.get();
  }
  all->arrive_and_wait();
}

// What the lane that is asked for has, by number within the warp.
template <typename T>
static T exchange(unsigned mask, T value, unsigned from) {
  std::memcpy(&lanes[warp() * 32 + threadIdx.x % 32], &value, sizeof(T));
  __syncwarp(mask);
  T found = value;
  if (from < 32) std::memcpy(&found, &lanes[warp() * 32 + from], sizeof(T));
  __syncwarp(mask);
  return found;
}

template <typename T>
static T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  return exchange(mask, value, threadIdx.x % 32 / width * width + from % width);
}

template <typename T>
static T __shfl_xor_sync(unsigned mask, T value, int bits) {
  return exchange(mask, value, threadIdx.x % 32 ^ bits);
}

template <typename T>
static T __shfl_down_sync(unsigned mask, T value, int offset) {
  return exchange(mask, value, threadIdx.x % 32 + offset);
}

static unsigned __ballot_sync(unsigned mask, bool vote) {
  unsigned bits = 0;
  for (unsigned k = 0; k < 32; ++k) bits |= unsigned(exchange(mask, vote, k)) << k;
  return bits;
}

static int __reduce_max_sync(unsigned mask, int value) {
  for (int step = 16; step > 0; step /= 2) value = max(value, __shfl_xor_sync(mask, value, step));
  return value;
}

template <typename T>
static T __ldg(const T* place) {
  return *place;
}

template <typename T>
static T atomicAdd(T* place, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    T seen, sum;
    __atomic_load(place, &seen, __ATOMIC_SEQ_CST);
    do {
      sum = seen + value;
    } while (!__atomic_compare_exchange(place, &seen, &sum, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return seen;
  } else {
    return __atomic_fetch_add(place, value, __ATOMIC_SEQ_CST);
  }
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
#define __grid_constant__
#define __launch_bounds__(...)

template <typename Kernel, typename... Arguments>
static void launch(Kernel kernel, bool together, Dimension grid, unsigned n_threads,
                   Arguments... arguments) {
  gridDim = grid;
  blockDim = {n_threads, 1};
  blocks.clear();
  lanes_together.clear();
  lanes.assign(grid.x * n_threads, 0);
  for (unsigned b = 0; b < grid.x; ++b) blocks.emplace_back(n_threads);
  std::vector<std::thread> running;
  const auto join = [&] {
    for (auto& thread : running) thread.join();
    running.clear();
  };
  for (unsigned b = 0; b < grid.x * grid.y; ++b) {
    for (unsigned t = 0; t < n_threads; ++t) {
      running.emplace_back([=] {
        blockIdx = {b % grid.x, b / grid.x};
        threadIdx = {t, 0};
        kernel(arguments...);
      });
    }
    if (!together) join();
  }
  join();
}
