#include "nunchi/benchmark/gemm.h"

#include "nunchi/kernels/memory.h"
#include "nunchi/kernels/product.h"
#include "nunchi/ops/tensors.h"

namespace nunchi::benchmark {
namespace {

Tensor random_matrix(CpuContext& context, std::int64_t rows, std::int64_t columns) {
  const Tensor matrix = Tensor::empty(context, DType::f32, {rows, columns});
  kernels::run(context,
               kernels::RandomFill<float>{.count = matrix.elements(), .out = matrix.data<float>()});
  return matrix;
}

}  // namespace

Limits measure_limits(int threads) {
  CpuContext context({.threads = threads});
  Limits limits;
  for (const GemmShape& shape : {GemmShape{"", ProductRole::forward, 2048, 512, 2048},
                                 GemmShape{"", ProductRole::forward, 2048, 2048, 512},
                                 GemmShape{"", ProductRole::forward, 1024, 2048, 2048}}) {
    limits.product_gflops = std::max(limits.product_gflops, measure_gemm(context, shape).gflops);
  }
  const std::int64_t count = std::int64_t{1} << 24;
  const Tensor x = zeros(context, DType::f32, {count}), y = zeros(context, DType::f32, {count});
  const double seconds = median(timed(5, [&] {
    kernels::run(context, kernels::AddInto<float>{.rows = 4096,
                                                  .width = count / 4096,
                                                  .x = x.data<float>(),
                                                  .x_stride = count / 4096,
                                                  .out = y.data<float>(),
                                                  .out_stride = count / 4096});
  }));
  limits.memory_gbps = 3.0 * static_cast<double>(count) * sizeof(float) / seconds / 1e9;
  return limits;
}

std::vector<GemmShape> base_model_shapes(std::int64_t tokens, std::int64_t vocabulary) {
  struct Layer {
    const char* name;
    std::int64_t rows, inputs, outputs;
  };
  std::vector<GemmShape> shapes;
  for (const Layer& layer :
       {Layer{"qkv", tokens, 512, 1536}, Layer{"output", tokens, 512, 512},
        Layer{"up", tokens, 512, 2048}, Layer{"down", tokens, 2048, 512},
        Layer{"vocabulary", std::min<std::int64_t>(tokens, 512), 512, vocabulary}}) {
    shapes.push_back({layer.name, ProductRole::forward, layer.rows, layer.outputs, layer.inputs});
    shapes.push_back(
        {layer.name, ProductRole::backward_input, layer.rows, layer.inputs, layer.outputs});
    shapes.push_back(
        {layer.name, ProductRole::backward_weight, layer.outputs, layer.inputs, layer.rows});
  }
  return shapes;
}

GemmResult measure_gemm(CpuContext& context, const GemmShape& shape) {
  const bool of_weight = shape.role == ProductRole::backward_weight;
  const bool transpose_b = shape.role == ProductRole::forward;
  const Tensor a = random_matrix(context, shape.m, shape.k),
               b = random_matrix(context, shape.k, shape.n);
  const Tensor c = zeros(context, DType::f32, {shape.m, shape.n});
  GemmResult result{.shape = shape};
  Tensor packed;
  kernels::PackMatrix<float> pack{
      .n = shape.n, .k = shape.k, .b = b.data<float>(), .transpose_b = transpose_b};
  const std::int64_t elements = of_weight ? 0 : kernels::packed_elements(context, pack);
  if (elements > 0) {
    packed = Tensor::empty(context, DType::f32, {elements});
    pack.packed = packed.data<float>();
    result.pack_ms = median(timed(3, [&] { kernels::run(context, pack); })) * 1e3;
  }
  const double seconds = median(timed(5, [&] {
    kernels::run(context, kernels::Product<float>{
                              .m = shape.m,
                              .n = shape.n,
                              .k = shape.k,
                              .a = a.data<float>(),
                              .transpose_a = of_weight,
                              .b = b.data<float>(),
                              .transpose_b = transpose_b,
                              .packed_b = packed.defined() ? packed.data<float>() : nullptr,
                              .c = c.data<float>(),
                              .accumulate = of_weight});
  }));
  result.product_ms = seconds * 1e3;
  result.gflops = 2e-9 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                  static_cast<double>(shape.k) / seconds;
  return result;
}

}  // namespace nunchi::benchmark
