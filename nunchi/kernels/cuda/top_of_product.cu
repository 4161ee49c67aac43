// The best of each tile of a product, where it was computed: a block multiplies a tile of rows by a
// tile of the vocabulary and leaves, for each row, what merge_stretches() needs of a stretch.
// Blocks take one tile after another, and the copies of the next are on their way meanwhile; the
// table's first stages are fetched before begin(). Tiles of one part of the vocabulary follow one
// another, so that the table comes from memory once.
//
// Bans: <s> is left out here. What else may be banned depends on a row's hypothesis; so many keys
// more are kept, and the merge strikes them out.
#include "nunchi/kernels/cuda/top_of_product.h"

#include "nunchi/kernels/cuda/row_tile.h"
#include "nunchi/kernels/cuda/stacked_tiles.h"
#include "nunchi/kernels/cuda/stretches.h"
#include "nunchi/kernels/cuda/tiles_found.h"

namespace nunchi::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
constexpr int kStage = 64;  // elements of K
using Tile = SharedTile<kStage>;
constexpr float kLog2E = 1.44269504f;

struct Job {
  int rows, vocabulary;
  StepNow now;           // of the rows, which are a bound if it knows better
  int row_tiles, tiles;  // row_tiles * stretches of a row
  int begin_token;
  std::int64_t k;
  const __nv_bfloat16* x;      // [rows, k]
  const __nv_bfloat16* table;  // [vocabulary, k]
  Stretches found;
  Zeros zeros;
};

// A block's warps stand `kDown` by `kAcross` over its tile; each has kRowBlocks * 16 rows and
// kColumnBlocks * 8 columns.
template <int Rows>
struct Shape {
  static constexpr int kColumns = Rows == 128 ? 256 : 128;
  static constexpr int kDown = Rows >= 64 ? 2 : 1, kAcross = kWarps / kDown;
  static constexpr int kRowBlocks = Rows / kTileRows / kDown;
  static constexpr int kColumnBlocks = kColumns / 8 / kAcross;
  static constexpr int kStageBytes = (Rows + kColumns) * Tile::kRowBytes;
  // Of few rows all of the time goes into fetching the table; of 64, two blocks share a
  // multiprocessor, and one finds its keys while the other multiplies.
  static constexpr int kStages = Rows >= 64 ? 3 : Rows == 32 ? 10 : 12;
  static constexpr int kBlocks = Rows == 64 ? 2 : 1;
  // Lanes that hold a part of a row each.
  static constexpr int kGroups = 4 * kAcross;
  // Keys of a row that are sorted at once, three times what comes of eight that are kept. More come
  // of rows with many equals.
  static constexpr int kMost = 32;
  static_assert(kColumnBlocks % 2 == 0 && kMost >= kAcross);
};

// Beside the stages, in shared memory.
template <int Rows>
struct Findings {
  using Of = Shape<Rows>;
  Key keys[Rows][Of::kMost + 1];
  float group_tops[Rows][Of::kGroups];
  float tops[Rows][Of::kAcross], sums[Rows][Of::kAcross];  // of the warps side by side
  float least[Rows];                                       // what a key's logit must reach
  int count[Rows];
  int slow;  // not 0: some row has too many equals, or what is no number
};

template <int Rows>
constexpr int kSharedBytes = Shape<Rows>::kStages* Shape<Rows>::kStageBytes +
                             static_cast<int>(sizeof(Findings<Rows>));

// The copies of one stage begin, by the block: rows from `first` on, the last one again past the
// last; nothing comes of that.
template <int Count>
__device__ void fetch(std::uint32_t to, const __nv_bfloat16* from, std::int64_t stride, int first,
                      int all) {
  constexpr int kTogether = kThreads / Tile::kChunks;
  const int chunk = static_cast<int>(threadIdx.x) % Tile::kChunks;
#pragma unroll
  for (int i = 0; i < (Count + kTogether - 1) / kTogether; ++i) {
    const int row = i * kTogether + static_cast<int>(threadIdx.x) / Tile::kChunks;
    if (Count % kTogether != 0 && row >= Count) continue;
    copy16(to + Tile::place(row, chunk), from + min(first + row, all - 1) * stride + 8 * chunk,
           true);
  }
}

