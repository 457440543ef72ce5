// SPDX-License-Identifier: BSD-3-Clause
// The plan of a product with A in compressed rows: an order of rows and items for spmm.cuh, both
// made where A lies. Include spmm.cuh and spmm_count.cuh first, which has the first two of the three
// steps: here each block of threads puts the rows of its tile in order, and cuts items.

namespace spmm {

// The sorted bins, in shared memory.
struct Sorted {
  int n;
  long long place[kBins + 1], before[kBins + 1];
};

// The last of the bins, from the first that is not split to the sorted ones' end, that begins no
// later than a number.
__device__ inline int last_bin(const long long (&begins)[kBins + 1], int n, long long scale,
                               long long number) {
  int low = 1, high = n;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (begins[middle] * scale <= number) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// Where block k of n begins among sorted rows: the first place with k / n of the work before it.
__device__ inline long long cut(const Sorted& s, long long n, long long work, long long k) {
  const int bin = last_bin(s.before, s.n, n, k * work);
  const long long left = k * work - s.before[bin] * n;
  const long long each = n * (bin < s.n ? entries_of(bin) + kRowCost : 1);
  return s.place[bin] + (left + each - 1) / each;
}

__device__ inline long long work_before(const Sorted& s, long long place, int bin) {
  const int each = bin < s.n ? entries_of(bin) + kRowCost : 0;
  return s.before[bin] + (place - s.place[bin]) * each;
}

// Warps of a team for sorted rows from first to last - 1; 0 where they are sparse.
__device__ inline int team_for(const Sorted& s, long long first, long long last,
                               double threshold) {
  if (first >= last) return 0;
  const int bin = last_bin(s.place, s.n, 1, first);
  const long long work = work_before(s, last, last_bin(s.place, s.n, 1, last)) -
                         work_before(s, first, bin);
  if (double(work - kRowCost * (last - first)) < threshold * double(last - first)) return 0;
  int n_warps = 1;
  while (n_warps < kWarps && n_warps * 32 < entries_of(bin)) n_warps *= 2;
  return n_warps;
}

// Items of blocks, as far as they do not begin or end among light rows.
template <typename Index>
__device__ void cut_sorted(const Plan<Index>& p, int tile, const Sorted& s, const Header& header) {
  const long long n = p.table->n_blocks, work = p.table->work;
  const long long sorted = s.n > 0 ? s.before[s.n] : 0;
  const int step = p.n_tiles * kPlanThreads;
  for (long long k = (long long)tile * kPlanThreads + threadIdx.x; k < n; k += step) {
    Item& item = p.items[header.n_pieces + k];
    item.slot = item.n_pieces = item.n_warps = 0;
    if (k == 0 && s.n == 0) item.first = 0;
    if (s.n == 0 || k * work > sorted * n) continue;
    const long long first = item.first = cut(s, n, work, k);
    if ((k + 1) * work > sorted * n) continue;
    const long long last = item.last = cut(s, n, work, k + 1);
    item.n_warps = team_for(s, first, last, header.threshold);
  }
}

// Ends the blocks that a light row ends, given its place and the work before and behind it.
__device__ inline void cut_behind(Item* blocks, long long n, long long work, long long place,
                                  long long before, long long behind) {
  const long long last = behind * n / work;
  for (long long k = before * n / work + 1; k <= last; ++k) {
    blocks[k - 1].last = place + 1;
    if (k < n) blocks[k].first = place + 1;
  }
}

// Items for the pieces of the long rows that lanes of a warp have; returns the next slot.
__device__ inline long long cut_long(Item* items, bool is_long, long long place, long long n,
                                     long long slot) {
  for (unsigned left = __ballot_sync(kAll, is_long); left != 0; left &= left - 1) {
    const int lane = __ffs(left) - 1;
    const long long row = __shfl_sync(kAll, place, lane);
    const long long n_pieces = n_pieces_of(__shfl_sync(kAll, n, lane));
    for (long long piece = threadIdx.x % 32; piece < n_pieces; piece += 32) {
      items[slot + piece] = {-1, row, piece, slot, n_pieces};
    }
    slot += n_pieces;
  }
  return slot;
}

// Rows, work and pieces of a warp, or of what is before it.
struct Sums {
  long long light, work, n_pieces;
};

// Where the light and the long rows of each warp begin.
template <typename Index>
__device__ Sums before_warp(const Plan<Index>& p, int tile, const Sorted& s, const Counts& counts,
                            long long n_pieces, Sums (&sums)[kPlanWarps]) {
  const int warp = threadIdx.x / 32;
  Sums own{0, 0, n_pieces}, tiles{};
  for (int bin = s.n + threadIdx.x % 32; s.n > 0 && bin < kBins; bin += 32) {
    const long long each = entries_of(bin) + kRowCost;
    const long long before = p.counts[(long long)tile * kBins + bin];
    own.light += counts[warp][bin];
    own.work += counts[warp][bin] * each;
    tiles.light += before;
    tiles.work += before * each;
  }
  own.light = warp_sum(own.light), own.work = warp_sum(own.work);
  if (threadIdx.x % 32 == 0) sums[warp] = own;
  __syncthreads();  // the sums of all warps are there
  Sums found{warp_sum(tiles.light), warp_sum(tiles.work), p.longs[tile].n_pieces};
  if (s.n > 0) found.light += s.place[s.n], found.work += s.before[s.n];
  for (int w = 0; w < warp; ++w) {
    found.light += sums[w].light;
    found.work += sums[w].work;
    found.n_pieces += sums[w].n_pieces;
  }
  return found;
}

// Replaces the counts of each warp by those of the warps before, and adds tiles before to places.
template <typename Index>
__device__ void begin_bins(const Plan<Index>& p, int tile, Sorted& s, Counts& counts) {
  for (int bin = threadIdx.x; bin < s.n; bin += kPlanThreads) {
    unsigned sum = 0;
    for (int w = 0; w < kPlanWarps; ++w) {
      const unsigned own = counts[w][bin];
      counts[w][bin] = sum;
      sum += own;
    }
    s.place[bin] += p.counts[(long long)tile * kBins + bin];
  }
}

// Third step: rows take their places, 32 at a time.
template <typename Index>
__device__ void place_rows(const Plan<Index>& p, int tile, const Sorted& s, Counts& counts,
                           Sums before, long long n_pieces) {
  const Span rows = rows_of_warp(p, tile);
  const long long n_blocks = p.table->n_blocks, work = p.table->work;
  unsigned* next = counts[threadIdx.x / 32];
  const unsigned lane = threadIdx.x % 32, lower = (1u << lane) - 1;
  for (long long first = rows.begin; first < rows.end; first += 32) {
    const long long row = first + lane;
    const bool there = row < rows.end;
    const long long n = there ? entries(p, row) : 0;
    const int bin = there ? min(bin_of(n), s.n) : kBins + 1;  // s.n for all light ones
    const bool is_light = bin == s.n;
    const unsigned alike = __match_any_sync(kAll, bin);
    const int rank = __popc(alike & lower);
    long long place = before.light + rank;
    if (there && !is_light) place = s.place[bin] + next[bin] + rank;
    if (s.n == 0) place = row;
    __syncwarp();  // all have read the counts
    if (there && !is_light && rank == 0) next[bin] += __popc(alike);
    __syncwarp();  // the counts are there for the next rows
    if (there) p.order[place] = Index(row);
    before.n_pieces = cut_long(p.items, s.n > 0 && bin == 0, place, n, before.n_pieces);
    if (s.n == kBins) continue;  // no row is light
    const long long own = is_light ? n + kRowCost : 0, up_to = sum_up_to(own);
    long long here = before.work + up_to - own;
    if (there && s.n == 0) here = p.ptr[row] + kRowCost * row;
    if (is_light) cut_behind(p.items + n_pieces, n_blocks, work, place, here, here + own);
    before.light += __popc(__ballot_sync(kAll, is_light));
    before.work += __shfl_sync(kAll, up_to, 31);
  }
}

template <typename Index>
__device__ void place_tile(const Plan<Index>& p, int tile, Counts& counts, Long own, Sorted& s) {
  __shared__ Sums sums[kPlanWarps];
  if (threadIdx.x == 0) s.n = int(p.table->n_sorted);
  for (int bin = threadIdx.x; bin <= kBins; bin += kPlanThreads) {
    s.place[bin] = p.table->place[bin];
    s.before[bin] = p.table->before[bin];
  }
  __syncthreads();  // bins are there for all
  const Header header = *p.header;
  cut_sorted(p, tile, s, header);
  const Sums before = before_warp(p, tile, s, counts, own.n_pieces, sums);
  __syncthreads();  // items are cut, and counts read, before places and counts change
  begin_bins(p, tile, s, counts);
  __syncthreads();  // bins begin where they should for all
  place_rows(p, tile, s, counts, before, header.n_pieces);
}

template <typename Index>
__global__ void __launch_bounds__(kPlanThreads)
    plan(const Index* ptr, Index* order, Header* header, Item* items, Table* table, Long* longs,
         unsigned* counts, long long n_rows, long long n_blocks, long long n_tiles, long long tile,
         long long engine, long long steps) {
  __shared__ Counts of_warps;
  __shared__ Sorted sorted;
  __shared__ Long longs_of_warps[kPlanWarps];
  const Plan<Index> p{ptr,    order,  header,   items,        table,    longs,
                      counts, n_rows, n_blocks, int(n_tiles), int(tile)};
  const int own_tile = blockIdx.x;
  Long own{};
  if (steps & (kCount | kPlace)) own = count_rows(p, own_tile, of_warps);
  if (steps & kCount) count_tile(p, own_tile, of_warps, own, longs_of_warps);
  __syncthreads();  // what this block has counted is there for all of it
  if (steps & kSum) sum_counts(p, int(engine), sorted.place);
  __syncthreads();  // and the table
  if (steps & kPlace) place_tile(p, own_tile, of_warps, own, sorted);
}

}  // namespace spmm
