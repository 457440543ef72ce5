// SPDX-License-Identifier: BSD-3-Clause
// Conjugate gradients with the preconditioner M = diag(D/V), by a team of threads:
//
//   Z x = b,   stopped at  r.M^-1 r <= tol^2 b.M^-1 b.
//
// Where G is bipartite, W joins red rows and black rows only, and the black ones are eliminated:
//
//   (Z_r - W_rb Z_b^-1 W_br) x_r = b_r + W_rb Z_b^-1 b_b,   x_b = Z_b^-1 (b_b + W_br x_r).
//
// With the black rows of p set to Z_b^-1 W_br p_r, x is summed up from p in all rows. The reduced
// system costs the same product and needs half the iterations. Otherwise all rows are red.

#pragma once

#include "block.cuh"
#include "pair.cuh"

namespace mgk {

// Solve for the right-hand side b_(i,i2) = quantity_i quantity_i2.
template <typename T, class Pair>
__device__ End conjugate_gradients(const Pair& pair, const T* quantity, T* x) {
  using Place = typename Pair::Place;
  const auto& v = pair.v;
  const auto& owned = pair.owned;
  auto& team = pair.team;
  const bool eliminates = owned.n_red < owned.n_rows;
  const auto b = [&](int i, int column) {
    return quantity[pair.first + i] * quantity[pair.second + column];
  };
  T part = 0;
  owned.each(ALL_ROWS, [&](int i, int column, Place at) {
    const T own = b(i, column);
    part += own * own * inverse(v.diagonal[at]);
    v.p[at] = inverse(v.diagonal[at]) * own;  // the black rows count
  });
  const double goal = pair.problem.tol * pair.problem.tol * team.sum(part);
  if (eliminates) {
    owned.each(BLACK, [&](int i, int column, Place at) { x[at] = v.p[at]; });
    pair.multiply(RED);  // the sum above waited for p
    team.wait();              // all have read p
  }
  part = 0;
  owned.each(RED, [&](int i, int column, Place at) {
    const T residual = b(i, column) + (eliminates ? v.y[at] : T(0));
    x[at] = 0;
    v.r[at] = residual;
    v.p[at] = inverse(v.diagonal[at]) * residual;
    part += residual * v.p[at];
  });
  double rz = team.sum(part);  // its barriers also say that p is complete
  End end = {CONVERGED, 0};
  while (rz > goal) {
    if (end.iterations == pair.problem.max_iter) {
      end.outcome = STEP_LIMIT;
      break;
    }
    if (eliminates) {
      pair.multiply(BLACK);
      owned.each(BLACK, [&](int i, int column, Place at) { v.p[at] = inverse(v.diagonal[at]) * v.y[at]; });
      team.wait();  // the black rows of p are complete
    }
    pair.multiply(RED);
    part = 0;
    owned.each(RED, [&](int i, int column, Place at) {
      v.y[at] = v.diagonal[at] * v.p[at] - v.y[at];
      part += v.p[at] * v.y[at];
    });
    const double curvature = team.sum(part);  // all have read p, which changes below
    if (!(curvature > 0)) {
      end.outcome = BREAKDOWN;
      break;
    }
    const T alpha = T(rz / curvature);
    owned.each(BLACK, [&](int i, int column, Place at) { x[at] += alpha * v.p[at]; });
    part = 0;
    owned.each(RED, [&](int i, int column, Place at) {
      x[at] += alpha * v.p[at];
      const T residual = v.r[at] - alpha * v.y[at];
      v.r[at] = residual;
      part += residual * residual * inverse(v.diagonal[at]);
    });
    const double next = team.sum(part);
    const T beta = T(next / rz);
    rz = next;
    ++end.iterations;
    owned.each(RED, [&](int i, int column, Place at) {
      v.p[at] = inverse(v.diagonal[at]) * v.r[at] + beta * v.p[at];
    });
    team.wait();  // p is complete
  }
  team.wait();  // x is complete
  if (!isfinite(rz) || !isfinite(goal)) end.outcome = NOT_FINITE;
  return end;
}

}  // namespace mgk