__device__ inline Key quad_max(Key key) {
#pragma unroll
  for (int lanes = 1; lanes <= 2; lanes *= 2) {
    const auto high = __shfl_xor_sync(kAllLanes, static_cast<std::uint32_t>(key >> 32), lanes);
    const auto low = __shfl_xor_sync(kAllLanes, static_cast<std::uint32_t>(key), lanes);
    key = max(key, Key{high} << 32 | low);
  }
  return key;
}

// A warp's part of a tile of logits, in registers, and what the block makes of it.
template <int Rows>
class Logits {
 public:
  using Of = Shape<Rows>;

  __device__ Logits(const Job& p, int tile)
      : p_(p),
        first_row_(tile % p.row_tiles * Rows),
        stretch_(tile / p.row_tiles),
        first_(stretch_ * Of::kColumns),
        size_(min(p.vocabulary - first_, Of::kColumns)) {}

  // Adds a stage's products.
  __device__ void add(const Tile& x, const Tile& table) {
    const LaneTiles<kStage> rows(x.next(down() * Of::kRowBlocks));
    const auto columns = LaneTiles<kStage>::paired(table.next(across() * Of::kColumnBlocks / 2));
#pragma unroll
    for (int step = 0; step < kStage / 16; ++step) {
      std::uint32_t a[Of::kRowBlocks][4];
      load_blocks(a, rows, step);
#pragma unroll
      for (int j = 0; j < Of::kColumnBlocks; j += 2) {
        std::uint32_t b[4];
        load_block(b, columns.next(j / 2).block(step));
#pragma unroll
        for (int i = 0; i < Of::kRowBlocks; ++i) {
          mma(value_[i][j], a[i], b[0], b[1]);
          mma(value_[i][j + 1], a[i], b[2], b[3]);
        }
      }
    }
  }

  // By all warps, when all stages were added: writes what is found of each row. Of those from
  // `rows` on nobody wants to know.
  __device__ void find(Findings<Rows>& shared, int rows) {
    if (first_row_ >= rows) return;
    const int thread = static_cast<int>(threadIdx.x);
    // Behind the last column: not in any sum.
    if (size_ < Of::kColumns) drop([&](int column) { return column >= size_; });
    Tops own = tops();
    each_row([&](int i, int h, int row) {
      const float top = cuda::quad_max(own.top[i][h]), shift = shift_of(top);
      float sum = 0;
      // To some 20 bits, as good as a sum of so many needs it.
      each_value(i, h, [&](float x, int) { sum += fast_exp2((x - shift) * kLog2E); });
      sum = quad_sum(sum);
      if (quad_lane() == 0) {
        shared.tops[row][across()] = top;
        shared.sums[row][across()] = sum;
      }
    });
    // <s> counts in the sum, and does not come.
    const int begin_at = p_.begin_token - first_;
    const bool begins = begin_at >= 0 && begin_at < size_;
    if (begins) {
      drop([&](int column) { return column == begin_at; });
      own = tops();
    }
    each_row([&](int i, int h, int row) {
      shared.group_tops[row][4 * across() + quad_lane()] = own.top[i][h];
    });
    if (thread < Rows) shared.count[thread] = 0;
    if (thread == 0) shared.slow = 0;
    __syncthreads();
    find_least(shared);
    if (thread < min(Rows, p_.rows - first_row_)) write_sum(shared, thread);
    __syncthreads();
    keep(shared, own);
    __syncthreads();
    // NaNs reach no threshold: a row of them can leave too few.
    const int wanted = min(p_.found.kept, size_ - (begins ? 1 : 0));
    if (thread < min(Rows, rows - first_row_) &&
        (shared.count[thread] < wanted || shared.count[thread] > Of::kMost)) {
      shared.slow = 1;
    }
    __syncthreads();
    if (shared.slow == 0) return sort(shared, rows);
    find_one_by_one(shared, [&](int column) { return column < size_ && column != begin_at; });
  }

