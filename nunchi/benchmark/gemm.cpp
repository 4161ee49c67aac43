#include "nunchi/benchmark/gemm.h"

#include "nunchi/kernels/memory.h"
#include "nunchi/kernels/product.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi::benchmark {

Tensor random_tensor(ContextBase& context, const Shape& shape) {
  CpuContext host;
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  kernels::run(host, kernels::RandomFill<float>{.count = shape.elements(), .out = values.data()});
  const Tensor tensor = Tensor::empty(context, compute_type(context), shape);
  convert(from_host(context, values, shape), tensor);
  return tensor;
}

Limits measure_limits(const ContextOptions& options) {
  const std::unique_ptr<ContextBase> owned_context = make_context(options);
  ContextBase& context = *owned_context;
  const bool cpu = context.device() == Device::cpu;
  std::vector<GemmShape> shapes{{"", ProductRole::forward, 8192, 8192, 8192}};
  if (cpu) {
    shapes = {{"", ProductRole::forward, 2048, 512, 2048},
              {"", ProductRole::forward, 2048, 2048, 512},
              {"", ProductRole::forward, 1024, 2048, 2048}};
  }
  Limits limits;
  for (const GemmShape& shape : shapes) {
    limits.product_gflops = std::max(limits.product_gflops, measure_gemm(context, shape).gflops);
  }
  const std::int64_t count = std::int64_t{1} << (cpu ? 24 : 28);
  const Tensor x = zeros(context, DType::f32, {count}), y = zeros(context, DType::f32, {count});
  const double seconds = median(timed(context, 5, [&] {
    on_device(context, [&](auto& ctx) {
      kernels::run(ctx, kernels::AddInto<float>{.rows = 4096,
                                                .width = count / 4096,
                                                .x = x.data<float>(),
                                                .x_stride = count / 4096,
                                                .out = y.data<float>(),
                                                .out_stride = count / 4096});
    });
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

GemmResult measure_gemm(ContextBase& context, const GemmShape& shape) {
  const bool is_weight_gradient = shape.role == ProductRole::backward_weight;
  const bool transpose_b = shape.role == ProductRole::forward;
  const Tensor a = random_tensor(context, {shape.m, shape.k}),
               b = random_tensor(context, {shape.k, shape.n});
  const DType out = is_weight_gradient ? accumulator_type(a.dtype()) : a.dtype();
  const Tensor c = zeros(context, out, {shape.m, shape.n});
  GemmResult result{.shape = shape};
  dispatch(a, [&]<class T>(auto& ctx) {
    Tensor packed;
    if constexpr (kernels::kPacks<std::remove_cvref_t<decltype(ctx)>>) {
      kernels::PackMatrix<T> pack{
          .n = shape.n, .k = shape.k, .b = b.data<T>(), .transpose_b = transpose_b};
      const std::int64_t elements = is_weight_gradient ? 0 : kernels::packed_elements(ctx, pack);
      if (elements > 0) {
        packed = Tensor::empty(context, a.dtype(), {elements});
        pack.packed = packed.data<T>();
        result.pack_ms = median(timed(context, 3, [&] { kernels::run(ctx, pack); })) * 1e3;
      }
    }
    const auto measure = [&]<class C>() {
      return median(timed(context, 5, [&] {
        kernels::run(
            ctx, kernels::Product<T, C>{.m = shape.m,
                                        .n = shape.n,
                                        .k = shape.k,
                                        .a = a.data<T>(),
                                        .transpose_a = is_weight_gradient,
                                        .b = b.data<T>(),
                                        .transpose_b = transpose_b,
                                        .formed_b = {WeightForm::packed,
                                                     packed.defined() ? packed.data<T>() : nullptr},
                                        .c = c.data<C>(),
                                        .accumulate = is_weight_gradient});
      }));
    };
    const double seconds = is_weight_gradient ? measure.template operator()<Accumulator<T>>()
                                              : measure.template operator()<T>();
    result.product_ms = seconds * 1e3;
    result.gflops = 2e-9 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                    static_cast<double>(shape.k) / seconds;
  });
  return result;
}

}  // namespace nunchi::benchmark
