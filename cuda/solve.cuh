// SPDX-License-Identifier: BSD-3-Clause
// Kernel values, derivatives and node-by-node values of a list of pairs, a block for each pair, or
// all blocks for one pair after the other:
//
//   K = sum p p' x,   Z x = f f'.
//
// A block takes the next pair of the list when it is done, so that none waits for the slowest.

#pragma once

#include "adjoint.cuh"
#include "pair.cuh"
#include "pcg.cuh"
#include "staged.cuh"

namespace mgk {

template <bool GRADIENT, class Pair>
__device__ void solve_pair(Pair& pair, Index k, const Results& results) {
  const auto& problem = pair.problem;
  pair.prepare();
  End end = conjugate_gradients(pair, problem.flow, pair.v.x);
  if constexpr (GRADIENT) {
    const End adjoint = conjugate_gradients(pair, problem.start, pair.v.z);
    end = {max(end.outcome, adjoint.outcome), end.iterations + adjoint.iterations};
    all_slopes(pair, results.gradient + k * problem.n_theta);
  } else if (problem.min_steps == 1) {
    drop_first_step(pair);
  }
  store(pair, k, finish(pair, k, results), end, results);
}

// Numbers in a vector of a pair.
template <typename T>
__device__ Index matrix_size(const Problem<T>& problem, int g, int h) {
  return Index(problem.node_ptr[g + 1] - problem.node_ptr[g]) *
         round_up(problem.node_ptr[h + 1] - problem.node_ptr[h]);
}

// Where the vectors of a pair lie: all in shared memory, only p, which is read at random, or none.
enum Memory { SHARED, SHARED_P, GLOBAL };

template <typename T, class Node, class Edge, int SLOTS, Memory MEMORY, bool GRADIENT>
__device__ void solve_pairs(const Problem<T>& problem, const Work& work, const Results& results) {
  extern __shared__ double dynamic[];  // vectors of the pair, or p, or nothing
  __shared__ Index taken;
  BlockTeam team;
  T* const own = static_cast<T*>(work.workspace) + blockIdx.x * work.stride;
  T* const p = MEMORY == GLOBAL ? own : static_cast<T*>(in_register(dynamic));
  while (true) {
    if (threadIdx.x == 0) taken = atomicAdd(reinterpret_cast<unsigned long long*>(work.next), 1ull);
    __syncthreads();  // the number of the pair is known
    const Index k = taken;
    __syncthreads();  // all have read it, and are done with the last pair
    if (k >= work.n_items) return;
    const int g = work.first[k], h = work.second[k];
    // The other vectors come behind p, unless that lies apart.
    T* const memory = MEMORY == SHARED_P ? own : p + matrix_size(problem, g, h);
    constexpr bool P_IS_SHARED = MEMORY != GLOBAL;
    Pair<T, Node, Edge, SLOTS, P_IS_SHARED, BlockTeam> pair(team, problem, g, h, memory, p);
    solve_pair<GRADIENT>(pair, k, results);
  }
}

// All blocks solve one pair after the other, with all vectors in the workspace, and what is staged of
// p in so many bytes of shared memory.
template <typename T, class Node, class Edge, bool GRADIENT>
__device__ void solve_pairs_together(const Problem<T>& problem, const Work& work,
                                     Index shared_bytes, const Results& results) {
  extern __shared__ double dynamic[];
  constexpr int N_VECTORS = GRADIENT ? 6 : 5;
  GridTeam team(work.sums, work.next);
  T* const p = static_cast<T*>(work.workspace);
  for (Index k = 0; k < work.n_items && !team.stopped; ++k) {
    const int g = work.first[k], h = work.second[k];
    const Index size = matrix_size(problem, g, h);
    StagedPair<T, Node, Edge> pair(team, problem, g, h, p + size, p, dynamic, shared_bytes,
                                          p + N_VECTORS * size,
                                          (work.stride - N_VECTORS * size) * sizeof(T));
    solve_pair<GRADIENT>(pair, k, results);
  }
}

}  // namespace mgk
