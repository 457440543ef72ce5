// SPDX-License-Identifier: BSD-3-Clause
// The kernel of cuda/spmm.cuh on a device of host threads.

#include "device.hpp"

#include "spmm.cuh"

#define EXPORT(T, Index, Vec, Group, Ways, name)                                                   \
  extern "C" void name(const Index* ptr, const Index* indices, const T* values,                    \
                       const Index* order, const spmm::Item* items, const T* x, T* y,              \
                       long long n_columns, T* sums, unsigned* n_done, int n_items,                \
                       int n_tiles) {                                                              \
    launch(spmm::multiply<T, Index, Vec, Group, Ways>, false,                                      \
           {unsigned(n_items), unsigned(n_tiles)}, unsigned(spmm::kThreads), ptr, indices, values, \
           order, items, x, y, n_columns, sums, n_done);                                           \
  }

EXPORT(float, int, 4, 32, 4, float_int_4_32_4)
EXPORT(float, int, 4, 4, 8, float_int_4_4_8)
EXPORT(float, long long, 1, 32, 4, float_int64_1_32_4)
EXPORT(double, int, 2, 8, 4, double_int_2_8_4)
EXPORT(double, long long, 1, 1, 4, double_int64_1_1_4)
