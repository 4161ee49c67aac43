// The best of each tile of a product, where it was computed: a block multiplies a tile of rows by a
// tile of the vocabulary and finds what merge_row() needs (tile_logits.h). Blocks take one tile
// after another, and the copies of the next are on their way meanwhile; the table's first stages
// are fetched before wait_for_previous_kernel(). Tiles of one part of the vocabulary follow one
// another, so that the table comes from memory once.
//
// Bans: <s> is left out here. What else may be banned depends on a row's hypothesis; so many keys
// more are kept, and the merge strikes them out.
#include "nunchi/kernels/cuda/search/top_of_product.h"

#include "nunchi/kernels/cuda/common/smem_tile.h"
#include "nunchi/kernels/cuda/product/few_rows_tile.h"
#include "nunchi/kernels/cuda/search/tile_logits.h"
#include "nunchi/kernels/cuda/search/tiles_found.h"

namespace nunchi::kernels {
namespace {

constexpr int kStage = 64;  // elements of K
using Tile = SmemTile<kStage>;
constexpr int kWarpGroups = 2, kThreads = kWarpGroups * kWgmmaWarps * kWarp;
constexpr int kTableRows = 256;  // of a tile

struct Job {
  int rows, vocabulary;
  StepNow now;           // of the rows, which are a bound if it knows better
  int row_tiles, tiles;  // row_tiles * tiles of the vocabulary
  int begin_token;
  std::int64_t k;
  const __nv_bfloat16* x;      // [rows, k]
  const __nv_bfloat16* table;  // [vocabulary, k]
  Stretches found;
  Zeros zeros;

  // Stretches are as long as one another, but for one column.
  __device__ int first_column(int stretch) const {
    return static_cast<int>(std::int64_t{stretch} * vocabulary / found.each);
  }
};

// The two groups of warps stand below one another, each with 64 rows of a stretch, or side by side,
// each with a stretch.
template <int Rows>
struct Shape {
  static constexpr int kDown = Rows / kWgmmaRows, kAcross = kWarpGroups / kDown;
  static constexpr int kColumns = kTableRows / kAcross;  // of a stretch
  static constexpr int kStageBytes = (Rows + kTableRows) * Tile::kRowBytes;
  static constexpr int kStages = Rows == 64 ? 5 : 4;
  static constexpr int kFolds = 1024;  // memory is folded from a multiple of that on
  static constexpr int kBytes = kStages * kStageBytes + kFolds;
  static_assert(kDown * kAcross == kWarpGroups && kBytes <= 227 << 10);
};

// Rows of a matrix, of which a thread copies every kTogether-th, 16 bytes of each.
class Source {
 public:
  static constexpr int kTogether = kThreads / Tile::kChunks;

  // From row `first` on of `all`: the last one again past the last; nothing comes of that.
  __device__ Source(const __nv_bfloat16* matrix, std::int64_t k, int first, int all)
      : at_(row_at(matrix, k, min(first + row(), all - 1)) + 8 * chunk()),
        stride_(k),
        left_(max(all - 1 - first - row(), 0)) {}
  // The copies of `Count` rows of one stage begin.
  template <int Count>
  __device__ void fetch(std::uint32_t to, int stage) const {
    static_assert(Count % kTogether == 0);
    const __nv_bfloat16* from = at_ + stage * kStage;
    to += Tile::offset_of(row(), chunk());
#pragma unroll
    for (int i = 0; i < Count; i += kTogether) {
      copy_async16(to + static_cast<std::uint32_t>(i * Tile::kRowBytes),
                   row_at(from, stride_, min(i, left_)), true);
    }
  }

 private:
  static_assert(kTogether % 8 == 0);  // places in a row repeat after eight
  __device__ static int row() { return static_cast<int>(threadIdx.x) / Tile::kChunks; }
  __device__ static int chunk() { return static_cast<int>(threadIdx.x) % Tile::kChunks; }

  const __nv_bfloat16* at_;
  std::int64_t stride_;
  int left_;  // rows behind the thread's first
};

// What a block fetches: stage after stage of tile after tile, into places in turn.
template <int Rows>
class Feed {
 public:
  using Of = Shape<Rows>;

  __device__ Feed(const Job& p, std::uint32_t memory)
      : p_(p),
        memory_(memory),
        tile_(static_cast<int>(blockIdx.x)),
        x_(rows()),
        left_(columns(0)),
        right_(columns(1)) {}

