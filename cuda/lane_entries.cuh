// SPDX-License-Identifier: BSD-3-Clause
// A copy of the entries of G' in the order in which the lanes of warps read them, each those of the node
// of its column; see `staged.cuh`.

#pragma once

#include "block.cuh"
#include "pair.cuh"

namespace mgk {

// Entries of G', in rounds of ROUND entries of each column of a group; where a column has fewer,
// others of weight 0 stand in. An entry lies in words of four bytes, those of a warp side by side;
// behind a round lies its window.
template <typename T, class Edge>
struct LaneEntries {
  using Entry = typename Edge::Entry;
  static constexpr int WORDS = Entry::n_words;
  static constexpr int ROUND_WORDS = (ROUND * WORDS + Edge::has_windows) * WARP;
  static_assert(sizeof(Window<T>) <= WARP * sizeof(unsigned), "a window needs more room");

  int* first_round;  // (n_groups + 1) rounds before those of each group
  unsigned* words;   // (n_rounds, ROUND_WORDS), behind it

  __device__ LaneEntries(void* memory, int n_groups)
      : first_round(static_cast<int*>(memory)),
        words(static_cast<unsigned*>(memory) + round_up(n_groups + 1)) {}

  __device__ Index n_bytes(int n_groups, int n_rounds) const {
    return sizeof(unsigned) * (round_up(n_groups + 1) + Index(n_rounds) * ROUND_WORDS);
  }

  __device__ unsigned* round(int number) const { return words + Index(number) * ROUND_WORDS; }

  // Keys of the entries of G that a round meets.
  __device__ Window<T>& window(int number) const {
    return *reinterpret_cast<Window<T>*>(round(number) + ROUND * WORDS * WARP);
  }

  __device__ void store(int number, const Entry (&theirs)[ROUND]) const {
    unsigned* const own = round(number) + threadIdx.x % WARP;
#pragma unroll
    for (int t = 0; t < ROUND; ++t) {
      unsigned copy[sizeof(Entry) / sizeof(unsigned)];
      memcpy(copy, &theirs[t], sizeof(Entry));
#pragma unroll
      for (int word = 0; word < WORDS; ++word) own[(t * WORDS + word) * WARP] = copy[word];
    }
  }

  __device__ void load(int number, Entry (&theirs)[ROUND]) const {
    const unsigned* const own = round(number) + threadIdx.x % WARP;
#pragma unroll
    for (int t = 0; t < ROUND; ++t) {
      unsigned copy[sizeof(Entry) / sizeof(unsigned)] = {};
#pragma unroll
      for (int word = 0; word < WORDS; ++word) copy[word] = own[(t * WORDS + word) * WARP];
      memcpy(&theirs[t], copy, sizeof(Entry));
    }
  }
};

// Order in which a lane goes through its entries where any will do. Loads of PHASE lanes are served
// together, at the speed of the bank from which most of them read: they take turns in choosing one
// from which few others read. For 20 entries a lane, 1.2 lanes read from that bank, rather than 2.4.
struct BankOrder {
  static constexpr int PHASE = 8, BANKS = 8;  // of 16 bytes
  static constexpr int MOST = 64;             // entries

  unsigned long long left;        // bit k for entry k
  unsigned long long counts = 0;  // entries left in each bank, a byte each

  __device__ explicit BankOrder(int n) : left(n >= MOST ? ~0ull : (1ull << n) - 1) {}

  __device__ static int bank_of(int column) { return column % BANKS; }
  __device__ static unsigned long long one(int bank) { return 1ull << (8 * bank); }
  __device__ void count(int column) { counts += one(bank_of(column)); }

  __device__ static int number(unsigned long long counts, int bank) {
    return int(counts >> (8 * bank) & 255);
  }

  // The bank that is next, for all lanes of a warp: of those that the fewest lanes before have chosen,
  // the one with the most entries.
  __device__ int next_bank() const {
    const int lane = threadIdx.x % WARP, first = lane / PHASE * PHASE;
    unsigned long long chosen = 0;  // lanes by bank, a byte each
    int bank = 0;
    for (int turn = 0; turn < PHASE; ++turn) {
      int best = 0;
      for (int other = 0; lane - first == turn && other < BANKS; ++other) {
        const int n = number(counts, other);
        const int score = n == 0 ? 0 : n + (PHASE - number(chosen, other)) * (MOST + 1);
        if (score > best) best = score, bank = other;
      }
      chosen += __shfl_sync(ALL, best > 0 ? one(bank) : 0ull, first + turn);
    }
    return bank;
  }

  // Whether entry k is left and in a bank; then it is left no more.
  __device__ bool take(int k, int bank, int column) {
    if (!(left >> k & 1) || bank_of(column) != bank) return false;
    left -= 1ull << k;
    counts -= one(bank);
    return true;
  }
};

}  // namespace mgk
