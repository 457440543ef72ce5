// SPDX-License-Identifier: BSD-3-Clause
// Y = A X with A in compressed rows and X, Y row-major, in one launch.
//
// Who owns what: a block of threads takes one item, and blockIdx.y one tile of columns. Within it a
// group of Group lanes holds one row of the tile, Vec neighbouring columns a lane, so that Group *
// Vec columns are read at once; narrow X leave room for several groups in a warp. An item is
//   sparse   rows first to last - 1 of the order, one for each group;
//   dense    the same rows one for each team of several warps, summed up in shared memory;
//   split    one piece of one long row for the whole block; the block that ends last adds the
//            pieces up, always in one order.
// Every sum is taken in an order that depends on the plan only: the same call gives the same bits.

namespace spmm {

constexpr int kThreads = 256;  // of a block
constexpr int kWarps = kThreads / 32;

// What a block does. Where rows are split, first is the row's place in the order and last the number
// of the piece, out of n_pieces, whose sums go to places from slot on.
struct Item {
  long long n_warps;  // of a team; 0 means sparse, -1 split
  long long first;
  long long last;
  long long slot;
  long long n_pieces;
};

// What stands before the items.
struct Header {
  long long n_items;
  long long n_pieces;  // of all split rows
  long long engine;    // of kRows, kHeavy, kDegree
  double threshold;    // entries from which a block is dense
};

template <typename T, int Vec>
struct alignas(sizeof(T) * Vec) Pack {
  T value[Vec];  // (Vec) neighbouring columns
};

template <int Bytes>
struct Word;
template <>
struct Word<4> {
  using type = unsigned;
};
template <>
struct Word<8> {
  using type = uint2;
};
template <>
struct Word<16> {
  using type = uint4;
};

// One read-only load, as wide as the pack.
template <typename T, int Vec>
__device__ Pack<T, Vec> load(const T* place) {
  using Bits = typename Word<sizeof(T) * Vec>::type;
  Pack<T, Vec> pack;
  *reinterpret_cast<Bits*>(&pack) = __ldg(reinterpret_cast<const Bits*>(place));
  return pack;
}

template <typename T, typename Index>
struct Matrices {
  const Index* ptr;      // (n_rows + 1)
  const Index* indices;  // (n_entries)
  const T* values;       // (n_entries)
  const Index* order;    // (n_rows)
  const T* x;            // (n_columns of A, n_columns)
  T* y;                  // (n_rows, n_columns)
  long long n_columns;
};

// The sum over chunks c, c + step, ... of Group entries each, from begin to end - 1. The lanes of a
// group load a chunk of indices and values together and hand them round; Ways rows of X are on
// their way at a time.
template <int Vec, int Group, int Ways, typename T, typename Index>
__device__ Pack<T, Vec> gather(const Matrices<T, Index>& m, Index begin, Index end, int chunk,
                               int step, long long column) {
  static_assert(Group >= 1 && Group <= 32 && (Group & (Group - 1)) == 0, "lanes of a warp");
  const int lane = threadIdx.x % Group;
  const unsigned first = threadIdx.x % 32 / Group * Group;
  const unsigned mask = (Group == 32 ? 0xffffffffu : (1u << Group % 32) - 1) << first;
  const bool inside = column < m.n_columns;
  Pack<T, Vec> total{};
  for (Index p = begin + Index(chunk) * Group; p < end; p += Index(step) * Group) {
    const int n = end - p < Group ? int(end - p) : Group;
    const Index own_index = lane < n ? __ldg(m.indices + p + lane) : Index(0);
    const T own_value = lane < n ? __ldg(m.values + p + lane) : T(0);
    for (int k = 0; k < n; k += Ways) {
      Pack<T, Vec> row[Ways];  // (Ways, Vec)
      T value[Ways];           // (Ways)
#pragma unroll
      for (int way = 0; way < Ways; ++way) {
        // Beyond the chunk nothing is loaded, and nothing is added below.
        const Index index = __shfl_sync(mask, own_index, (k + way) % Group, Group);
        value[way] = __shfl_sync(mask, own_value, (k + way) % Group, Group);
        row[way] = Pack<T, Vec>{};
        if (inside && k + way < n) row[way] = load<T, Vec>(m.x + index * m.n_columns + column);
      }
#pragma unroll
      for (int way = 0; way < Ways; ++way) {
        if (k + way >= n) continue;
#pragma unroll
        for (int v = 0; v < Vec; ++v) total.value[v] += value[way] * row[way].value[v];
      }
    }
  }
  return total;
}

template <typename T, int Vec>
__device__ void store(T* place, const Pack<T, Vec>& pack) {
  *reinterpret_cast<Pack<T, Vec>*>(place) = pack;
}

// Adds up the packs of the groups of a team of n_warps warps; the first group of the team has the
// result. All threads of the block call it.
template <typename T, int Vec, int Group>
__device__ Pack<T, Vec> team_sum(Pack<T, Vec> total, int n_warps) {
  __shared__ Pack<T, Vec> partial[kWarps][Group];  // (kWarps, Group, Vec)
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int away = Group; away < 32; away *= 2) {
#pragma unroll
    for (int v = 0; v < Vec; ++v) {
      total.value[v] += __shfl_xor_sync(0xffffffffu, total.value[v], away);
    }
  }
  if (lane < Group) partial[warp][lane] = total;
  __syncthreads();  // the sums of all warps are written before any is read
  if (lane < Group && warp % n_warps == 0) {
    for (int other = 1; other < n_warps; ++other) {
      for (int v = 0; v < Vec; ++v) total.value[v] += partial[warp + other][lane].value[v];
    }
  }
  __syncthreads();  // all are read before the next row overwrites them
  return total;
}

