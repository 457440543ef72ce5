// SPDX-License-Identifier: BSD-3-Clause
// What a plan of a product with A in compressed rows goes by: its rows counted by their entries.
// Include spmm.cuh first; SPMM_LONG, SPMM_PIECE and SPMM_ROW_COST are defined by
// propagation/cuda_plan.py.
//
// Rows are counted by their entries and put in order by these counts, in three steps, each of which
// may be a launch of its own:
//   count   each block of threads counts the rows of one tile of consecutive rows;
//   sum     one block adds the counts up and chooses what is sorted;
//   place   each block puts the rows of its tile in order, and items are cut (spmm_plan.cuh).
// Where one tile holds all rows, one launch does the three.
//
// Bins stand in the order of the rows: bin 0 holds long rows, which are split, and bin b rows of
// kLong + 1 - b entries. Bins before n_sorted follow each other; the rows of all other bins are
// light, and come last as they stood. Nothing depends on the order in which threads run.

namespace spmm {

constexpr int kPlanThreads = 544;  // of a block: enough for all bins
constexpr int kPlanWarps = kPlanThreads / 32;
constexpr int kLong = SPMM_LONG;        // entries above which several blocks share a row
constexpr int kPiece = SPMM_PIECE;      // entries of a row that one of them takes
constexpr int kRowCost = SPMM_ROW_COST; // what the start of a row costs, in entries
constexpr int kShort = 32;              // entries up to which a row is no burden to its warp
constexpr int kBins = kLong + 2;
constexpr unsigned kAll = 0xffffffffu;  // lanes of a warp

enum Engine { kAuto, kRows, kHeavy, kDegree };
enum Step { kCount = 1, kSum = 2, kPlace = 4 };

// What the second step finds out.
struct Table {
  long long n_sorted;          // bins that are sorted; 0 where rows are neither sorted nor split
  long long n_blocks;          // items that are no pieces
  long long work;              // of all rows that are not split
  long long place[kBins + 1];  // where a bin begins in the order
  long long before[kBins + 1]; // work of rows that are not split and stand before
};

// Of the long rows of a tile.
struct Long {
  long long n_pieces;  // from the second step on: those of the tiles before
  unsigned long long squares;
};

template <typename Index>
struct Plan {
  const Index* ptr;    // (n_rows + 1)
  Index* order;        // (n_rows)
  Header* header;
  Item* items;         // pieces, then blocks
  Table* table;
  Long* longs;         // (n_tiles)
  unsigned* counts;    // (n_tiles, kBins), from the second step on: rows in the tiles before
  long long n_rows;
  long long n_blocks;  // to cut all rows into
  int n_tiles;
  int tile;            // rows of a tile
};

__device__ inline int entries_of(int bin) { return kLong + 1 - bin; }

__device__ inline int bin_of(long long entries) {
  return entries > kLong ? 0 : kLong + 1 - int(entries);
}

template <typename T>
__device__ T warp_sum(T value) {
#pragma unroll
  for (int away = 16; away > 0; away /= 2) value += __shfl_xor_sync(kAll, value, away);
  return value;
}

// The sum of the lanes up to and with the own one.
template <typename T>
__device__ T sum_up_to(T value) {
#pragma unroll
  for (int away = 1; away < 32; away *= 2) {
    const T other = __shfl_up_sync(kAll, value, away);
    if (threadIdx.x % 32 >= away) value += other;
  }
  return value;
}

// Consecutive rows of the warp.
struct Span {
  long long begin, end;
};

template <typename Index>
__device__ Span rows_of_warp(const Plan<Index>& p, int tile) {
  const long long first = (long long)tile * p.tile;
  const long long last = min(first + p.tile, p.n_rows);
  const int each = (p.tile + kPlanThreads - 1) / kPlanThreads * 32;
  const long long begin = min(first + (long long)(threadIdx.x / 32) * each, last);
  return {begin, min(begin + each, last)};
}

template <typename Index>
__device__ long long entries(const Plan<Index>& p, long long row) {
  return (long long)p.ptr[row + 1] - p.ptr[row];
}

__device__ inline long long n_pieces_of(long long entries) {
  return (entries + kPiece - 1) / kPiece;
}

using Counts = unsigned[kPlanWarps][kBins];

// Counts the rows of each warp, and the pieces of its long rows.
template <typename Index>
__device__ Long count_rows(const Plan<Index>& p, int tile, Counts& counts) {
  for (int k = threadIdx.x; k < kPlanWarps * kBins; k += kPlanThreads) (&counts[0][0])[k] = 0;
  __syncthreads();  // all are 0 before the first is counted
  const Span rows = rows_of_warp(p, tile);
  unsigned* own = counts[threadIdx.x / 32];
  Long found{};
#pragma unroll 4
  for (long long row = rows.begin + threadIdx.x % 32; row < rows.end; row += 32) {
    const long long n = entries(p, row);
    atomicAdd(own + bin_of(n), 1u);
    if (n > kLong) {
      found.n_pieces += n_pieces_of(n);
      found.squares += (unsigned long long)n * n;
    }
  }
  return {warp_sum(found.n_pieces), warp_sum(found.squares)};
}

// First step: leaves the counts of the tile.
template <typename Index>
__device__ void count_tile(const Plan<Index>& p, int tile, const Counts& counts, Long own,
                           Long (&longs)[kPlanWarps]) {
  if (threadIdx.x % 32 == 0) longs[threadIdx.x / 32] = own;
  __syncthreads();  // all warps have counted
  for (int bin = threadIdx.x; bin < kBins; bin += kPlanThreads) {
    unsigned total = 0;
    for (int w = 0; w < kPlanWarps; ++w) total += counts[w][bin];
    p.counts[(long long)tile * kBins + bin] = total;
  }
  if (threadIdx.x == 0) {
    Long total{};
    for (const Long& part : longs) {
      total.n_pieces += part.n_pieces;
      total.squares += part.squares;
    }
    p.longs[tile] = total;
  }
}

// Replaces the counts of tiles by those of the tiles before; leaves the totals.
template <typename Index>
__device__ void add_tiles(const Plan<Index>& p, long long (&total)[kBins + 1]) {
  for (int bin = threadIdx.x; bin < kBins; bin += kPlanThreads) {
    unsigned* place = p.counts + bin;
    long long sum = 0;
    for (int tile = 0; tile < p.n_tiles;) {
      unsigned some[16];  // on their way together
#pragma unroll
      for (int k = 0; k < 16; ++k) some[k] = tile + k < p.n_tiles ? place[k * kBins] : 0;
#pragma unroll
      for (int k = 0; k < 16; ++k) {
        if (tile + k < p.n_tiles) place[k * kBins] = unsigned(sum);
        sum += some[k];
      }
      tile += 16;
      place += 16 * kBins;
    }
    total[bin] = sum;
  }
}

// Adds up the long rows in the first warp, as above.
template <typename Index>
__device__ Long add_longs(const Plan<Index>& p) {
  Long sum{};
  for (int first = 0; first < p.n_tiles; first += 32) {
    const int tile = first + int(threadIdx.x);
    const Long own = tile < p.n_tiles ? p.longs[tile] : Long{};
    const long long up_to = sum_up_to(own.n_pieces);
    if (tile < p.n_tiles) p.longs[tile].n_pieces = sum.n_pieces + up_to - own.n_pieces;
    sum.n_pieces += __shfl_sync(kAll, up_to, 31);
    sum.squares += warp_sum(own.squares);
  }
  return sum;
}

// Which engine, and from how many entries on it sorts.
struct Choice {
  Engine engine;
  double threshold;
  int n_sorted;  // bins
};

__device__ inline Choice choose(int engine, double mean, double squares, bool all_short) {
  const double variance = squares - mean * mean, deviation = sqrt(variance > 0 ? variance : 0);
  if (engine == kAuto) engine = deviation > mean ? kDegree : all_short ? kRows : kHeavy;
  const double threshold = mean + deviation / 2;
  if (engine == kDegree) return {kDegree, threshold, kBins};
  // 1 / 0 is not a constant for every compiler.
  if (engine == kRows) return {kRows, __longlong_as_double(0x7ff0000000000000ll), 0};
  const double least = max(threshold, kShort + 1.0);
  return {kHeavy, least, least > kLong ? 1 : kLong + 2 - int(ceil(least))};
}

// Second step, by one block.
template <typename Index>
__device__ void sum_counts(const Plan<Index>& p, int engine, long long (&total)[kBins + 1]) {
  add_tiles(p, total);
  __syncthreads();  // all totals are there for the first warp
  if (threadIdx.x >= 32) return;
  constexpr int kEach = (kBins + 31) / 32;
  const int first = threadIdx.x * kEach, last = min(first + kEach, kBins);
  const Long longs = add_longs(p);
  unsigned long long squares = 0;
  long long n_many = 0;
  for (int bin = first; bin < last; ++bin) {
    const long long n = bin > 0 ? entries_of(bin) : 0;
    squares += total[bin] * n * n;
    n_many += n > kShort || bin == 0 ? total[bin] : 0;
  }
  squares = warp_sum(squares) + longs.squares;
  const double n_rows = double(p.n_rows);
  const long long n_entries = p.ptr[p.n_rows];
  const Choice choice =
      choose(engine, n_entries / n_rows, squares / n_rows, warp_sum(n_many) == 0);
  long long rows = 0, work = 0, all = 0;  // sorted ones of the lane; of all that are not split
  for (int bin = first; bin < last; ++bin) {
    const long long own = bin > 0 ? total[bin] * (entries_of(bin) + kRowCost) : 0;
    all += own;
    if (bin < choice.n_sorted) rows += total[bin], work += own;
  }
  long long place = sum_up_to(rows) - rows, before = sum_up_to(work) - work;
  for (int bin = first; bin < last; ++bin) {
    p.table->place[bin] = place;
    p.table->before[bin] = before;
    if (bin >= choice.n_sorted) continue;
    place += total[bin];
    before += bin > 0 ? total[bin] * (entries_of(bin) + kRowCost) : 0;
  }
  const long long whole = n_entries + kRowCost * p.n_rows;
  const bool splits = choice.n_sorted > 0;
  all = splits ? warp_sum(all) : whole;
  if (last == kBins && first < kBins) {
    p.table->place[kBins] = place;
    p.table->before[kBins] = before;
  }
  if (threadIdx.x > 0) return;
  const long long share = (all * p.n_blocks + whole - 1) / whole;
  const long long n_blocks = min(share, p.n_rows - (splits ? total[0] : 0));
  const long long n_pieces = splits ? longs.n_pieces : 0;
  p.table->n_sorted = choice.n_sorted;
  p.table->n_blocks = n_blocks;
  p.table->work = all;
  *p.header = {n_pieces + n_blocks, n_pieces, choice.engine, choice.threshold};
}

}  // namespace spmm