 private:
  struct Tops {
    float top[Of::kRowBlocks][2];  // of this lane's part of its rows
  };

  __device__ static int warp() { return static_cast<int>(threadIdx.x) / kWarp; }
  __device__ static int down() { return warp() / Of::kAcross; }
  __device__ static int across() { return warp() % Of::kAcross; }
  __device__ static int quad_lane() { return static_cast<int>(threadIdx.x) % 4; }

  // f(i, h, row of the tile) for this lane's rows.
  template <class F>
  __device__ static void each_row(F&& f) {
    const int first = down() * Of::kRowBlocks * 16 + static_cast<int>(threadIdx.x) % kWarp / 4;
#pragma unroll
    for (int i = 0; i < Of::kRowBlocks; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) f(i, h, first + 16 * i + 8 * h);
    }
  }
  // f(logit, column of the tile) for what this lane has of one of them.
  template <class F>
  __device__ void each_value(int i, int h, F&& f) const {
#pragma unroll
    for (int j = 0; j < Of::kColumnBlocks; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) f(value_[i][j][2 * h + e], column_of(j, e));
    }
  }
  __device__ static int column_of(int j, int e) {
    return (across() * Of::kColumnBlocks + j) * 8 + 2 * quad_lane() + e;
  }
  // Columns for which which(column) become -infinity.
  template <class Which>
  __device__ void drop(Which&& which) {
#pragma unroll
    for (int j = 0; j < Of::kColumnBlocks; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if (!which(column_of(j, e))) continue;
#pragma unroll
        for (int i = 0; i < Of::kRowBlocks; ++i) {
          value_[i][j][e] = value_[i][j][2 + e] = -INFINITY;
        }
      }
    }
  }
  __device__ Tops tops() const {
    Tops found;
    each_row([&](int i, int h, int) {
      found.top[i][h] = -INFINITY;
      each_value(i, h, [&](float x, int) { found.top[i][h] = fmaxf(found.top[i][h], x); });
    });
    return found;
  }

  // What reaches its row's threshold goes to shared memory. All of a lane's are counted before room
  // is asked for, once for each row. What may not come is -infinity, which is no threshold.
  __device__ void keep(Findings<Rows>& shared, const Tops& own) const {
    static_assert(2 * Of::kColumnBlocks <= 32);
    unsigned reach[Of::kRowBlocks][2];  // a bit for each value that does
    int place[Of::kRowBlocks][2] = {};
    each_row([&](int i, int h, int row) {
      const float least = shared.least[row];
      reach[i][h] = 0;
      if (!(own.top[i][h] >= least) || least == -INFINITY) return;
      unsigned bit = 1;
      each_value(i, h, [&](float x, int) {
        reach[i][h] |= x >= least ? bit : 0u;
        bit *= 2;
      });
      place[i][h] = atomicAdd(&shared.count[row], __popc(reach[i][h]));
    });
    each_row([&](int i, int h, int row) {
      if (reach[i][h] == 0) return;
      unsigned bit = 1;
      each_value(i, h, [&](float x, int column) {
        // Too many end in one place behind the others.
        if ((reach[i][h] & bit) != 0) {
          shared.keys[row][min(place[i][h]++, Of::kMost)] = key_of(x, first_ + column);
        }
        bit *= 2;
      });
    });
  }

  // The kept-th highest of the groups' tops: so many logits of the row or more reach it.
  __device__ void find_least(Findings<Rows>& shared) const {
    static_assert(Rows * Of::kGroups % kThreads == 0);
#pragma unroll
    for (int n = 0; n < Rows * Of::kGroups / kThreads; ++n) {
      const int at = n * kThreads + static_cast<int>(threadIdx.x);
      const int row = at / Of::kGroups, group = at % Of::kGroups;
      const float mine = shared.group_tops[row][group];
      int rank = 0;
#pragma unroll
      for (int g = 0; g < Of::kGroups; ++g) {
        const float other = shared.group_tops[row][g];
        rank += other > mine || (other == mine && g < group) ? 1 : 0;
      }
      if (rank == p_.found.kept - 1) shared.least[row] = mine;
    }
  }

  // The stretch's place among those of a row of the tile.
  __device__ std::int64_t place_of(int row) const {
    return std::int64_t{first_row_ + row} * p_.found.each + stretch_;
  }

  __device__ void write_sum(const Findings<Rows>& shared, int row) const {
    float top = -INFINITY, sum = 0;
#pragma unroll
    for (int w = 0; w < Of::kAcross; ++w) top = fmaxf(top, shared.tops[row][w]);
    const float shift = shift_of(top);
#pragma unroll
    for (int w = 0; w < Of::kAcross; ++w) {
      sum += shared.sums[row][w] * fast_exp2((shared.tops[row][w] - shift) * kLog2E);
    }
    p_.found.tops[place_of(row)] = top;
    p_.found.sums[place_of(row)] = sum;
  }

  __device__ void sort(const Findings<Rows>& shared, int rows) const {
    constexpr int kEach = kThreads / Rows;  // threads of a row
    const int row = static_cast<int>(threadIdx.x) / kEach, kept = p_.found.kept;
    if (first_row_ + row >= rows) return;
    const int count = shared.count[row];
    Key* to = p_.found.keys + place_of(row) * kept;
    for (int i = static_cast<int>(threadIdx.x) % kEach; i < max(count, kept); i += kEach) {
      if (i >= count) {
        to[i] = 0;
        continue;
      }
      const Key mine = shared.keys[row][i];
      int rank = 0;
      for (int other = 0; other < count; ++other) rank += shared.keys[row][other] > mine ? 1 : 0;
      if (rank < kept) to[rank] = mine;
    }
  }

  template <class Comes>
  __device__ void find_one_by_one(Findings<Rows>& shared, Comes&& comes) const {
    Key limit[Of::kRowBlocks][2];
    each_row([&](int i, int h, int) { limit[i][h] = ~Key{0}; });
    for (int rank = 0; rank < p_.found.kept; ++rank) {
      __syncthreads();
      each_row([&](int i, int h, int row) {
        Key best = 0;
        each_value(i, h, [&](float x, int column) {
          const Key key = comes(column) ? key_of(x, first_ + column) : 0;
          if (key < limit[i][h]) best = max(best, key);
        });
        best = quad_max(best);
        if (quad_lane() == 0) shared.keys[row][across()] = best;
      });
      __syncthreads();
      each_row([&](int i, int h, int row) {
        Key best = 0;
#pragma unroll
        for (int w = 0; w < Of::kAcross; ++w) best = max(best, shared.keys[row][w]);
        limit[i][h] = best;
        if (across() == 0 && quad_lane() == 0 && first_row_ + row < p_.rows) {
          p_.found.keys[place_of(row) * p_.found.kept + rank] = best;
        }
      });
    }
  }

  const Job& p_;
  int first_row_, stretch_, first_, size_;
  float value_[Of::kRowBlocks][Of::kColumnBlocks][4] = {};
};

