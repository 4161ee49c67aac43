// A block multiplies a tile of rows by a tile of the vocabulary and finds the keys and summaries
// that merge_row() needs (tile_logits.h). Blocks take one tile after another, and copy the next one
// while they compute; the table's first stages are fetched before wait_for_previous_kernel(). Tiles
// of the same part of the vocabulary are computed one after another, so that the table is read from
// memory once.
//
// Bans: one suppressed token is removed here. For the other rules, as many extra keys are kept as
// they can ban, and the merge removes the banned ones.
#include "nunchi/kernels/cuda/search/projection_top_tokens.h"

#include "nunchi/kernels/cuda/common/smem_tile.h"
#include "nunchi/kernels/cuda/product/few_rows_tile.h"
#include "nunchi/kernels/cuda/search/tile_logits.h"
#include "nunchi/kernels/cuda/search/tiled_top.h"

namespace nunchi::kernels {
namespace {

constexpr int kStageK = 64;  // elements of K per stage
using Tile = SmemTile<kStageK>;
constexpr int kWarpGroups = 2, kThreads = kWarpGroups * kWgmmaWarps * kWarp;
constexpr int kTableRows = 256;  // per tile

struct TileArguments {
  int rows, vocabulary;
  StepCounts counts;     // the number of rows, if it has one; `rows` is then an upper bound
  int row_tiles, tiles;  // tiles: row_tiles times the tiles of the vocabulary
  int suppressed_token;
  std::int64_t k;
  const __nv_bfloat16* x;      // [rows, k]
  const __nv_bfloat16* table;  // [vocabulary, k]
  VocabularyChunks found;
  Zeros zeros;

  // Chunks differ in length by at most one column.
  __device__ int first_column(int vocabulary_chunk) const {
    return static_cast<int>(std::int64_t{vocabulary_chunk} * vocabulary / found.per_row);
  }
};

// The two warp groups compute 64 rows each of the same chunk, or the same 64 rows of a chunk each.
template <int Rows>
struct TileConfig {
  static constexpr int kGroupsAlongRows = Rows / kWgmmaRows,
                       kGroupsAlongColumns = kWarpGroups / kGroupsAlongRows;
  static constexpr int kColumns = kTableRows / kGroupsAlongColumns;  // per chunk
  static constexpr int kStageBytes = (Rows + kTableRows) * Tile::kRowBytes;
  static constexpr int kStages = Rows == 64 ? 5 : 4;
  static constexpr int kFolds = 1024;  // alignment that the swizzled layout needs
  static constexpr int kBytes = kStages * kStageBytes + kFolds;
  static_assert(kGroupsAlongRows * kGroupsAlongColumns == kWarpGroups && kBytes <= 227 << 10);
};

// Copies rows of a matrix: a thread copies 16 bytes of every kRowsPerPass-th row.
class Source {
 public:
  static constexpr int kRowsPerPass = kThreads / Tile::kChunks;

  // From row `first` on of `all`. Rows past the end repeat the last row; they are not used.
  __device__ Source(const __nv_bfloat16* matrix, std::int64_t k, int first, int all)
      : at_(row_at(matrix, k, min(first + row(), all - 1)) + 8 * chunk()),
        stride_(k),
        left_(max(all - 1 - first - row(), 0)) {}
  // Starts to copy `Count` rows of one stage.
  template <int Count>
  __device__ void fetch(std::uint32_t to, int stage) const {
    static_assert(Count % kRowsPerPass == 0);
    const __nv_bfloat16* from = at_ + stage * kStageK;
    to += Tile::offset_of(row(), chunk());
#pragma unroll
    for (int i = 0; i < Count; i += kRowsPerPass) {
      copy_async16(to + static_cast<std::uint32_t>(i * Tile::kRowBytes),
                   row_at(from, stride_, min(i, left_)), true);
    }
  }