  __device__ bool more() const { return tile_ < p_.tiles; }
  __device__ void fetch_table() const {
    constexpr int kHalf = kTableRows / 2;
    const std::uint32_t to = place() + Rows * Tile::kRowBytes;
    left_.template fetch<kHalf>(to, stage_);
    right_.template fetch<kHalf>(to + kHalf * Tile::kRowBytes, stage_);
  }
  __device__ void fetch_rows() const { x_.template fetch<Rows>(place(), stage_); }
  __device__ void advance() {
    place_ = place_ + 1 < Of::kStages ? place_ + 1 : 0;
    if (++stage_ < p_.k / kStage) return;
    stage_ = 0;
    tile_ += static_cast<int>(gridDim.x);
    x_ = rows();
    left_ = columns(0);
    right_ = columns(1);
  }

 private:
  __device__ Source rows() const { return {p_.x, p_.k, tile_ % p_.row_tiles * Rows, p_.rows}; }
  // Half of them: of one stretch, or a stretch.
  __device__ Source columns(int half) const {
    const int part = tile_ / p_.row_tiles;
    const int first = Of::kAcross == 1 ? p_.first_column(part) + half * kTableRows / 2
                                       : p_.first_column(2 * part + half);
    return {p_.table, p_.k, first, p_.vocabulary};
  }
  __device__ std::uint32_t place() const {
    return memory_ + static_cast<std::uint32_t>(place_ * Of::kStageBytes);
  }