// Rows of the order, each for one group.
template <int Vec, int Group, int Ways, typename T, typename Index>
__device__ void sparse_rows(const Matrices<T, Index>& m, const Item& item, long long column) {
  for (long long at = item.first + threadIdx.x / Group; at < item.last; at += kThreads / Group) {
    const Index row = m.order[at];
    const auto total =
        gather<Vec, Group, Ways>(m, m.ptr[row], m.ptr[row + 1], 0, 1, column);
    if (column < m.n_columns) store(m.y + row * m.n_columns + column, total);
  }
}

// Rows of the order, each for a team of warps.
template <int Vec, int Group, int Ways, typename T, typename Index>
__device__ void dense_rows(const Matrices<T, Index>& m, const Item& item, long long column) {
  const int n_warps = int(item.n_warps), n_groups = n_warps * (32 / Group);
  const int group = threadIdx.x % (32 * n_warps) / Group;
  for (long long next = item.first; next < item.last; next += kWarps / n_warps) {
    const long long at = next + threadIdx.x / (32 * n_warps);
    const bool there = at < item.last;
    const Index row = there ? m.order[at] : Index(0);
    const Index begin = there ? m.ptr[row] : Index(0), end = there ? m.ptr[row + 1] : Index(0);
    const auto own = gather<Vec, Group, Ways>(m, begin, end, group, n_groups, column);
    const auto total = team_sum<T, Vec, Group>(own, n_warps);
    if (there && group == 0 && column < m.n_columns) {
      store(m.y + row * m.n_columns + column, total);
    }
  }
}

// One piece of a row for the whole block.
template <int Vec, int Group, int Ways, typename T, typename Index>
__device__ void piece_of_row(const Matrices<T, Index>& m, const Item& item, long long column,
                             T* sums, unsigned* n_done) {
  __shared__ bool is_last;
  const Index row = m.order[item.first], begin = m.ptr[row];
  const long long length = m.ptr[row + 1] - begin;
  const Index from = begin + Index(length * item.last / item.n_pieces);
  const Index to = begin + Index(length * (item.last + 1) / item.n_pieces);
  const int group = threadIdx.x / Group;
  const auto own = gather<Vec, Group, Ways>(m, from, to, group, kThreads / Group, column);
  const auto total = team_sum<T, Vec, Group>(own, kWarps);
  const bool writes = group == 0 && column < m.n_columns;
  if (writes) {
    store(sums + (item.slot + item.last) * m.n_columns + column, total);
    __threadfence();  // the sum is seen before the count that says it is there
  }
  __syncthreads();  // all lanes have written before the block is counted
  unsigned* done = n_done + item.slot * gridDim.y + blockIdx.y;
  if (threadIdx.x == 0) is_last = atomicAdd(done, 1u) + 1 == unsigned(item.n_pieces);
  __syncthreads();  // the answer is there for all
  if (!is_last) return;
  if (threadIdx.x == 0) *done = 0;  // for the next launch
  __threadfence();                  // sums of other blocks are read after their count
  Pack<T, Vec> some{};
  const long long n_read = column < m.n_columns ? item.n_pieces : 0;
  for (long long piece = group; piece < n_read; piece += kThreads / Group) {
    const volatile T* part = sums + (item.slot + piece) * m.n_columns + column;
    for (int v = 0; v < Vec; ++v) some.value[v] += part[v];
  }
  const auto all = team_sum<T, Vec, Group>(some, kWarps);
  if (writes) store(m.y + row * m.n_columns + column, all);
}

template <typename T, typename Index, int Vec, int Group, int Ways>
__global__ void __launch_bounds__(kThreads)
    multiply(const Index* __restrict__ ptr, const Index* __restrict__ indices,
             const T* __restrict__ values, const Index* __restrict__ order,
             const Item* __restrict__ items, const T* __restrict__ x, T* __restrict__ y,
             long long n_columns, T* sums, unsigned* n_done, const Header* __restrict__ header) {
  static_assert(sizeof(T) * Vec <= 16, "a load has 16 bytes at most");
  const Matrices<T, Index> m{ptr, indices, values, order, x, y, n_columns};
  const long long column = (blockIdx.y * Group + threadIdx.x % Group) * (long long)Vec;
  // There are at least as many places for items as blocks: both loads are under way together.
  unsigned at = blockIdx.x;
  do {
    const Item item = items[at];
    if (at >= header->n_items) return;
    if (item.n_warps == 0) {
      sparse_rows<Vec, Group, Ways>(m, item, column);
    } else if (item.n_warps > 0) {
      dense_rows<Vec, Group, Ways>(m, item, column);
    } else {
      piece_of_row<Vec, Group, Ways>(m, item, column, sums, n_done);
    }
    at += gridDim.x;
  } while (at < header->n_items);
}

}  // namespace spmm