 private:
  static_assert(kRowsPerPass % 8 == 0);  // the layout repeats after eight rows
  __device__ static int row() { return static_cast<int>(threadIdx.x) / Tile::kChunks; }
  __device__ static int chunk() { return static_cast<int>(threadIdx.x) % Tile::kChunks; }

  const __nv_bfloat16* at_;
  std::int64_t stride_;
  int left_;  // rows after the thread's first
};

// A block's sequence of copies: all stages of each of its tiles, into a ring of buffers.
template <int Rows>
class Feed {
 public:
  using Config = TileConfig<Rows>;

  __device__ Feed(const TileArguments& p, std::uint32_t memory)
      : p_(p),
        memory_(memory),
        tile_(static_cast<int>(blockIdx.x)),
        x_(rows()),
        left_(columns(0)),
        right_(columns(1)) {}

  __device__ bool more() const { return tile_ < p_.tiles; }
  __device__ void fetch_table() const {
    constexpr int kHalfRows = kTableRows / 2;
    const std::uint32_t to = buffer() + Rows * Tile::kRowBytes;
    left_.template fetch<kHalfRows>(to, stage_);
    right_.template fetch<kHalfRows>(to + kHalfRows * Tile::kRowBytes, stage_);
  }
  __device__ void fetch_rows() const { x_.template fetch<Rows>(buffer(), stage_); }
  __device__ void advance() {
    buffer_ = buffer_ + 1 < Config::kStages ? buffer_ + 1 : 0;
    if (++stage_ < p_.k / kStageK) return;
    stage_ = 0;
    tile_ += static_cast<int>(gridDim.x);
    x_ = rows();
    left_ = columns(0);
    right_ = columns(1);
  }

 private:
  __device__ Source rows() const { return {p_.x, p_.k, tile_ % p_.row_tiles * Rows, p_.rows}; }
  // Half of the table's rows of a tile: half of a chunk, or one of two chunks.
  __device__ Source columns(int half) const {
    const int part = tile_ / p_.row_tiles;
    const int first = Config::kGroupsAlongColumns == 1
                          ? p_.first_column(part) + half * kTableRows / 2
                          : p_.first_column(2 * part + half);
    return {p_.table, p_.k, first, p_.vocabulary};
  }
  __device__ std::uint32_t buffer() const {
    return memory_ + static_cast<std::uint32_t>(buffer_ * Config::kStageBytes);
  }