  const Job& p_;
  std::uint32_t memory_;
  int tile_, stage_ = 0, place_ = 0;
  Source x_, left_, right_;
};

// The tile of one of the groups.
template <int Rows>
__device__ TilePlace dropout_row(const Job& p, int tile, int group, int rows) {
  using Of = Shape<Rows>;
  const int first_row = tile % p.row_tiles * Rows + group / Of::kAcross * kWgmmaRows;
  const int stretch = tile / p.row_tiles * Of::kAcross + group % Of::kAcross;
  const int first_column = p.first_column(stretch);
  return {.first_row = first_row,
          .rows = stretch < p.found.each ? min(kWgmmaRows, rows - first_row) : 0,
          .stretch = stretch,
          .first_column = first_column,
          .columns = p.first_column(stretch + 1) - first_column,
          .begin_token = p.begin_token};
}

template <int Rows>
__global__ void __launch_bounds__(kThreads, 1) top_of_product_kernel(const Job p) {
  using Of = Shape<Rows>;
  extern __shared__ char memory[];
  const std::uint32_t base = (shared_address(memory) + Of::kFolds - 1) / Of::kFolds * Of::kFolds;
  Feed<Rows> ahead(p, base);
#pragma unroll 1
  for (int i = 0; i < Of::kStages - 1; ++i) {
    if (ahead.more()) ahead.fetch_table();
    ahead.advance();
  }
  commit_copies();
  wait_for_previous_kernel();
  for (int i = static_cast<int>(threadIdx.x); blockIdx.x == 0 && i < p.zeros.count; i += kThreads) {
    p.zeros.at[i] = 0;
  }
  Feed<Rows> same(p, base);
#pragma unroll 1
  for (int i = 0; i < Of::kStages - 1; ++i) {
    if (same.more()) same.fetch_rows();
    commit_copies();
    same.advance();
  }
  const int rows = static_cast<int>(p.now.rows(p.rows)), stages = static_cast<int>(p.k / kStage);
  const int group = static_cast<int>(threadIdx.x) / (kWgmmaWarps * kWarp);
  const int own_x = group / Of::kAcross * kWgmmaRows,
            own_table = Rows + group % Of::kAcross * Of::kColumns;
  int place = 0;
  for (int tile = static_cast<int>(blockIdx.x); tile < p.tiles;
       tile += static_cast<int>(gridDim.x)) {
    TileLogits<Of::kColumns> logits;
#pragma unroll 1
    for (int stage = 0; stage < stages; ++stage) {
      // Of the groups since this stage's, one came after each stage before it.
      wait_for_copy_groups<Of::kStages - 2>();
      fence_shared_writes();
      __syncthreads();
      const std::uint32_t x = base + static_cast<std::uint32_t>(place * Of::kStageBytes);
      logits.add(x + static_cast<std::uint32_t>(own_x * Tile::kRowBytes),
                 x + static_cast<std::uint32_t>(own_table * Tile::kRowBytes), stage == 0);
      // All have done with the stage before: another takes its place.
      if (ahead.more()) {
        ahead.fetch_table();
        ahead.fetch_rows();
      }
      commit_copies();
      ahead.advance();
      place = place + 1 < Of::kStages ? place + 1 : 0;
      logits.wait();
    }
    logits.find(dropout_row<Rows>(p, tile, group, rows), p.found);
  }
}

template <int Rows>
void start(CudaContext& ctx, Job job) {
  using Of = Shape<Rows>;
  constexpr auto kernel = top_of_product_kernel<Rows>;
  job.row_tiles = static_cast<int>(div_ceil(job.rows, Rows));
  job.tiles = job.row_tiles * static_cast<int>(div_ceil(job.found.each, Of::kAcross));
  allow_shared_memory(kernel, Of::kBytes);
  launch_overlapped(
      ctx, "top_of_product", kernel,
      {.blocks = dim3(static_cast<unsigned>(std::min(job.tiles, ctx.multiprocessors()))),
       .threads = kThreads,
       .shared = Of::kBytes},
      job);
}

// Of more keys the wide stretches' groups tell too little.
constexpr std::int64_t kGoodKept = 8;

// Calls f.operator()<Rows>() for the tiles that suit.
template <class F>
decltype(auto) with_rows(std::int64_t rows, std::int64_t kept, F&& f) {
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

constexpr std::int64_t kMaxTileRows = 1024, kMaxKept = 16;
// Keys of a stretch: a few times what is kept. More come of rows with many equals.
constexpr int kRoom = kWarp;
static_assert(kMaxKept <= TileLogits<kTableRows>::kMaxKept && kMaxKept <= kRoom);

std::int64_t kept_of(const TopAllowed<float>& p) { return p.top.count + most_bans(p.bans); }

// What a profile shows.
struct TopOfTiles {
  const TopOfProduct<BFloat16>& all;
  const char* name() const { return "top_of_product"; }
  Work work() const { return all.work(); }
};

}  // namespace

bool found_in_tiles(const CudaContext& ctx, const TopOfProduct<BFloat16>& p) {
  const Product<BFloat16, float>& q = p.product;
  const std::int64_t kept = kept_of(p.allowed);
  return !ctx.deterministic() && p.allowed.bans.no_repeat_ngram == 0 &&
         p.allowed.bans.suppressed_count == 0 && p.allowed.top.rows <= kMaxTileRows &&
         kept <= kMaxKept && q.n > kept && q.n < 1 << 24 && q.k % kStage == 0 && q.k > 0 &&
         !q.transpose_a && q.transpose_b && !q.accumulate && q.bias == nullptr && !q.relu &&
         q.added == nullptr && aligned(q.a) && aligned(q.b);
}

std::size_t TilesFound::stretches_of(const TopOfProduct<BFloat16>& p) {
  const std::int64_t rows = p.allowed.top.rows;
  const std::int64_t each = with_rows(rows, kept_of(p.allowed), [&]<int Rows>() {
    return div_ceil(p.product.n, Shape<Rows>::kColumns);
  });
  return static_cast<std::size_t>(rows * each);
}

std::size_t TilesFound::bytes_of(const TopOfProduct<BFloat16>& p) {
  return stretches_of(p) * (kRoom * sizeof(Key) + sizeof(StretchHead));
}

TilesFound::TilesFound(CudaContext& ctx, const TopOfProduct<BFloat16>& p, const Zeros& zeros)
    : memory_(ctx.arena(), bytes_of(p)) {
  const Product<BFloat16, float>& q = p.product;
  const TopTokens<float>& top = p.allowed.top;
  const std::int64_t kept = kept_of(p.allowed);
  const std::size_t all = stretches_of(p);
  auto* keys = memory_.as<Key>();
  auto* heads = reinterpret_cast<StretchHead*>(keys + all * kRoom);
  const Stretches found{.each = static_cast<int>(all / static_cast<std::size_t>(top.rows)),
                        .kept = static_cast<int>(kept),
                        .room = kRoom,
                        .keys = keys,
                        .heads = heads};
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

namespace {

template <class Target>
void compute(ContextOf<Target>& ctx, const TopOfTiles& p) {
  const TilesFound found(ctx, p.all);
  merge_stretches(ctx, found.merge());
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const TopOfProduct<T>& p) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (p.allowed.top.rows == 0 || p.allowed.top.count == 0) return;
    if (found_in_tiles(ctx, p)) return run(ctx, TopOfTiles{p});
  }
  const ScratchMemory scores(ctx.arena(), p.score_bytes());
  const auto [product, allowed] = p.parts(scores.as<Summed<T>>());
  run(ctx, product);
  run(ctx, allowed);
}
template void compute<Cuda>(CudaContext&, const TopOfProduct<float>&);
template void compute<Cuda>(CudaContext&, const TopOfProduct<BFloat16>&);

}  // namespace nunchi::kernels
