// SPDX-License-Identifier: BSD-3-Clause
// Conjugate gradients with the Jacobi preconditioner M, by one block:
//
//   Z x = b,   stopped at  r.M^-1 r <= tol^2 b.M^-1 b.
//
// The pair says what Z is; nothing here knows graphs.

#pragma once

#include "block.cuh"
#include "pair.cuh"

namespace mgk {

// Solve for the right-hand side b_(i,i2) = quantity_i quantity_i2.
template <typename T, class Pair>
__device__ End conjugate_gradients(const Pair& pair, const T* quantity, T* x) {
  const auto& v = pair.v;
  const auto& owned = pair.owned;
  T sum = 0;
  owned.each([&](int i, int column, int at) {
    const T b = quantity[pair.first + i] * quantity[pair.second + column];
    x[at] = 0;
    v.r[at] = b;
    v.p[at] = v.inverse[at] * b;
    sum += b * v.p[at];
  });
  double rz = block_sum(sum);  // its barriers also say that p is complete
  const double goal = pair.problem.tol * pair.problem.tol * rz;
  End end = {CONVERGED, 0};
  while (rz > goal) {
    if (end.iterations == pair.problem.max_iter) {
      end.outcome = STEP_LIMIT;
      break;
    }
    pair.multiply();
    T part = 0;
    owned.each([&](int i, int column, int at) {
      v.y[at] = v.diagonal[at] * v.p[at] - v.y[at];
      part += v.p[at] * v.y[at];
    });
    const double curvature = block_sum(part);  // all have read p, which changes below
    if (!(curvature > 0)) {
      end.outcome = BREAKDOWN;
      break;
    }
    const T alpha = T(rz / curvature);
    part = 0;
    owned.each([&](int i, int column, int at) {
      x[at] += alpha * v.p[at];
      const T residual = v.r[at] - alpha * v.y[at];
      v.r[at] = residual;
      part += residual * residual * v.inverse[at];
    });
    const double next = block_sum(part);
    const T beta = T(next / rz);
    rz = next;
    ++end.iterations;
    owned.each([&](int i, int column, int at) { v.p[at] = v.inverse[at] * v.r[at] + beta * v.p[at]; });
    __syncthreads();  // p is complete
  }
  if (!isfinite(rz) || !isfinite(goal)) end.outcome = NOT_FINITE;
  return end;
}

}  // namespace mgk
