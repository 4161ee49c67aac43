#include "nunchi/kernels/rotary.h"

#include "tests/kernels/cuda/compare.h"
#include "tests/reference/rotary.h"

namespace nunchi::testing {
namespace {

struct RotaryCase {
  int heads = 3;
  std::int64_t width = 64;
  std::int64_t spare_columns = 8;
  bool inverse = false;
};

// Rotates in place, with columns that belong to no head and rows past the count.
Job rotary_job(const RotaryCase& c) {
  return [c](ContextBase& context, DType dtype) {
    const Ragged batch = make_ragged(context, std::vector<std::int32_t>{33, 1, 127, 5});
    const std::int64_t columns = c.heads * c.width + c.spare_columns;
    const Tensor x = input(context, dtype, {batch.capacity, columns}, 1);
    const auto values = reference::rotary_table(batch.max_length, c.width, 10000);
    const Tensor table = from_host(context, std::vector<float>(values.begin(), values.end()),
                                   {batch.max_length, c.width});
    dispatch(x, [&]<class T>(auto& ctx) {
      kernels::run(ctx, kernels::Rotary<T>{.rows = rows_of(batch),
                                           .heads = c.heads,
                                           .head_width = c.width,
                                           .inverse = c.inverse,
                                           .table = table.data<Accumulator<T>>(),
                                           .x = x.data<T>(),
                                           .out = x.data<T>(),
                                           .x_stride = columns,
                                           .out_stride = columns});
    });
    return std::vector{output("x", x)};
  };
}

TEST(CudaRotary, MatchesTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const bool inverse : {false, true}) {
    for (const std::int64_t width : {2, 6, 16, 20, 32, 64, 128}) {
      for (const std::int64_t spare : {0, 3, 8}) {
        SCOPED_TRACE(std::to_string(width) + " columns and " + std::to_string(spare));
        expect_like_cpu(rotary_job({.width = width, .spare_columns = spare, .inverse = inverse}),
                        {.f32 = 1e-6, .bf16 = 4e-3});
      }
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
