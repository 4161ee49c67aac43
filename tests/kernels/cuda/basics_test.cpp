// Memory, reduction, product and optimizer kernels on the GPU.
#include "nunchi/kernels/activation.h"
#include "nunchi/kernels/cuda/common/column_sums.h"
#include "nunchi/kernels/memory.h"
#include "nunchi/kernels/optimizer.h"
#include "nunchi/kernels/product.h"
#include "nunchi/kernels/reduce.h"
#include "tests/kernels/cuda/compare.h"

namespace nunchi::testing {
namespace {

TEST(CudaMemory, RoundTripKeepsBytes) {
  SKIP_WITHOUT_GPU();
  CudaContext context;
  // More than twice the capacity of the pinned ring.
  const std::vector<float> values = random_values<float>(5'000'001, 3);
  for (int i = 0; i < 3; ++i) {
    const Tensor tensor = from_host(context, values, {5'000'001});
    EXPECT_TRUE(same_bits(to_host<float>(tensor), values));
  }
}

TEST(CudaMemory, ManyUploadsKeepTheirOrder) {
  SKIP_WITHOUT_GPU();
  CudaContext context;
  std::vector<Tensor> tensors;
  for (std::int32_t i = 0; i < 300; ++i) {
    tensors.push_back(from_host(context, std::vector<std::int32_t>(20'000, i), {20'000}));
  }
  for (std::int32_t i = 0; i < 300; ++i) {
    const std::vector<std::int32_t> found = to_host<std::int32_t>(tensors[std::size_t(i)]);
    ASSERT_EQ(found, std::vector<std::int32_t>(20'000, i));
  }
}

TEST(CudaMemory, ConversionsRoundLikeTheCpu) {
  SKIP_WITHOUT_GPU();
  expect_like_cpu(
      [](ContextBase& context, DType) {
        const Tensor x = random_tensor<float>(context, {1001}, 1, 100);
        const Tensor rounded = Tensor::empty(context, DType::bf16, {1001});
        const Tensor wide = Tensor::empty(context, DType::f64, {1001});
        convert(x, rounded);
        convert(rounded, wide);
        return std::vector<Output>{output("bf16", rounded), output("f64", wide)};
      },
      {.f32 = 0, .bf16 = 0});
}

TEST(CudaMemory, AddInto) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t width : {8, 5}) {
    expect_like_cpu([&](ContextBase& context, DType dtype) {
      const Tensor x = input(context, dtype, {33, 3 * width}, 1);
      const Tensor out = input(context, dtype, {33, 2 * width}, 2);
      dispatch(x, [&]<class T>(auto& ctx) {
        kernels::run(ctx, kernels::AddInto<T>{.rows = 33,
                                              .width = width,
                                              .x = x.data<T>() + width,
                                              .x_stride = 3 * width,
                                              .out = out.data<T>() + width,
                                              .out_stride = 2 * width});
      });
      return std::vector<Output>{output("out", out)};
    });
  }
}

TEST(CudaMemory, Scale) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t count : {1, 33, 100003}) {
    expect_like_cpu([&](ContextBase& context, DType dtype) {
      const Tensor x = input(context, dtype, {count}, 1);
      const Tensor out = unwritten_tensor(context, dtype, {count});
      dispatch(x, [&]<class T>(auto& ctx) {
        kernels::run(ctx,
                     kernels::Scale<T>{
                         .count = count, .factor = 0.3, .x = x.data<T>(), .out = out.data<T>()});
      });
      return std::vector<Output>{output("out", out)};
    });
  }
}

TEST(CudaMemory, HugeAllocationThrowsAClearError) {
  SKIP_WITHOUT_GPU();
  CudaContext context;
  const std::string message = error_of([&] {
    std::vector<Tensor> all;
    for (int i = 0; i < 64; ++i) {
      all.push_back(Tensor::empty(context, DType::f32, {std::int64_t{1} << 31}));
    }
  });
  EXPECT_NE(message.find("out of"), std::string::npos) << message;
}

