// SPDX-License-Identifier: BSD-3-Clause
// A device of the host: runs kernels of cuda/ where there is no GPU. Include it, then the header with
// the kernels. A block is a thread of the host, on which the threads of the block take turns; they
// change where they wait for each other. Blocks run one after the other, or all at once where they
// wait for each other. Shared memory is that of the host's thread.

#pragma once

#include <math.h>
#include <setjmp.h>
#include <ucontext.h>

#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

struct Dimension {
  unsigned x, y;
};
static Dimension blockDim, gridDim;
static thread_local Dimension threadIdx, blockIdx;

struct Barrier {
  unsigned arrived = 0, generation = 0;
};

// A thread of a block: where it goes on, with a stack of its own.
struct Fiber {
  ucontext_t begin;
  jmp_buf next;
  std::vector<char> stack;
  bool started = false, done = false;
};

struct Block {
  jmp_buf turns;  // of who hands out the turns
  std::vector<Fiber> fibers;
  std::map<std::pair<unsigned, unsigned>, Barrier> lanes_together;  // by warp and mask
  Barrier all;
  std::vector<long long> lanes;
  std::function<void()> body;
};
static thread_local Block* block;

static void next_turn() {
  if (_setjmp(block->fibers[threadIdx.x].next) == 0) _longjmp(block->turns, 1);
}

// Jumps, which unlike a change of contexts need no system call.
static void give_turn(Fiber& fiber) {
  if (_setjmp(block->turns) != 0) return;
  if (fiber.started) _longjmp(fiber.next, 1);
  fiber.started = true;
  setcontext(&fiber.begin);
}

static void arrive(Barrier& barrier, unsigned expected) {
  const unsigned generation = barrier.generation;
  if (++barrier.arrived == expected) {
    barrier.arrived = 0;
    ++barrier.generation;
  }
  while (barrier.generation == generation) next_turn();
}

static void run_fiber() {
  block->body();
  block->fibers[threadIdx.x].done = true;
  next_turn();
}

static void run_block(Dimension place, std::function<void()> body) {
  Block own;
  block = &own;
  blockIdx = place;
  own.body = std::move(body);
  own.fibers.resize(blockDim.x);
  own.lanes.resize(blockDim.x);
  for (Fiber& fiber : own.fibers) {
    fiber.stack.resize(1 << 16);
    getcontext(&fiber.begin);
    fiber.begin.uc_stack.ss_sp = fiber.stack.data();
    fiber.begin.uc_stack.ss_size = fiber.stack.size();
    makecontext(&fiber.begin, run_fiber, 0);
  }
  for (unsigned left = blockDim.x; left > 0;) {
    for (unsigned t = 0; t < blockDim.x; ++t) {
      if (own.fibers[t].done) continue;
      threadIdx = {t, 0};
      give_turn(own.fibers[t]);
      left -= own.fibers[t].done;
    }
  }
}

struct uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

static double __longlong_as_double(long long bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

static unsigned warp() { return threadIdx.x / 32; }
static int __popc(unsigned bits) { return __builtin_popcount(bits); }
static int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
static int __ffs(unsigned bits) { return __builtin_ffs(bits); }
static void __nanosleep(unsigned) { std::this_thread::yield(); }
static void __syncthreads() { arrive(block->all, blockDim.x); }
static void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

static void __syncwarp(unsigned mask = 0xffffffffu) {
  arrive(block->lanes_together[{warp(), mask}], __popc(mask));
}

// What the lane that is asked for has, by number within the warp.
template <typename T>
static T exchange(unsigned mask, T value, unsigned from) {
  std::memcpy(&block->lanes[threadIdx.x], &value, sizeof(T));
  __syncwarp(mask);
  T found = value;
  if (from < 32) std::memcpy(&found, &block->lanes[warp() * 32 + from], sizeof(T));
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

template <typename T>
static T __shfl_up_sync(unsigned mask, T value, int offset) {
  const int lane = threadIdx.x % 32;
  return exchange(mask, value, lane < offset ? lane : lane - offset);
}

// The lanes that have the same value.
template <typename T>
static unsigned __match_any_sync(unsigned mask, T value) {
  std::memcpy(&block->lanes[threadIdx.x], &value, sizeof(T));
  __syncwarp(mask);
  unsigned bits = 0;
  for (unsigned k = 0; k < 32; ++k) {
    const bool alike = std::memcmp(&block->lanes[warp() * 32 + k], &value, sizeof(T)) == 0;
    bits |= unsigned(alike && (mask >> k & 1)) << k;
  }
  __syncwarp(mask);
  return bits;
}

static unsigned __ballot_sync(unsigned mask, bool vote) {
  unsigned bits = 0;
  block->lanes[threadIdx.x] = vote;
  __syncwarp(mask);
  for (unsigned k = 0; k < 32; ++k) bits |= unsigned(block->lanes[warp() * 32 + k]) << k;
  __syncwarp(mask);
  return bits & mask;
}

static bool __any_sync(unsigned mask, bool vote) { return __ballot_sync(mask, vote) != 0; }

static int __reduce_max_sync(unsigned mask, int value) {
  for (int bits = 16; bits > 0; bits /= 2) {
    const int other = __shfl_xor_sync(mask, value, bits);
    value = other > value ? other : value;
  }
  return value;
}

template <typename T>
static T min(T a, T b) {
  return b < a ? b : a;
}

template <typename T>
static T max(T a, T b) {
  return a < b ? b : a;
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
#define __noinline__ __attribute__((noinline))
#define __global__
#define __shared__ thread_local
#define __grid_constant__
#define __launch_bounds__(...)

template <typename Kernel, typename... Arguments>
static void launch(Kernel kernel, bool together, Dimension grid, unsigned n_threads,
                   Arguments... arguments) {
  gridDim = grid;
  blockDim = {n_threads, 1};
  std::vector<std::thread> running;
  const auto join = [&] {
    for (auto& thread : running) thread.join();
    running.clear();
  };
  for (unsigned b = 0; b < grid.x * grid.y; ++b) {
    const Dimension place = {b % grid.x, b / grid.x};
    running.emplace_back(run_block, place, [=] { kernel(arguments...); });
    if (!together) join();
  }
  join();
}
