// Fused products of the backward pass, on the GPU compared with the CPU.
#include "nunchi/kernels/linear_gradient.h"

#include "tests/kernels/cuda/compare.h"

namespace nunchi::testing {
namespace {

struct Sizes {
  std::int64_t m, n, k;
};

// Without a mask, the derivative of relu and the sum are a separate kernel.
TEST(CudaLinearGradient, GatedProductWithoutAMask) {
  SKIP_WITHOUT_GPU();
  for (const Sizes& s : {Sizes{192, 136, 64}, {31, 37, 41}, {640, 1024, 512}}) {
    for (const bool bias : {true, false}) {
      expect_like_cpu(
          [&](ContextBase& context, DType dtype) {
            const Tensor d_y = input(context, dtype, {s.m, s.k}, 1),
                         w = input(context, dtype, {s.k, s.n}, 2),
                         y = input(context, dtype, {s.m, s.n}, 3),
                         d_x = unwritten_tensor(context, dtype, {s.m, s.n}),
                         d_bias = input(context, DType::f32, {s.n}, 4);
            dispatch(y, [&]<class T>(auto& ctx) {
              if constexpr (!std::is_same_v<T, double>) {
                kernels::run(ctx, kernels::ActivationGradientProduct<T>{
                                      .product = {.m = s.m,
                                                  .n = s.n,
                                                  .k = s.k,
                                                  .a = d_y.data<T>(),
                                                  .b = w.data<T>(),
                                                  .c = d_x.data<T>()},
                                      .y = y.data<T>(),
                                      .d_bias = bias ? d_bias.data<float>() : nullptr});
              }
            });
            return std::vector<Output>{output("d_x", d_x), output("d_bias", d_bias)};
          },
          {.f32 = 3e-6, .bf16 = 6e-3});
    }
  }
}

TEST(CudaLinearGradient, WeightAndBiasGradients) {
  SKIP_WITHOUT_GPU();
  for (const Sizes& s : {Sizes{136, 64, 192}, {37, 41, 31}, {512, 512, 2048}}) {
    expect_like_cpu(
        [&](ContextBase& context, DType dtype) {
          const Tensor d_y = input(context, dtype, {s.k, s.m}, 1),
                       x = input(context, dtype, {s.k, s.n}, 2),
                       d_weight = input(context, DType::f32, {s.m, s.n}, 3),
                       d_bias = input(context, DType::f32, {s.m}, 4);
          for (int i = 0; i < 2; ++i) {
            dispatch(x, [&]<class T>(auto& ctx) {
              if constexpr (!std::is_same_v<T, double>) {
                kernels::run(ctx,
                             kernels::WeightGradient<T>{.product = {.m = s.m,
                                                                    .n = s.n,
                                                                    .k = s.k,
                                                                    .a = d_y.data<T>(),
                                                                    .transpose_a = true,
                                                                    .b = x.data<T>(),
                                                                    .c = d_weight.data<float>(),
                                                                    .accumulate = true},
                                                        .d_bias = d_bias.data<float>()});
              }
            });
          }
          return std::vector<Output>{output("d_weight", d_weight), output("d_bias", d_bias)};
        },
        {.f32 = 3e-6, .bf16 = 3e-3});
  }
}

// Either the bias gradient is fused into the product, and its label says so, or both parts are
// listed.
TEST(CudaLinearGradient, ProfileNamesTheVariant) {
  SKIP_WITHOUT_GPU();
  CudaContext context;
  const Tensor d_y = input(context, DType::bf16, {2048, 512}, 1),
               d_weight = zeros(context, DType::f32, {512, 512}),
               d_bias = zeros(context, DType::f32, {512});
  Profile profile;
  context.set_profile(&profile);
  kernels::run(context, kernels::WeightGradient<BFloat16>{.product = {.m = 512,
                                                                      .n = 512,
                                                                      .k = 2048,
                                                                      .a = d_y.data<BFloat16>(),
                                                                      .transpose_a = true,
                                                                      .b = d_y.data<BFloat16>(),
                                                                      .c = d_weight.data<float>(),
                                                                      .accumulate = true,
                                                                      .label = "weight"},
                                                          .d_bias = d_bias.data<float>()});
  context.set_profile(nullptr);
  const auto& entries = profile.entries();
  EXPECT_EQ(entries.count("weight+bias") + entries.count("weight"), 1u);
  EXPECT_EQ(entries.count("column_sum"), entries.count("weight"));
}

}  // namespace
}  // namespace nunchi::testing
