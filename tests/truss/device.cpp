// SPDX-License-Identifier: BSD-3-Clause
// The kernels of cuda/truss.cuh on a device of host threads.

#include "device.hpp"

#include "truss.cuh"

template <typename Index>
static void support(int variant, const Index* ptr, const Index* stop, const Index* columns,
                    Index* counts, const Index* row, Index n_rows, Index n_slots, Index* tasks,
                    Index* counters) {
  Index* none = nullptr;
  if (variant == 0) {
    launch(truss::support_coarse<Index>, false, {2, 1}, 64, ptr, stop, columns, counts, n_rows,
           counters);
    return;
  }
  launch(truss::support_fine<Index>, false, {2, 1}, 64, ptr, stop, columns, counts, row, n_slots,
         variant == 1 ? none : tasks, counters);
  if (variant == 1) return;
  const Index* own = tasks;
  const Index* number = counters + 1;
  launch(variant == 2 ? truss::support_listed<32, Index> : truss::support_listed<64, Index>, false,
         {2, 1}, 64, ptr, stop, columns, counts, row, own, number);
}

#define EXPORT(Index, suffix)                                                                      \
  extern "C" void support_##suffix(int variant, const Index* ptr, const Index* stop,               \
                                   const Index* columns, Index* counts, const Index* row,          \
                                   Index n_rows, Index n_slots, Index* tasks, Index* counters) {   \
    support<Index>(variant, ptr, stop, columns, counts, row, n_rows, n_slots, tasks, counters);    \
  }                                                                                                \
  extern "C" void prune_##suffix(const Index* ptr, Index* stop, Index* columns, Index* edge,       \
                                 Index* counts, Index n_rows, Index needed, Index* counters) {     \
    launch(truss::prune<Index>, false, {2, 1}, 64, ptr, stop, columns, edge, counts, n_rows, needed,    \
           counters);                                                                              \
  }                                                                                                \
  extern "C" void blocks_##suffix(const Index* ptr, const Index* node, const Index* edge,          \
                                  const Index* low, const Index* high, Index* counts,              \
                                  Index* queue, Index* trussness, const Index* edge_ptr,           \
                                  const Index* graphs, Index n_graphs, Index* counters,            \
                                  Index* next) {                                                   \
    launch(truss::peel_blocks<Index>, false, {2, 1}, 64, ptr, node, edge, low, high, counts, queue,     \
           trussness, edge_ptr, graphs, n_graphs, counters, next);                                 \
  }                                                                                                \
  extern "C" void grid_##suffix(const Index* ptr, const Index* node, const Index* edge,            \
                                const Index* low, const Index* high, Index* counts, Index* queue,  \
                                Index* trussness, Index first, Index last, Index* counters,        \
                                unsigned* arrived) {                                               \
    launch(truss::peel_grid<Index>, true, {2, 1}, 32, ptr, node, edge, low, high, counts, queue,        \
           trussness, first, last, counters, arrived);                                             \
  }

EXPORT(int, int32)
EXPORT(long long, int64)
