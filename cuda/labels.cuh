// SPDX-License-Identifier: BSD-3-Clause
// A base kernel by its table over all distinct labels:
//
//   k(a, b) = values[a, b],   dk(a, b) / dlog theta_h = slopes[h, a, b].
//
// Kernels by generated code have the same members; see sklearn_mgk/solver/device_source.py.

#pragma once

#include "problem.cuh"

namespace mgk {

template <typename T, int N_FREE>
struct Table {
  static constexpr int n_free = N_FREE;
  static constexpr bool is_table = true;
  static constexpr bool has_windows = false;

  using Label = int;

  struct alignas(16) Entry {
    int column;  // the other end, counted within the graph
    int code;    // number of the label
    T weight;
    static constexpr int n_words = 2 + sizeof(T) / 4;  // of four bytes that are used
    __device__ Label label() const { return code; }
    // The entry that another lane holds.
    __device__ Entry from(int lane) const {
      return {__shfl_sync(ALL, column, lane), __shfl_sync(ALL, code, lane),
              __shfl_sync(ALL, weight, lane)};
    }
  };

  __device__ static T key(Label) { return 0; }  // there are no windows

  const int* code;
  const T* values;
  const T* slopes;
  int n;

  __device__ explicit Table(const Columns<T>& columns)
      : code(columns.code), values(columns.values), slopes(columns.slopes),
        n(int(columns.n_labels)) {}

  // Label of a node.
  __device__ Label load(int row) const { return __ldg(code + row); }

  __device__ T value(Label a, Label b) const { return __ldg(values + a * n + b); }

  // Write the derivatives to out, N_FREE numbers; returns the value.
  __device__ T gradient(Label a, Label b, T* out) const {
    for (int h = 0; h < N_FREE; ++h) out[h] = __ldg(slopes + (Index(h) * n + a) * n + b);
    return value(a, b);
  }
};

}  // namespace mgk
