// The gradient of a table is a sum over the rows that hold each token, and its bits must not depend
// on the order of blocks: rows are sorted by token with a stable sort and added in that order. The
// sorted rows are split into chunks of a fixed length, so that many blocks share a frequent token;
// the partial sums of a token that spans chunks are joined afterwards.
#include "nunchi/kernels/embedding.h"

#include <cub/device/device_radix_sort.cuh>

#include "nunchi/kernels/cuda/embed_columns.h"

namespace nunchi::kernels {
namespace {

constexpr int kThreads = 256;
// Rows per chunk, and rows that are prefetched together.
constexpr int kChunkRows = 32, kPrefetch = 4;
// Key of rows past the count; sorts after all tokens.
constexpr std::uint32_t kNoKey = 0xFFFFFFFFu;

__device__ std::uint32_t sentence_of(const Rows& rows, std::int64_t row) {
  return rows.sentence != nullptr ? static_cast<std::uint32_t>(rows.sentence[row]) : 0;
}
__device__ std::uint32_t position_of(const Rows& rows, std::int64_t row) {
  return static_cast<std::uint32_t>(rows.position != nullptr ? rows.position[row] : row);
}

// One thread per eight columns of a row.
template <class N, bool Aligned>
__global__ __launch_bounds__(kThreads) void embed_kernel(const Embedding<N> p, const float scale,
                                                         const DropoutParameters dropout) {
  const std::int64_t width = p.width, groups = (width + 7) / 8;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= p.rows.capacity * groups) return;
  wait_for_previous_kernel();
  const std::int64_t row = i / groups, column = i % groups * 8;
  float x[8] = {};
  if (row < real_rows(p.rows)) {
    const std::uint32_t position = position_of(p.rows, row);
    embed_columns<Aligned>(p, scale, p.ids[row], position, column, x);
    if (dropout.active()) {
      float factors[8];
      compute_dropout_factors(dropout, philox::key_of(*dropout.key),
                              static_cast<std::uint32_t>(column), position,
                              sentence_of(p.rows, row), factors);
#pragma unroll
      for (int j = 0; j < 8; ++j) x[j] *= factors[j];
    }
  }
  store_columns<Aligned>(p.out + row * width + column, width - column, x);
}

// The key of each row: its token or, without `ids`, its position. Rows past the count come last.
__global__ void make_keys_kernel(Rows rows, const std::int32_t* ids, std::uint32_t* keys,
                                 std::int32_t* order) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= rows.capacity) return;
  const std::uint32_t key =
      ids != nullptr ? static_cast<std::uint32_t>(ids[row]) : position_of(rows, row);
  keys[row] = row < real_rows(rows) ? key : kNoKey;
  order[row] = static_cast<std::int32_t>(row);
}

// The rows of a batch sorted by the table row that they are added to, and the memory of the sum.
struct SortedRows {
  DropoutParameters dropout;
  float scale;
  const std::uint32_t* keys;  // [T] sorted
  const std::int32_t* order;  // [T] row numbers in sorted order
  float* table;               // [keys, C] gradient of the table, added to
  // [chunks, 2, C] partial sums of tokens that span chunks: the token continued from the previous
  // chunk, and the token that begins in this chunk and continues in the next.
  float* partial;
};