  const TileArguments& p_;
  std::uint32_t memory_;
  int tile_, stage_ = 0, buffer_ = 0;
  Source x_, left_, right_;
};

// The part of a tile that a warp group computes.
template <int Rows>
__device__ TilePosition position_of(const TileArguments& p, int tile, int group, int rows) {
  using Config = TileConfig<Rows>;
  const int first_row =
      tile % p.row_tiles * Rows + group / Config::kGroupsAlongColumns * kWgmmaRows;
  const int chunk =
      tile / p.row_tiles * Config::kGroupsAlongColumns + group % Config::kGroupsAlongColumns;
  const int first_column = p.first_column(chunk);
  return {.first_row = first_row,
          .rows = chunk < p.found.per_row ? min(kWgmmaRows, rows - first_row) : 0,
          .chunk = chunk,
          .first_column = first_column,
          .columns = p.first_column(chunk + 1) - first_column,
          .suppressed_token = p.suppressed_token};
}

template <int Rows>
__global__ void __launch_bounds__(kThreads, 1) projection_top_tokens_kernel(const TileArguments p) {
  using Config = TileConfig<Rows>;
  extern __shared__ char memory[];
  const std::uint32_t base =
      (shared_address(memory) + Config::kFolds - 1) / Config::kFolds * Config::kFolds;
  Feed<Rows> feed(p, base);
#pragma unroll 1
  for (int i = 0; i < Config::kStages - 1; ++i) {
    if (feed.more()) feed.fetch_table();
    feed.advance();
  }
  commit_copies();
  wait_for_previous_kernel();
  for (int i = static_cast<int>(threadIdx.x); blockIdx.x == 0 && i < p.zeros.count; i += kThreads) {
    p.zeros.at[i] = 0;
  }
  Feed<Rows> same(p, base);
#pragma unroll 1
  for (int i = 0; i < Config::kStages - 1; ++i) {
    if (same.more()) same.fetch_rows();
    commit_copies();
    same.advance();
  }
  const int rows = static_cast<int>(p.counts.rows(p.rows)),
            stages = static_cast<int>(p.k / kStageK);
  const int group = static_cast<int>(threadIdx.x) / (kWgmmaWarps * kWarp);
  const int own_x = group / Config::kGroupsAlongColumns * kWgmmaRows,
            own_table = Rows + group % Config::kGroupsAlongColumns * Config::kColumns;
  int buffer = 0;
  for (int tile = static_cast<int>(blockIdx.x); tile < p.tiles;
       tile += static_cast<int>(gridDim.x)) {
    TileLogits<Config::kColumns> logits;
#pragma unroll 1
    for (int stage = 0; stage < stages; ++stage) {
      // Copies of later stages may still be in flight.
      wait_for_copy_groups<Config::kStages - 2>();
      fence_shared_writes();
      __syncthreads();
      const std::uint32_t x = base + static_cast<std::uint32_t>(buffer * Config::kStageBytes);
      logits.add(x + static_cast<std::uint32_t>(own_x * Tile::kRowBytes),
                 x + static_cast<std::uint32_t>(own_table * Tile::kRowBytes), stage == 0);
      // All threads have finished reading the previous stage, so its buffer is refilled.
      if (feed.more()) {
        feed.fetch_table();
        feed.fetch_rows();
      }
      commit_copies();
      feed.advance();
      buffer = buffer + 1 < Config::kStages ? buffer + 1 : 0;
      logits.wait();
    }
    logits.find(position_of<Rows>(p, tile, group, rows), p.found);
  }
}

template <int Rows>
void launch(CudaContext& ctx, TileArguments arguments) {
  using Config = TileConfig<Rows>;
  constexpr auto kernel = projection_top_tokens_kernel<Rows>;
  arguments.row_tiles = static_cast<int>(div_ceil(arguments.rows, Rows));
  arguments.tiles = arguments.row_tiles * static_cast<int>(div_ceil(arguments.found.per_row,
                                                                    Config::kGroupsAlongColumns));
  allow_shared_memory(kernel, Config::kBytes);
  launch_overlapped(
      ctx, "projection_top_tokens", kernel,
      {.blocks = dim3(static_cast<unsigned>(std::min(arguments.tiles, ctx.multiprocessors()))),
       .threads = kThreads,
       .shared = Config::kBytes},
      arguments);
}

// Wide chunks have too few groups for a good threshold if more keys are kept.
constexpr std::int64_t kMaxKeptForWideTiles = 8;

// Calls f.operator()<Rows>() with the rows of the best tile.
template <class F>
decltype(auto) with_rows(std::int64_t rows, std::int64_t kept, F&& f) {
  if (rows <= 64 || kept > kMaxKeptForWideTiles) return f.template operator()<64>();
  return f.template operator()<128>();
}

constexpr std::int64_t kMaxTileRows = 1024, kMaxKept = 16;
// Capacity of a chunk's keys, a few times as many as are kept. Only rows with many equal logits
// have more.
constexpr int kCapacity = kWarp;
static_assert(kMaxKept <= TileLogits<kTableRows>::kMaxKept && kMaxKept <= kCapacity);

std::int64_t kept_of(const TopAllowedTokens<float>& p) {
  return p.top.count + p.bans.max_banned + p.bans.suppressed_count;
}

// Both kernels as one profile entry.
struct TopOfTiles {
  const ProjectionTopTokens<BFloat16>& all;
  const char* name() const { return "projection_top_tokens"; }
  Work work() const { return all.work(); }
};

}  // namespace

bool can_find_in_tiles(const CudaContext& ctx, const ProjectionTopTokens<BFloat16>& p) {
  const Product<BFloat16, float>& product = p.product;
  const std::int64_t kept = kept_of(p.allowed);
  return !ctx.deterministic() && !p.allowed.bans.any_ngram &&
         p.allowed.bans.suppressed_count <= kSuppressedLanes &&
         p.allowed.top.rows <= kMaxTileRows && kept <= kMaxKept && product.n > kept &&
         product.n < 1 << 24 && product.k % kStageK == 0 && product.k > 0 && !product.transpose_a &&
         product.transpose_b && !product.accumulate && product.bias == nullptr && !product.relu &&
         product.residual == nullptr && aligned(product.a) && aligned(product.b);
}

std::size_t TiledTop::chunks_of(const ProjectionTopTokens<BFloat16>& p) {
  const std::int64_t rows = p.allowed.top.rows;
  const std::int64_t each = with_rows(rows, kept_of(p.allowed), [&]<int Rows>() {
    return div_ceil(p.product.n, TileConfig<Rows>::kColumns);
  });
  return static_cast<std::size_t>(rows * each);
}

std::size_t TiledTop::bytes_of(const ProjectionTopTokens<BFloat16>& p) {
  return chunks_of(p) * (kCapacity * sizeof(Key) + sizeof(ChunkSummary));
}

TiledTop::TiledTop(CudaContext& ctx, const ProjectionTopTokens<BFloat16>& p, const Zeros& zeros)
    : memory_(ctx.arena(), bytes_of(p)) {
  const Product<BFloat16, float>& product = p.product;
  const TopTokens<float>& top = p.allowed.top;
  const std::int64_t kept = kept_of(p.allowed);
  const std::size_t all = chunks_of(p);
  auto* keys = memory_.as<Key>();
  auto* summaries = reinterpret_cast<ChunkSummary*>(keys + all * kCapacity);
  const VocabularyChunks found{
      .per_row = static_cast<int>(all / static_cast<std::size_t>(top.rows)),
      .kept = static_cast<int>(kept),
      .capacity = kCapacity,
      .keys = keys,
      .summaries = summaries};
  merge_ = {.from = found,
            .rows = static_cast<int>(top.rows),
            .count = static_cast<int>(top.count),
            .banned = nullptr,
            .bans = true,
            .rules = rules_of(p.allowed.bans),
            .log_probs = top.log_probs,
            .ids = top.ids};
  const TileArguments arguments{.rows = merge_.rows,
                                .vocabulary = static_cast<int>(product.n),
                                .counts = p.allowed.bans.counts,
                                .row_tiles = 0,
                                .tiles = 0,
                                .suppressed_token = p.allowed.bans.suppressed_token,
                                .k = product.k,
                                .x = native(product.a),
                                .table = native(product.b),
                                .found = found,
                                .zeros = zeros};
  with_rows(top.rows, kept, [&]<int Rows>() { launch<Rows>(ctx, arguments); });
}

namespace {

template <class Target>
void compute(ContextOf<Target>& ctx, const TopOfTiles& p) {
  const TiledTop found(ctx, p.all);
  merge_chunks(ctx, found.merge());
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ProjectionTopTokens<T>& p) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (p.allowed.top.rows == 0 || p.allowed.top.count == 0) return;
    if (can_find_in_tiles(ctx, p)) return run(ctx, TopOfTiles{p});
  }
  const ScratchMemory scores(ctx.arena(), p.logits_bytes());
  const auto [product, allowed] = p.unfused(scores.as<Accumulator<T>>());
  run(ctx, product);
  run(ctx, allowed);
}
template void compute<Cuda>(CudaContext&, const ProjectionTopTokens<float>&);
template void compute<Cuda>(CudaContext&, const ProjectionTopTokens<BFloat16>&);

}  // namespace nunchi::kernels