template <int Rows>
__global__ void __launch_bounds__(kThreads, Shape<Rows>::kBlocks)
    top_of_product_kernel(const Job p) {
  using Of = Shape<Rows>;
  extern __shared__ __align__(LaneTiles<kStage>::kAligned) char memory[];
  auto& shared = *reinterpret_cast<Findings<Rows>*>(memory + Of::kStages * Of::kStageBytes);
  const int stages = static_cast<int>(p.k / kStage), block = static_cast<int>(blockIdx.x),
            blocks = static_cast<int>(gridDim.x);
  const int items = (p.tiles - block + blocks - 1) / blocks * stages;  // stages of all its tiles
  const std::uint32_t base = shared_address(memory);
  const auto place = [&](int item) {
    return Tile{base + static_cast<std::uint32_t>(item % Of::kStages * Of::kStageBytes)};
  };
  const auto fetch_table = [&](int item) {
    const int part = (block + item / stages * blocks) / p.row_tiles;
    fetch<Of::kColumns>(place(item).address + Rows * Tile::kRowBytes,
                        p.table + item % stages * kStage, p.k, part * Of::kColumns, p.vocabulary);
  };
  const auto fetch_rows = [&](int item) {
    const int part = (block + item / stages * blocks) % p.row_tiles;
    fetch<Rows>(place(item).address, p.x + item % stages * kStage, p.k, part * Rows, p.rows);
  };
#pragma unroll 1
  for (int item = 0; item < min(Of::kStages, items); ++item) fetch_table(item);
  group_copies();
  begin();
  for (int i = static_cast<int>(threadIdx.x); block == 0 && i < p.zeros.count; i += kThreads) {
    p.zeros.at[i] = 0;
  }
#pragma unroll 1
  for (int item = 0; item < Of::kStages; ++item) {
    if (item < items) fetch_rows(item);
    group_copies();
  }
  const int rows = static_cast<int>(p.now.rows(p.rows));
  int item = 0;
  for (int tile = block; tile < p.tiles; tile += blocks) {
    Logits<Rows> logits(p, tile);
#pragma unroll 1
    for (int stage = 0; stage < stages; ++stage, ++item) {
      // Of the groups since this stage's, one came after each stage before it.
      wait_for_groups<Of::kStages - 2>();
      __syncthreads();
      // All have done with the stage before: another takes its place.
      if (const int next = item - 1 + Of::kStages; item > 0 && next < items) {
        fetch_table(next);
        fetch_rows(next);
      }
      group_copies();
      logits.add(place(item), place(item).next(Rows / kTileRows));
    }
    logits.find(shared, rows);
  }
}

