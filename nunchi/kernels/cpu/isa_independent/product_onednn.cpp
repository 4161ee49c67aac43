// f32 products by oneDNN. A product is planned once for its sizes and options; the context keeps
// the plans. The library uses OpenMP threads, as we do.
#include <omp.h>

#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <tuple>
#include <unordered_map>

#include "nunchi/kernels/cpu/product_threads.h"
#include "nunchi/kernels/int8_product.h"

namespace nunchi::kernels {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kF32 = memory::data_type::f32;

struct PlanKey {
  std::int64_t m, n, k;
  int threads;
  bool transpose_a, transpose_b, packed, accumulate, bias, relu;
  bool operator==(const PlanKey&) const = default;
};

struct PlanKeyHash {
  std::size_t operator()(const PlanKey& key) const {
    std::size_t hash = 0;
    const auto mix = [&hash](std::size_t value) {
      hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
      hash ^= hash >> 29;
    };
    mix(static_cast<std::size_t>(key.m));
    mix(static_cast<std::size_t>(key.n));
    mix(static_cast<std::size_t>(key.k));
    mix(static_cast<std::size_t>(key.threads));
    mix(static_cast<std::size_t>(key.transpose_a | key.transpose_b << 1 | key.packed << 2 |
                                 key.accumulate << 3 | key.bias << 4 | key.relu << 5));
    return hash;
  }
};

struct Plan {
  dnnl::matmul primitive;
  memory::desc a, b, c, bias, scratchpad;
};

struct PackPlan {
  dnnl::reorder primitive;
  memory::desc from, to;
};

memory::desc matrix(std::int64_t rows, std::int64_t columns, bool transposed) {
  return {{rows, columns}, kF32, transposed ? Tag::ba : Tag::ab};
}

// The calls that differ between oneDNN 2 and 3. Version 3 has no operation descriptors, and its
// element-wise post-operations have no scale. `bias` is null for a product without one.
struct Operands {
  memory::desc a, b, c;
  const memory::desc* bias = nullptr;
};

dnnl::matmul::primitive_desc describe(const dnnl::engine& engine, const Operands& operands,
                                      const dnnl::primitive_attr& attributes) {
  const auto& [a, b, c, bias] = operands;
#if DNNL_VERSION_MAJOR >= 3
  if (bias == nullptr) return {engine, a, b, c, attributes};
  return {engine, a, b, *bias, c, attributes};
#else
  const dnnl::matmul::desc operation =
      bias == nullptr ? dnnl::matmul::desc(a, b, c) : dnnl::matmul::desc(a, b, *bias, c);
  return {operation, attributes, engine};
#endif
}

void append_relu(dnnl::post_ops& post_ops) {
#if DNNL_VERSION_MAJOR >= 3
  post_ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
#else
  post_ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
#endif
}

// NUNCHI_ISA pins the instruction set of the products, too. oneDNN accepts this only once per
// process, before its first primitive.
void pin_instructions() {
  static const bool pinned = [] {
    const Isa isa = chosen_isa();
    if (isa == detected_isa()) return false;
    return dnnl::set_max_cpu_isa(isa == Isa::v3 ? dnnl::cpu_isa::avx2 : dnnl::cpu_isa::sse41) ==
           dnnl::status::success;
  }();
  static_cast<void>(pinned);
}

// Sets OpenMP's number of threads, which oneDNN asks for when it plans and when it runs.
class ThreadScope {
 public:
  explicit ThreadScope(int threads) : previous_(omp_get_max_threads()) {
    if (previous_ != threads) omp_set_num_threads(threads);
  }
  ~ThreadScope() { omp_set_num_threads(previous_); }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int previous_;
};

// The threads that reorder a matrix. oneDNN splits a reorder when it is planned.
int pack_threads(const CpuContext& ctx, std::int64_t n, std::int64_t k) {
  constexpr double kNanosecondsPerElement = 0.5;
  const double nanoseconds =
      static_cast<double>(n) * static_cast<double>(k) * kNanosecondsPerElement;
  return is_large(ctx, nanoseconds) ? ctx.threads() : 1;
}

// The oneDNN engine, stream and plans of one context.
class Plans {
 public:
  Plans() { pin_instructions(); }

  const Plan& product(const CpuContext& ctx, const PlanKey& key) {
    const auto found = products_.find(key);
    if (found != products_.end()) return found->second;
    return products_.emplace(key, make_product(ctx, key)).first->second;
  }

  // The layout does not depend on m or the number of threads, so that contexts can share packed
  // weights: it is the one that oneDNN prefers for many rows and one thread.
  const PackPlan& pack(const CpuContext& ctx, std::int64_t n, std::int64_t k, bool transpose_b) {
    const auto key = std::make_tuple(n, k, transpose_b);
    const auto found = packs_.find(key);
    if (found != packs_.end()) return found->second;
    constexpr std::int64_t kManyRows = 1024;
    const memory::desc from = matrix(k, n, transpose_b), any({k, n}, kF32, Tag::any);
    const memory::desc to = [&] {
      const ThreadScope one_thread(1);
      return describe(engine, {matrix(kManyRows, k, false), any, matrix(kManyRows, n, false)}, {})
          .weights_desc();
    }();
    const ThreadScope scope(pack_threads(ctx, n, k));
    const dnnl::reorder::primitive_desc description(engine, from, engine, to);
    return packs_.emplace(key, PackPlan{dnnl::reorder(description), from, to}).first->second;
  }

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};