// Adds the rows of one chunk, one thread per eight columns.
template <class N, bool Aligned>
__global__ void add_chunk_kernel(const EmbeddingBackward<N> p, const SortedRows sorted) {
  __shared__ std::uint32_t keys[kChunkRows], sentences[kChunkRows], positions[kChunkRows];
  __shared__ std::int32_t rows[kChunkRows];
  const std::int64_t begin = std::int64_t{blockIdx.x} * kChunkRows;
  const std::int64_t row_count = real_rows(p.rows);
  if (begin >= row_count) return;
  const int count = static_cast<int>(min(row_count - begin, std::int64_t{kChunkRows}));
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    const std::int32_t row = sorted.order[begin + i];
    keys[i] = sorted.keys[begin + i];
    rows[i] = row;
    sentences[i] = sentence_of(p.rows, row);
    positions[i] = position_of(p.rows, row);
  }
  __syncthreads();
  const std::int64_t column = (std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * 8;
  const std::int64_t columns = p.width - column;
  if (columns <= 0) return;
  const std::uint32_t previous_key = begin > 0 ? sorted.keys[begin - 1] : kNoKey;
  const std::uint32_t next_key = begin + count < row_count ? sorted.keys[begin + count] : kNoKey;
  const bool dropping = sorted.dropout.active();
  const philox::Key philox_key = dropping ? philox::key_of(*sorted.dropout.key) : philox::Key{};

  float sum[8] = {};
  for (int first = 0; first < count; first += kPrefetch) {
    float d[kPrefetch][8];
#pragma unroll
    for (int k = 0; k < kPrefetch; ++k) {
      const std::int64_t row = rows[min(first + k, count - 1)];
      load_columns<Aligned>(p.d_out + row * p.width + column, columns, d[k]);
    }
#pragma unroll
    for (int k = 0; k < kPrefetch; ++k) {
      const int i = first + k;
      if (i >= count) break;
      if (dropping) {
        float factors[8];
        compute_dropout_factors(sorted.dropout, philox_key, static_cast<std::uint32_t>(column),
                                positions[i], sentences[i], factors);
#pragma unroll
        for (int j = 0; j < 8; ++j) d[k][j] *= factors[j];
      }
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[j] += d[k][j];
      const std::uint32_t key = keys[i];
      if (i + 1 < count && keys[i + 1] == key) continue;

      // The token's last row in this chunk. Keys are sorted, so it continues from the previous
      // chunk only if it is also the first key here.
      const bool continued = keys[0] == key && previous_key == key;
      const bool continues = i + 1 == count && next_key == key;
      if (continued || continues) {
        const std::int64_t slot = std::int64_t{blockIdx.x} * 2 + (continued ? 0 : 1);
        store_columns<Aligned>(sorted.partial + slot * p.width + column, columns, sum);
      } else {
        float* to = sorted.table + key * p.width + column;
        float total[8];
        load_columns<Aligned>(to, columns, total);
#pragma unroll
        for (int j = 0; j < 8; ++j) total[j] += sorted.scale * sum[j];
        store_columns<Aligned>(to, columns, total);
      }
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[j] = 0;
    }
  }
}

// Adds up, in chunk order, the partial sums of a token that begins in this chunk and continues.
template <class N>
__global__ void join_chunks_kernel(const EmbeddingBackward<N> p, const SortedRows sorted) {
  const std::int64_t row_count = real_rows(p.rows);
  const std::int64_t begin = std::int64_t{blockIdx.x} * kChunkRows, end = begin + kChunkRows;
  if (end >= row_count) return;
  const std::uint32_t key = sorted.keys[end];
  if (sorted.keys[end - 1] != key || (begin > 0 && sorted.keys[begin - 1] == key)) return;
  // Finds the last chunk that begins with this token.
  std::int64_t low = std::int64_t{blockIdx.x} + 1, high = (row_count + kChunkRows - 1) / kChunkRows;
  while (low + 1 < high) {
    const std::int64_t middle = (low + high) / 2;
    (sorted.keys[middle * kChunkRows] == key ? low : high) = middle;
  }
  const std::int64_t column = std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (column >= p.width) return;
  const float* partial = sorted.partial + column;
  float sum = partial[(std::int64_t{blockIdx.x} * 2 + 1) * p.width];
#pragma unroll 8
  for (std::int64_t k = std::int64_t{blockIdx.x} + 1; k <= low; ++k) {
    sum += partial[2 * k * p.width];
  }
  sorted.table[key * p.width + column] += sorted.scale * sum;
}