template <int Rows>
void start(CudaContext& ctx, Job job) {
  constexpr auto kernel = top_of_product_kernel<Rows>;
  constexpr int kBytes = kSharedBytes<Rows>;
  static_assert(Shape<Rows>::kBlocks * (kBytes + 1024) <= 228 << 10);
  job.row_tiles = static_cast<int>(parts(job.rows, Rows));
  job.tiles = job.row_tiles * job.found.each;
  allow_shared_memory(kernel, kBytes);
  start_early(ctx, "top_of_product", kernel,
              {.blocks = dim3(static_cast<unsigned>(
                   std::min(job.tiles, Shape<Rows>::kBlocks * ctx.multiprocessors()))),
               .threads = kThreads,
               .shared = kBytes},
              job);
}

// Of more keys the wide tiles' groups tell too little.
constexpr std::int64_t kGoodKept = 8;

// Calls f.operator()<Rows>() for the tiles that suit.
template <class F>
decltype(auto) with_rows(std::int64_t rows, std::int64_t kept, F&& f) {
  if (rows <= 16) return f.template operator()<16>();
  if (rows <= 32) return f.template operator()<32>();
  if (rows <= 64 || kept > kGoodKept) return f.template operator()<64>();
  return f.template operator()<128>();
}

// How many tokens other than <s> may be banned for one row, at most.
std::int64_t most_bans(const BanTokens<float>& p) {
  constexpr std::int64_t kCycles = BanTokens<float>::kLongestCycle;
  // Cycles that have come as often as the longest is long all go on with the same token.
  const std::int64_t cycles = p.max_repeats == 0 ? 0 : p.max_repeats >= kCycles ? 1 : kCycles;
  return cycles + (p.min_length > 0 ? 1 : 0);
}

constexpr std::int64_t kMostTileRows = 1024, kMostKept = 16;

std::int64_t kept_of(const TopAllowed<float>& p) { return p.top.count + most_bans(p.bans); }