 private:
  Plan make_product(const CpuContext& ctx, const PlanKey& key) {
    const memory::desc a = matrix(key.m, key.k, key.transpose_a), c = matrix(key.m, key.n, false);
    const memory::desc b = key.packed ? pack(ctx, key.n, key.k, key.transpose_b).to
                                      : matrix(key.k, key.n, key.transpose_b);
    const memory::desc bias({1, key.n}, kF32, Tag::ab);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::post_ops post_ops;
    if (key.accumulate) post_ops.append_sum(1.0f);
    if (key.relu) append_relu(post_ops);
    attributes.set_post_ops(post_ops);
    const dnnl::matmul::primitive_desc chosen =
        describe(engine, {a, b, c, key.bias ? &bias : nullptr}, attributes);
    return {dnnl::matmul(chosen), a, b, c, bias, chosen.scratchpad_desc()};
  }

  std::unordered_map<PlanKey, Plan, PlanKeyHash> products_;
  std::map<std::tuple<std::int64_t, std::int64_t, bool>, PackPlan> packs_;
};

void* mutable_pointer(const float* data) { return const_cast<float*>(data); }

}  // namespace

bool rows_are_independent() {
  static const bool independent = [] {
    pin_instructions();
    return detected_isa() == Isa::v4 && chosen_isa() == Isa::v4;
  }();
  return independent;
}

const char* product_library() {
  static const std::string name = [] {
    const dnnl_version_t* version = dnnl_version();
    return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
           std::to_string(version->patch);
  }();
  return name.c_str();
}

std::int64_t packed_elements(CpuContext& ctx, const PackMatrix<float>& pack) {
  if (pack.n == 0 || pack.k == 0) return 0;
  const PackPlan& plan = ctx.cache<Plans>().pack(ctx, pack.n, pack.k, pack.transpose_b);
  return static_cast<std::int64_t>(plan.to.get_size() / sizeof(float));
}
std::int64_t packed_elements(CpuContext&, const PackMatrix<double>&) { return 0; }

template <>
void compute<AnyCpu>(CpuContext& ctx, const PackMatrix<float>& p) {
  const ThreadScope scope(pack_threads(ctx, p.n, p.k));
  Plans& plans = ctx.cache<Plans>();
  const PackPlan& plan = plans.pack(ctx, p.n, p.k, p.transpose_b);
  memory from(plan.from, plans.engine, mutable_pointer(p.b)), to(plan.to, plans.engine, p.packed);
  plan.primitive.execute(plans.stream, from, to);
  plans.stream.wait();
}

template <>
void compute<AnyCpu>(CpuContext&, const PackMatrix<double>&) {}

template <>
void compute<AnyCpu>(CpuContext& ctx, const Product<float>& p) {
  if (p.formed_b.form == WeightForm::int8 && p.formed_b.data != nullptr) {
    return run_unprofiled(ctx, Int8Product{p});
  }
  check_product(p);
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0)
    refuse_product(p.label, "the inner dimension of a product must be at least 1, not 0.");
  const int threads = product_threads(ctx, p);
  const ThreadScope scope(threads);
  Plans& plans = ctx.cache<Plans>();
  const Plan& plan = plans.product(ctx, {.m = p.m,
                                         .n = p.n,
                                         .k = p.k,
                                         .threads = threads,
                                         .transpose_a = p.transpose_a,
                                         .transpose_b = p.transpose_b,
                                         .packed = p.formed_b.data != nullptr,
                                         .accumulate = p.accumulate,
                                         .bias = p.bias != nullptr,
                                         .relu = p.relu});
  const ScratchMemory scratchpad(ctx.arena(), plan.scratchpad.get_size());
  std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, memory(plan.a, plans.engine, mutable_pointer(p.a))},
      {DNNL_ARG_WEIGHTS, memory(plan.b, plans.engine,
                                p.formed_b.data != nullptr ? const_cast<void*>(p.formed_b.data)
                                                           : mutable_pointer(p.b))},
      {DNNL_ARG_DST, memory(plan.c, plans.engine, p.c)},
      {DNNL_ARG_SCRATCHPAD, memory(plan.scratchpad, plans.engine, scratchpad.as<void>())}};
  if (p.bias != nullptr) {
    arguments.emplace(DNNL_ARG_BIAS, memory(plan.bias, plans.engine, mutable_pointer(p.bias)));
  }
  plan.primitive.execute(plans.stream, arguments);
  plans.stream.wait();
  if (p.residual == nullptr) return;
  parallel_ranges(ctx, p.m * p.n, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) p.c[i] += p.residual[i];
  });
}

}  // namespace nunchi::kernels