// Writes keys and row numbers in sorted order to `keys` and `order`, [T] each.
void sort_rows(CudaContext& ctx, const Rows& rows, const std::int32_t* ids, std::uint32_t* keys,
               std::int32_t* order) {
  const auto count = static_cast<std::size_t>(rows.capacity);
  const ScratchMemory unsorted_keys(ctx.arena(), count * sizeof(std::uint32_t));
  const ScratchMemory unsorted_order(ctx.arena(), count * sizeof(std::int32_t));
  make_keys_kernel<<<blocks_for(rows.capacity, kThreads), kThreads, 0, ctx.stream()>>>(
      rows, ids, unsorted_keys.as<std::uint32_t>(), unsorted_order.as<std::int32_t>());
  check_launch("embedding_backward");
  std::size_t bytes = 0;
  const auto sort = [&](void* scratch) {
    check_cuda(
        cub::DeviceRadixSort::SortPairs(scratch, bytes, unsorted_keys.as<std::uint32_t>(), keys,
                                        unsorted_order.as<std::int32_t>(), order,
                                        static_cast<int>(rows.capacity), 0, 32, ctx.stream()),
        "embedding_backward");
  };
  sort(nullptr);
  const ScratchMemory scratch(ctx.arena(), std::max<std::size_t>(bytes, 1));
  sort(scratch.as<void>());
}

template <class T>
void add_rows(CudaContext& ctx, const EmbeddingBackward<T>& p, const std::int32_t* ids, float scale,
              float* d_table) {
  using N = Native<T>;
  const auto capacity = static_cast<std::size_t>(p.rows.capacity);
  const unsigned chunks = blocks_for(p.rows.capacity, kChunkRows);
  const ScratchMemory keys(ctx.arena(), capacity * sizeof(std::uint32_t));
  const ScratchMemory order(ctx.arena(), capacity * sizeof(std::int32_t));
  const ScratchMemory partial(
      ctx.arena(), 2 * std::size_t{chunks} * static_cast<std::size_t>(p.width) * sizeof(float));
  sort_rows(ctx, p.rows, ids, keys.as<std::uint32_t>(), order.as<std::int32_t>());
  const EmbeddingBackward<N> arguments = native(p);
  const SortedRows sorted{.dropout = DropoutParameters(p.dropout),
                          .scale = scale,
                          .keys = keys.as<std::uint32_t>(),
                          .order = order.as<std::int32_t>(),
                          .table = d_table,
                          .partial = partial.as<float>()};
  const std::int64_t groups = (p.width + 7) / 8;
  const auto threads =
      static_cast<unsigned>(std::min<std::int64_t>((groups + kWarp - 1) / kWarp * kWarp, 128));
  const dim3 grid(chunks, blocks_for(groups, threads));
  if (rows_are_aligned(arguments.d_out, p.width) && rows_are_aligned(d_table, p.width)) {
    add_chunk_kernel<N, true><<<grid, threads, 0, ctx.stream()>>>(arguments, sorted);
  } else {
    add_chunk_kernel<N, false><<<grid, threads, 0, ctx.stream()>>>(arguments, sorted);
  }
  constexpr int kJoinThreads = 128;
  join_chunks_kernel<N>
      <<<dim3(chunks, blocks_for(p.width, kJoinThreads)), kJoinThreads, 0, ctx.stream()>>>(
          arguments, sorted);
  check_launch(p.name());
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Embedding<T>& p) {
  if (p.rows.capacity * p.width == 0) return;
  using N = Native<T>;
  const DropoutParameters dropout(p.dropout);
  const auto scale = static_cast<float>(p.scale);
  const unsigned blocks = blocks_for(p.rows.capacity * ((p.width + 7) / 8), kThreads);
  if (rows_are_aligned(p)) {
    launch_overlapped(ctx, p.name(), embed_kernel<N, true>, {blocks, kThreads}, native(p), scale,
                      dropout);
  } else {
    launch_overlapped(ctx, p.name(), embed_kernel<N, false>, {blocks, kThreads}, native(p), scale,
                      dropout);
  }
}
template void compute<Cuda>(CudaContext&, const Embedding<float>&);
template void compute<Cuda>(CudaContext&, const Embedding<BFloat16>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const EmbeddingBackward<T>& p) {
  if (p.rows.capacity * p.width == 0) return;
  if (p.d_table != nullptr) add_rows(ctx, p, p.ids, static_cast<float>(p.scale), p.d_table);
  if (p.d_positions != nullptr) add_rows<T>(ctx, p, nullptr, 1, p.d_positions);
}
template void compute<Cuda>(CudaContext&, const EmbeddingBackward<float>&);
template void compute<Cuda>(CudaContext&, const EmbeddingBackward<BFloat16>&);

}  // namespace nunchi::kernels
