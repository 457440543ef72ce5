// SPDX-License-Identifier: BSD-3-Clause
//
// Eager k-truss on the device: support, pruning, and peeling.
//
// Rows are those of sklearn_mgk/truss/edges.py: the strictly upper triangular adjacency matrix, columns
// counted from 1, each row ended by a 0. For a column k of row i, a column j that row k shares with the
// rest of row i closes the triangle (i, k, j), which counts for its three edges at once:
//
//     s12 += a12 o (A22 a12 + A22' a12),    S22 += (a12 a12') o A22
//
// coarse: a thread owns a row. fine: a thread, a warp or a block owns a non-zero (i, k), whichever suits
// the length of the two lists. Increments are atomic; their order does not change the integers.

namespace truss {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kWarp = 32;

// Lists of a fine task that are longer together go to a warp, and shorter ones that are longer than
// the second number to a block.
constexpr int kLongForThread = 64;
constexpr int kLongForWarp = 2048;

// In place of the support of an edge while graphs are peeled. Threads may push a support below 0 for
// a moment, but never that far.
constexpr int kGone = -(1 << 30);
constexpr int kFrontier = kGone + 1;

__device__ inline int add(int* place, int value) { return atomicAdd(place, value); }

__device__ inline long long add(long long* place, long long value) {
  return static_cast<long long>(atomicAdd(reinterpret_cast<unsigned long long*>(place),
                                          static_cast<unsigned long long>(value)));
}

// Read what other threads write: not from a register, nor from a cache that they do not see.
template <typename Index>
__device__ Index load(const Index* place) {
  return *static_cast<const volatile Index*>(place);
}

// First place from begin on, and before end, whose value is not below the one wanted.
template <typename Index>
__device__ Index lower_bound(const Index* values, Index begin, Index end, Index wanted) {
  while (begin < end) {
    const Index middle = begin + (end - begin) / 2;
    if (values[middle] < wanted) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

__device__ inline unsigned lane() { return threadIdx.x % kWarp; }

template <typename Index>
__device__ Index warp_sum(Index value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_down_sync(kAll, value, offset);
  }
  return value;  // in lane 0
}

// The rows on the device; stop[i] is where the columns of row i end, after pruning too.
template <typename Index>
struct Rows {
  const Index* ptr;
  const Index* stop;
  const Index* columns;
  Index* support;
};

// One task by one thread: merge the rest of the row behind place p with the row of the column at p.
// Both end in a zero: neither the row nor any length is needed.
template <typename Index>
__device__ void merge_task(const Rows<Index>& rows, Index p) {
  Index r = p + 1;
  Index q = rows.ptr[rows.columns[p] - 1];
  Index j = rows.columns[r];
  Index k = rows.columns[q];
  Index found = 0;
  while (j != 0 && k != 0) {
    if (j == k) {
      ++found;
      add(rows.support + r, Index(1));
      add(rows.support + q, Index(1));
    }
    const bool step_r = j <= k;
    const bool step_q = k <= j;
    if (step_r) j = rows.columns[++r];
    if (step_q) k = rows.columns[++q];
  }
  if (found > 0) add(rows.support + p, found);
}

// One task by Size threads of a block: they take the columns of the shorter list in turn, and search
// them in the longer one.
template <int Size, typename Index>
__device__ void search_task(const Rows<Index>& rows, Index p, Index end) {
  static_assert(Size % kWarp == 0, "a task is shared by whole warps");
  const Index row = rows.columns[p] - 1;
  Index few = p + 1, few_end = end, many = rows.ptr[row], many_end = rows.stop[row];
  if (few_end - few > many_end - many) {
    few = rows.ptr[row];
    few_end = rows.stop[row];
    many = p + 1;
    many_end = end;
  }
  Index found = 0;
  for (Index s = few + threadIdx.x % Size; s < few_end; s += Size) {
    const Index column = rows.columns[s];
    many = lower_bound(rows.columns, many, many_end, column);
    if (many == many_end) break;  // all further columns are greater still
    if (rows.columns[many] == column) {
      ++found;
      add(rows.support + s, Index(1));
      add(rows.support + many, Index(1));
    }
  }
  __syncwarp();
  found = warp_sum(found);
  if (lane() == 0 && found > 0) add(rows.support + p, found);
}

// Counters of a pass: edges left, then the lengths of the two lists of tasks. Counting clears the
// first for pruning, and pruning the others for the next count, so that the host need not.
constexpr int kLeft = 0;
constexpr int kTasks = 1;

__device__ inline bool is_first_thread() { return blockIdx.x == 0 && threadIdx.x == 0; }

// A thread owns a row: all tasks of it, one after the other.
template <typename Index>
__global__ void support_coarse(const Index* ptr, const Index* stop, const Index* columns,
                               Index* support, Index n_rows, Index* counters) {
  if (is_first_thread()) counters[kLeft] = 0;
  const Rows<Index> rows{ptr, stop, columns, support};
  const Index step = Index(gridDim.x) * blockDim.x;
  for (Index i = Index(blockIdx.x) * blockDim.x + threadIdx.x; i < n_rows; i += step) {
    for (Index p = ptr[i]; columns[p] != 0; ++p) merge_task(rows, p);
  }
}

// A thread owns a non-zero, and leaves it to a warp or a block where the lists are long.
//
// row: the row of each place. tasks: two lists of n_slots places, for warps and for blocks. Without
// lists (nullptr) threads do all tasks, as in the paper.
template <typename Index>
__global__ void support_fine(const Index* ptr, const Index* stop, const Index* columns,
                             Index* support, const Index* row, Index n_slots, Index* tasks,
                             Index* counters) {
  if (is_first_thread()) counters[kLeft] = 0;
  const Rows<Index> rows{ptr, stop, columns, support};
  const Index step = Index(gridDim.x) * blockDim.x;
  for (Index p = Index(blockIdx.x) * blockDim.x + threadIdx.x; p < n_slots; p += step) {
    const Index column = columns[p];
    if (column == 0) continue;
    if (tasks != nullptr) {
      const Index rest = stop[row[p]] - (p + 1);
      const Index other = stop[column - 1] - ptr[column - 1];
      const Index shorter = rest < other ? rest : other;
      if (shorter == 0) continue;
      if (rest + other > kLongForThread) {
        const int list = shorter > kLongForWarp ? 1 : 0;
        tasks[list * n_slots + add(counters + kTasks + list, Index(1))] = p;
        continue;
      }
    }
    merge_task(rows, p);
  }
}

// Size threads own a non-zero of a list.
template <int Size, typename Index>
__global__ void support_listed(const Index* ptr, const Index* stop, const Index* columns,
                               Index* support, const Index* row, const Index* tasks,
                               const Index* n_tasks) {
  const Rows<Index> rows{ptr, stop, columns, support};
  const Index step = Index(gridDim.x) * (blockDim.x / Size);
  const Index n = *n_tasks;
  for (Index t = Index(blockIdx.x) * (blockDim.x / Size) + threadIdx.x / Size; t < n; t += step) {
    const Index p = tasks[t];
    search_task<Size>(rows, p, stop[row[p]]);
  }
}

// A warp owns a row: edges with enough support move left, zeros follow, supports start from 0 again.
template <typename Index>
__global__ void prune(const Index* ptr, Index* stop, Index* columns, Index* edge, Index* support,
                      Index n_rows, Index needed, Index* counters) {
  if (is_first_thread()) counters[kTasks] = counters[kTasks + 1] = 0;
  const Index step = Index(gridDim.x) * (blockDim.x / kWarp);
  const Index first = Index(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  Index left = 0;
  for (Index i = first; i < n_rows; i += step) {
    const Index end = stop[i];
    Index put = ptr[i];
    for (Index base = ptr[i]; base < end; base += kWarp) {
      const Index p = base + lane();
      const bool there = p < end;
      const Index column = there ? columns[p] : 0;
      const Index number = there ? edge[p] : 0;
      const bool keep = there && support[p] >= needed;
      const unsigned kept = __ballot_sync(kAll, keep);
      __syncwarp();  // all lanes have read before any writes
      if (there) {
        columns[p] = 0;
        support[p] = 0;
      }
      __syncwarp();  // zeros are written before columns, some to the same places
      if (keep) {
        const Index place = put + __popc(kept & ((1u << lane()) - 1u));
        columns[place] = column;
        edge[place] = number;
      }
      __syncwarp();  // this part of the row is done before the next one is read
      put += __popc(kept);
    }
    left += put - ptr[i];
    if (lane() == 0) stop[i] = put;
  }
  if (lane() == 0 && left > 0) add(counters + kLeft, left);
}

// Graphs to be peeled: whole rows (neighbors below and above), edges numbered by their higher node.
template <typename Index>
struct Peel {
  const Index* ptr;
  const Index* node;
  const Index* edge;
  const Index* low;
  const Index* high;
  Index* support;
  Index* queue;
  Index* trussness;
};

// Threads that peel one graph: those of a block.
struct BlockTeam {
  __device__ unsigned rank() const { return threadIdx.x; }
  __device__ unsigned size() const { return blockDim.x; }
  __device__ void sync() { __syncthreads(); }
};

// Threads that peel one graph: all. Every block must be running, so there are no more blocks than
// multiprocessors.
struct GridTeam {
  unsigned* arrived;

  __device__ unsigned rank() const { return blockIdx.x * blockDim.x + threadIdx.x; }
  __device__ unsigned size() const { return gridDim.x * blockDim.x; }
  __device__ void sync() {
    __syncthreads();  // the block has written what it had to
    if (threadIdx.x == 0) {
      __threadfence();
      const unsigned ticket = atomicAdd(arrived, 1u);
      const unsigned target = (ticket / gridDim.x + 1) * gridDim.x;
      // As a difference, which survives the overflow of the counter.
      while (static_cast<int>(load(arrived) - target) < 0) {
      }
      __threadfence();
    }
    __syncthreads();  // the block goes on when all blocks have arrived
  }
};

// Take one triangle from an edge, unless it is in the frontier; queue it when it reaches the level.
template <typename Index>
__device__ void lower(const Peel<Index>& peel, Index f, Index level, Index* tail) {
  const Index before = add(peel.support + f, Index(-1));
  if (before == level + 1) {
    peel.queue[add(tail, Index(1))] = f;
  } else if (before <= level) {
    add(peel.support + f, Index(1));
  }
}

// A warp takes the triangles of an edge of the frontier away. Of a triangle with two edges in the
// frontier only the lower one takes it away.
template <typename Index>
__device__ void strike(const Peel<Index>& peel, Index e, Index level, Index* tail) {
  Index few = peel.low[e], many = peel.high[e];
  if (peel.ptr[few + 1] - peel.ptr[few] > peel.ptr[many + 1] - peel.ptr[many]) {
    few = peel.high[e];
    many = peel.low[e];
  }
  const Index end = peel.ptr[few + 1];
  const Index many_end = peel.ptr[many + 1];
  Index q = peel.ptr[many];
  for (Index p = peel.ptr[few] + lane(); p < end; p += kWarp) {
    q = lower_bound(peel.node, q, many_end, peel.node[p]);
    if (q == many_end) break;
    if (peel.node[q] != peel.node[p]) continue;
    const Index f = peel.edge[p];
    const Index g = peel.edge[q];
    const Index of_f = load(peel.support + f);
    const Index of_g = load(peel.support + g);
    if (of_f == kGone || of_g == kGone) continue;
    if (of_f != kFrontier && (of_g != kFrontier || e < g)) lower(peel, f, level, tail);
    if (of_g != kFrontier && (of_f != kFrontier || e < f)) lower(peel, g, level, tail);
  }
  __syncwarp();
}

// Peel the edges first to last - 1. counters: least support left, and the end of the queue.
template <typename Team, typename Index>
__device__ void peel_edges(const Peel<Index>& peel, Team team, Index first, Index last,
                           Index* counters) {
  Index* least = counters;
  Index* tail = counters + 1;
  Index done = 0;
  const Index n = last - first;
  const Index nothing = n + 1;  // no edge of n lies in so many triangles
  while (done < n) {
    if (team.rank() == 0) {
      *least = nothing;
      *tail = first;
    }
    team.sync();  // counters are set before anyone uses them
    Index mine = nothing;
    for (Index e = first + team.rank(); e < last; e += team.size()) {
      const Index support = load(peel.support + e);
      if (support != kGone && support < mine) mine = support;
    }
    if (mine < nothing) atomicMin(least, mine);
    team.sync();  // the least support is known
    const Index level = load(least);
    for (Index e = first + team.rank(); e < last; e += team.size()) {
      if (load(peel.support + e) == level) peel.queue[add(tail, Index(1))] = e;
    }
    team.sync();  // the first frontier is complete
    Index begin = first;
    Index end = load(tail);
    while (begin < end) {
      for (Index x = begin + team.rank(); x < end; x += team.size()) {
        const Index e = load(peel.queue + x);
        peel.support[e] = kFrontier;
        peel.trussness[e] = level + 2;
      }
      team.sync();  // the frontier is marked before any of its triangles goes
      done += end - begin;
      if (done < n && level > 0) {
        for (Index x = begin + team.rank() / kWarp; x < end; x += team.size() / kWarp) {
          strike(peel, load(peel.queue + x), level, tail);
        }
      }
      team.sync();  // all triangles of the frontier are gone, the next one is complete
      for (Index x = begin + team.rank(); x < end; x += team.size()) {
        peel.support[load(peel.queue + x)] = kGone;
      }
      begin = end;
      end = load(tail);
      team.sync();  // everyone has read the end of the queue before it moves
    }
  }
}

// A block owns a graph, and takes the next one when it is done.
template <typename Index>
__global__ void peel_blocks(const Index* ptr, const Index* node, const Index* edge,
                            const Index* low, const Index* high, Index* support, Index* queue,
                            Index* trussness, const Index* edge_ptr, const Index* graphs,
                            Index n_graphs, Index* counters, Index* next) {
  const Peel<Index> peel{ptr, node, edge, low, high, support, queue, trussness};
  __shared__ Index taken;  // 1
  while (true) {
    if (threadIdx.x == 0) taken = add(next, Index(1));
    __syncthreads();  // the number is there
    const Index x = taken;
    __syncthreads();  // and read before it changes
    if (x >= n_graphs) return;
    const Index g = graphs[x];
    peel_edges(peel, BlockTeam(), edge_ptr[g], edge_ptr[g + 1], counters + 2 * x);
  }
}

// All threads own one graph.
template <typename Index>
__global__ void __launch_bounds__(1024)
    peel_grid(const Index* ptr, const Index* node, const Index* edge, const Index* low,
              const Index* high, Index* support, Index* queue, Index* trussness, Index first,
              Index last, Index* counters, unsigned* arrived) {
  const Peel<Index> peel{ptr, node, edge, low, high, support, queue, trussness};
  peel_edges(peel, GridTeam{arrived}, first, last, counters);
}

}  // namespace truss