// What a profile shows.
struct TopOfTiles {
  const TopOfProduct<BFloat16>& all;
  const char* name() const { return "top_of_product"; }
  Work work() const { return all.work(); }
};

template <class T>
void one_after_another(CudaContext& ctx, const TopOfProduct<T>& p) {
  const ScratchMemory scores(ctx.arena(), p.score_bytes());
  const auto [product, allowed] = p.parts(scores.as<Summed<T>>());
  run(ctx, product);
  run(ctx, allowed);
}

}  // namespace

bool found_in_tiles(const CudaContext& ctx, const TopOfProduct<BFloat16>& p) {
  const Product<BFloat16, float>& q = p.product;
  const std::int64_t kept = kept_of(p.allowed);
  return !ctx.deterministic() && p.allowed.bans.no_repeat_ngram == 0 &&
         p.allowed.top.rows <= kMostTileRows && kept <= kMostKept && q.n > kept && q.n < 1 << 24 &&
         q.k % kStage == 0 && q.k > 0 && !q.transpose_a && q.transpose_b && !q.accumulate &&
         q.bias == nullptr && !q.relu && q.added == nullptr && aligned(q.a) && aligned(q.b);
}

std::size_t TilesFound::stretches_of(const TopOfProduct<BFloat16>& p) {
  const std::int64_t rows = p.allowed.top.rows;
  const std::int64_t each = with_rows(rows, kept_of(p.allowed), [&]<int Rows>() {
    return parts(p.product.n, Shape<Rows>::kColumns);
  });
  return static_cast<std::size_t>(rows * each);
}

std::size_t TilesFound::bytes_of(const TopOfProduct<BFloat16>& p) {
  const auto kept = static_cast<std::size_t>(kept_of(p.allowed));
  return stretches_of(p) * (kept * sizeof(Key) + 2 * sizeof(float));
}

TilesFound::TilesFound(CudaContext& ctx, const TopOfProduct<BFloat16>& p, const Zeros& zeros)
    : memory_(ctx.arena(), bytes_of(p)) {
  const Product<BFloat16, float>& q = p.product;
  const TopTokens<float>& top = p.allowed.top;
  const std::int64_t kept = kept_of(p.allowed);
  const std::size_t all = stretches_of(p);
  auto* keys = memory_.as<Key>();
  auto* tops = reinterpret_cast<float*>(keys + all * static_cast<std::size_t>(kept));
  const Stretches found{.each = static_cast<int>(all / static_cast<std::size_t>(top.rows)),
                        .kept = static_cast<int>(kept),
                        .keys = keys,
                        .tops = tops,
                        .sums = tops + all};
  merge_ = {.from = found,
            .rows = static_cast<int>(top.rows),
            .count = static_cast<int>(top.count),
            .banned = nullptr,
            .bans = true,
            .rules = rules_of(p.allowed.bans),
            .log_probs = top.log_probs,
            .ids = top.ids};
  const Job job{.rows = merge_.rows,
                .vocabulary = static_cast<int>(q.n),
                .now = p.allowed.bans.now,
                .row_tiles = 0,
                .tiles = 0,
                .begin_token = p.allowed.bans.begin_token,
                .k = q.k,
                .x = native(q.a),
                .table = native(q.b),
                .found = found,
                .zeros = zeros};
  with_rows(top.rows, kept, [&]<int Rows>() { start<Rows>(ctx, job); });
}

template <>
void compute(CudaContext& ctx, const TopOfTiles& p) {
  const TilesFound found(ctx, p.all);
  merge_stretches(ctx, found.merge());
}

template <>
void compute(CudaContext& ctx, const TopOfProduct<float>& p) {
  one_after_another(ctx, p);
}
template <>
void compute(CudaContext& ctx, const TopOfProduct<BFloat16>& p) {
  if (p.allowed.top.rows == 0 || p.allowed.top.count == 0) return;
  if (found_in_tiles(ctx, p)) return run(ctx, TopOfTiles{p});
  one_after_another(ctx, p);
}

}  // namespace nunchi::kernels::cuda
