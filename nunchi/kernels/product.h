// Matrix products: f32 by a library, f64 by loops of our own.
//
// With oneDNN on AVX-512 the bits of a row of c depend on its row of a and on b alone. Elsewhere,
// and with OpenBLAS, the number of rows may change the last bits: rows_are_independent().
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "nunchi/base/error.h"
#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"
#include "nunchi/tensor/weight_form.h"

namespace nunchi::kernels {

// b of a product in a form other than plain; the form decides the type of the elements.
struct FormedMatrix {
  WeightForm form = WeightForm::plain;
  const void* data = nullptr;  // packed: elements of b's own type; null: products read b itself
};

// c = a · b, or c += a · b; then optionally + bias, then + added or max(0, ·). added and relu
// exclude one another.
template <class T, class C = T>
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;  // [M, K], or [K, M] when transposed
  bool transpose_a = false;
  // [K, N], or [N, K] when transposed. A GPU may read a transposed b and its bias before the
  // previous kernel has ended, so in a decode step no kernel may write them: they are parameters.
  const T* b = nullptr;
  bool transpose_b = false;
  FormedMatrix formed_b;  // the same b in another form; devices without that form ignore it
  C* c = nullptr;         // [M, N]
  bool accumulate = false;
  const T* bias = nullptr;   // [N]; not with accumulate
  bool relu = false;         // not with accumulate
  const T* added = nullptr;  // [M, N], not c; not with accumulate, relu
  // Which results relu let pass, for the backward pass: relu_mask_bytes() bytes; null: not kept.
  std::uint8_t* mask = nullptr;
  const char* label = "product";

  static constexpr bool kIsaIndependent = std::is_same_v<T, float>;
  const char* name() const { return label; }
  Work work() const {
    return {.flops =
                2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k)};
  }
};

template <class Target, class T, class C>
void compute(ContextOf<Target>& ctx, const Product<T, C>& p);

// Throws Error.
[[noreturn]] void refuse_product(const char* label, const char* why);

// Throws Error for options that exclude one another.
template <class T, class C>
[[gnu::always_inline]] inline void check_product(const Product<T, C>& p) {
  if (p.accumulate && (p.bias != nullptr || p.relu || p.added != nullptr)) {
    refuse_product(p.label, "a product that accumulates cannot have a bias, relu or a residual.");
  }
  if (p.relu && p.added != nullptr) {
    refuse_product(p.label, "a product can have relu or a residual, not both.");
  }
  if (p.added != nullptr && static_cast<const void*>(p.added) == static_cast<const void*>(p.c)) {
    refuse_product(p.label, "the residual of a product cannot be its result.");
  }
}

// b in the layout in which the library reads it fastest. One layout serves products of every m, on
// contexts with any number of threads.
template <class T>
struct PackMatrix {
  std::int64_t n = 0, k = 0;
  const T* b = nullptr;  // [K, N], or [N, K] when transposed
  bool transpose_b = false;
  T* packed = nullptr;  // [packed_elements()]

  static constexpr bool kIsaIndependent = true;
  const char* name() const { return "pack_matrix"; }
  Work work() const { return {.bytes = 2.0 * static_cast<double>(n * k) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const PackMatrix<T>& p);

// Elements of a packed b; 0 where packing gains nothing and products read b itself.
std::int64_t packed_elements(CpuContext& ctx, const PackMatrix<float>& pack);
std::int64_t packed_elements(CpuContext& ctx, const PackMatrix<double>& pack);

// Only the CPU packs; other devices read plain weights.
template <class AnyContext>
inline constexpr bool kPacks = std::is_same_v<AnyContext, CpuContext>;

// Whether a product adds `added` in the same kernel. On the CPU the sum is a pass of its own, which
// the norm that follows does with its own pass.
template <class AnyContext>
inline constexpr bool kFusesResidualAdd = !std::is_same_v<AnyContext, CpuContext>;

// Writes the algorithms that were chosen by measurement to text and reads them back, so that a
// resumed run computes with the same ones. Empty on the CPU, which measures none. Throws Error for
// text that is not of this format.
inline std::string chosen_algorithms(CpuContext&) { return {}; }
inline void choose_algorithms(CpuContext&, const std::string&) {}
#if NUNCHI_CUDA
std::string chosen_algorithms(CudaContext& ctx);
void choose_algorithms(CudaContext& ctx, const std::string& text);
#endif

// Bytes of the relu mask of `product`; 0 where the backward pass reads the result instead, as on
// the CPU.
template <class T>
std::int64_t relu_mask_bytes(CpuContext&, const Product<T>&) {
  return 0;
}
#if NUNCHI_CUDA
std::int64_t relu_mask_bytes(CudaContext& ctx, const Product<float>& product);
std::int64_t relu_mask_bytes(CudaContext& ctx, const Product<BFloat16>& product);
#endif

// Whether the bits of a row are the same for any number of rows.
bool rows_are_independent();
// The library behind f32 products, with its version.
const char* product_library();

}  // namespace nunchi::kernels