TEST(CudaReduce, ColumnSumAccumulates) {
  SKIP_WITHOUT_GPU();
  for (const auto& [rows, width] :
       {std::pair{1, 8}, {257, 512}, {1000, 37}, {4096, 2048}, {24'576, 512}, {300, 8200}}) {
    expect_like_cpu(
        [&](ContextBase& context, DType dtype) {
          const Tensor x = input(context, dtype, {rows, width}, 1);
          const Tensor out = input(context, DType::f32, {width}, 2);
          dispatch(x, [&]<class T>(auto& ctx) {
            if constexpr (!std::is_same_v<T, double>) {
              kernels::run(
                  ctx,
                  kernels::ColumnSum<T>{
                      .rows = rows, .width = width, .x = x.data<T>(), .out = out.data<float>()});
            }
          });
          return std::vector<Output>{output("sums", out)};
        },
        {.f32 = 2e-6, .bf16 = 2e-6});
  }
}

TEST(CudaReduce, ReluColumnSumMatchesTwoPasses) {
  SKIP_WITHOUT_GPU();
  for (const auto& [rows, width] : {std::pair{1, 8}, {1000, 37}, {4096, 2048}}) {
    expect_like_cpu(
        [&](ContextBase& context, DType dtype) {
          const Tensor y = input(context, dtype, {rows, width}, 1);
          const Tensor d = input(context, dtype, {rows, width}, 2);
          const Tensor out = input(context, DType::f32, {width}, 3);
          dispatch(y, [&]<class T>(auto& ctx) {
            if constexpr (std::is_same_v<decltype(ctx), CudaContext&>) {
              kernels::run(ctx, kernels::ReluColumnSum<T>{.rows = rows,
                                                          .width = width,
                                                          .y = y.data<T>(),
                                                          .d = d.data<T>(),
                                                          .out = out.data<float>()});
            } else {
              kernels::run(ctx,
                           kernels::ActivationBackward<T>{.kind = kernels::ActivationKind::relu,
                                                          .rows = {.capacity = rows},
                                                          .width = width,
                                                          .x = y.data<T>(),
                                                          .d_out = d.data<T>(),
                                                          .d_x = d.data<T>()});
              kernels::run(ctx, kernels::ColumnSum<T>{.rows = rows,
                                                      .width = width,
                                                      .x = d.data<T>(),
                                                      .out = out.data<Accumulator<T>>()});
            }
          });
          return std::vector<Output>{output("d", d), output("sums", out)};
        },
        {.f32 = 2e-6, .bf16 = 2e-6});
  }
}

TEST(CudaReduce, SumsInF64) {
  SKIP_WITHOUT_GPU();
  for (const std::int64_t count : {0, 1, 255, 100'003}) {
    for (const bool squares : {false, true}) {
      expect_like_cpu(
          [&](ContextBase& context, DType dtype) {
            const Tensor x = input(context, dtype, {count}, 1);
            const Tensor out = Tensor::empty(context, DType::f64, {1});
            dispatch(x, [&]<class T>(auto& ctx) {
              kernels::run(ctx, kernels::Sum<T>{.count = count,
                                                .squares = squares,
                                                .x = x.data<T>(),
                                                .out = out.data<double>()});
            });
            return std::vector<Output>{output("sum", out)};
          },
          {.f32 = 1e-12, .bf16 = 1e-12});
    }
  }
}

TEST(CudaReduce, PropagatesNaN) {
  SKIP_WITHOUT_GPU();
  CudaContext context;
  for (const std::size_t index : {0, 1234, 99'999}) {
    std::vector<float> values(100'000, 1);
    values[index] = NAN;
    const Tensor x = from_host(context, values, {100'000});
    const Tensor out = Tensor::empty(context, DType::f64, {1});
    kernels::run(
        context,
        kernels::Sum<float>{
            .count = 100'000, .squares = true, .x = x.data<float>(), .out = out.data<double>()});
    EXPECT_TRUE(std::isnan(to_host<double>(out)[0]));
  }
}

struct Sizes {
  std::int64_t m, n, k;
};

TEST(CudaProduct, MatchesTheCpuForEveryTransposeBiasAndRelu) {
  SKIP_WITHOUT_GPU();
  for (const Sizes& s : {Sizes{1, 512, 64}, {33, 40, 72}, {31, 37, 41}, {640, 512, 512}}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        for (const bool bias : {false, true}) {
          expect_like_cpu(
              [&](ContextBase& context, DType dtype) {
                const Tensor a = input(context, dtype, {s.m, s.k}, 1);
                const Tensor b = input(context, dtype, {s.k, s.n}, 2);
                const Tensor c = unwritten_tensor(context, dtype, {s.m, s.n});
                const Tensor add = input(context, dtype, {s.n}, 3);
                dispatch(a, [&]<class T>(auto& ctx) {
                  kernels::run(ctx, kernels::Product<T>{.m = s.m,
                                                        .n = s.n,
                                                        .k = s.k,
                                                        .a = a.data<T>(),
                                                        .transpose_a = transpose_a,
                                                        .b = b.data<T>(),
                                                        .transpose_b = transpose_b,
                                                        .c = c.data<T>(),
                                                        .bias = bias ? add.data<T>() : nullptr,
                                                        .relu = bias});
                });
                return std::vector<Output>{output("c", c)};
              },
              {.f32 = 2e-6, .bf16 = 5e-3});
        }
      }
    }
  }
}

TEST(CudaProduct, AccumulatesInF32) {
  SKIP_WITHOUT_GPU();
  for (const Sizes& s : {Sizes{512, 64, 1000}, {37, 41, 31}}) {
    expect_like_cpu(
        [&](ContextBase& context, DType dtype) {
          const Tensor a = input(context, dtype, {s.k, s.m}, 1);
          const Tensor b = input(context, dtype, {s.k, s.n}, 2);
          const Tensor c = input(context, DType::f32, {s.m, s.n}, 3);
          dispatch(a, [&]<class T>(auto& ctx) {
            if constexpr (!std::is_same_v<T, double>) {
              kernels::run(ctx, kernels::Product<T, float>{.m = s.m,
                                                           .n = s.n,
                                                           .k = s.k,
                                                           .a = a.data<T>(),
                                                           .transpose_a = true,
                                                           .b = b.data<T>(),
                                                           .c = c.data<float>(),
                                                           .accumulate = true});
            }
          });
          return std::vector<Output>{output("c", c)};
        },
        {.f32 = 2e-6, .bf16 = 2e-6});
  }
}

TEST(CudaProduct, RowsAreIndependentIfDeterministic) {
  SKIP_WITHOUT_GPU();
  CudaContext context({.deterministic = true});
  const std::int64_t max_rows = 300, n = 512, k = 512;
  const Tensor a = input(context, DType::bf16, {max_rows, k}, 1),
               b = input(context, DType::bf16, {n, k}, 2);
  std::vector<float> all_rows;
  for (const std::int64_t rows :
       {max_rows, std::int64_t{1}, std::int64_t{2}, std::int64_t{63}, std::int64_t{128}}) {
    const Tensor c = Tensor::empty(context, DType::f32, {rows, n});
    kernels::run(context, kernels::Product<BFloat16, float>{.m = rows,
                                                            .n = n,
                                                            .k = k,
                                                            .a = a.data<BFloat16>(),
                                                            .b = b.data<BFloat16>(),
                                                            .transpose_b = true,
                                                            .c = c.data<float>()});
    const std::vector<float> found = to_host<float>(c);
    if (all_rows.empty()) all_rows = found;
    EXPECT_TRUE(std::equal(found.begin(), found.end(), all_rows.begin())) << rows << " rows";
  }
}

struct AdamTensors {
  Tensor w, g, m, v, rounded, settings, report, norm;
};

void take_step(ContextBase& context, const AdamTensors& t, std::int64_t count) {
  const auto* settings =
      reinterpret_cast<const kernels::AdamSettings*>(t.settings.data<std::int8_t>());
  auto* report = reinterpret_cast<kernels::AdamReport*>(t.report.data<double>());
  on_device(context, [&](auto& ctx) {
    kernels::run(
        ctx,
        kernels::Sum<float>{
            .count = count, .squares = true, .x = t.g.data<float>(), .out = t.norm.data<double>()});
    kernels::run(
        ctx, kernels::ClipScale{
                 .settings = settings, .squared_norm = t.norm.data<double>(), .report = report});
    kernels::run(ctx, kernels::Adam<float>{.count = count,
                                           .decayed_count = count / 2,
                                           .settings = settings,
                                           .report = report,
                                           .weights = t.w.data<float>(),
                                           .gradients = t.g.data<float>(),
                                           .first_moment = t.m.data<float>(),
                                           .second_moment = t.v.data<float>(),
                                           .bf16_weights = t.rounded.data<BFloat16>()});
  });
}

TEST(CudaOptimizer, AdamMatchesTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const double decay : {0.0, 0.01}) {
    for (const std::int64_t count : {1, 4099}) {
      expect_like_cpu(
          [&](ContextBase& context, DType) {
            const Tensor w = random_tensor<float>(context, {count}, 1);
            const Tensor g = random_tensor<float>(context, {count}, 2, 50);
            const Tensor m = random_tensor<float>(context, {count}, 3, 0.1);
            const Tensor v = zeros(context, DType::f32, {count});
            const Tensor rounded = Tensor::empty(context, DType::bf16, {count});
            const kernels::AdamSettings settings{.learning_rate = 1e-2,
                                                 .weight_decay = decay,
                                                 .max_norm = 1,
                                                 .tokens = 7,
                                                 .step = 5};
            const auto bytes = reinterpret_cast<const std::int8_t*>(&settings);
            const Tensor stored = from_host(
                context, std::span<const std::int8_t>(bytes, sizeof settings), {sizeof settings});
            const Tensor report =
                Tensor::empty(context, DType::f64, {2});  // an AdamReport: two doubles
            const Tensor norm = Tensor::empty(context, DType::f64, {1});
            take_step(context, {w, g, m, v, rounded, stored, report, norm}, count);
            return std::vector<Output>{output("w", w),          output("g", g),
                                       output("m", m),          output("v", v),
                                       output("bf16", rounded), output("report", report)};
          },
          {.f32 = 1e-5, .bf16 = 1e-5});
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
