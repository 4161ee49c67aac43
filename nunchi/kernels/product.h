// Matrix products: by a library in f32, by our own loops in f64.
//
// A row of c depends on its row of a and on b alone, to the bit, however many rows there are, where
// oneDNN has AVX-512; elsewhere, and with OpenBLAS, its last bits may change:
// rows_are_independent().
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "nunchi/base/error.h"
#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// c = a · b, or c += a · b; then + bias, then + added or max(0, ·), where asked for. added and relu
// exclude one another: nobody needs to know which would come first.
template <class T, class C = T>
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;  // [M, K], or [K, M] when transposed
  bool transpose_a = false;
  // [K, N], or [N, K] when transposed. A GPU may read b and bias early: where b is transposed they
  // are parameters, or anything else that was not written in a decode step.
  const T* b = nullptr;
  bool transpose_b = false;
  const T* packed_b = nullptr;  // the same b as PackMatrix left it; null: not packed
  C* c = nullptr;               // [M, N]
  bool accumulate = false;
  const T* bias = nullptr;   // [N]; not with accumulate
  bool relu = false;         // not with accumulate
  const T* added = nullptr;  // [M, N], not c; not with accumulate, relu
  // What passed relu, for the way back: relu_mask_bytes() of them; null: it is not kept.
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

// Throws Error for what a product cannot have together.
template <class T, class C>
[[gnu::always_inline]] inline void check_product(const Product<T, C>& p) {
  if (p.accumulate && (p.bias != nullptr || p.relu || p.added != nullptr)) {
    refuse_product(p.label, "a product that is added to its result has nothing after it.");
  }
  if (p.relu && p.added != nullptr) {
    refuse_product(p.label, "a product has relu or something added, not both.");
  }
  if (p.added != nullptr && static_cast<const void*>(p.added) == static_cast<const void*>(p.c)) {
    refuse_product(p.label, "what is added to a product is not its result.");
  }
}

// b in the layout in which the library reads it fastest; serves products of every m.
template <class T>
struct PackMatrix {
  std::int64_t n = 0, k = 0;
  const T* b = nullptr;  // [K, N], or [N, K] when transposed
  bool transpose_b = false;
  T* packed = nullptr;  // packed_elements() of them

  static constexpr bool kIsaIndependent = true;
  const char* name() const { return "pack_matrix"; }
  Work work() const { return {.bytes = 2.0 * static_cast<double>(n * k) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const PackMatrix<T>& p);

// Elements that a packed b takes; 0 where packing gains nothing and products take b as it is.
std::int64_t packed_elements(CpuContext& ctx, const PackMatrix<float>& pack);
std::int64_t packed_elements(CpuContext& ctx, const PackMatrix<double>& pack);

// On the CPU alone: other devices read weights as they stand.
template <class AnyContext>
inline constexpr bool kPacks = std::is_same_v<AnyContext, CpuContext>;

// Whether products add what comes with them on the way. On the CPU that is a pass of its own,
// better left to a kernel that has something else to do in it.
template <class AnyContext>
inline constexpr bool kAddsOnTheWay = !std::is_same_v<AnyContext, CpuContext>;

// The algorithms that were chosen by measurement, as text, and back: a run that goes on elsewhere
// or later computes with the same ones. Nothing on the CPU, where none is chosen so. Throws Error
// for a text that is none.
inline std::string chosen_algorithms(CpuContext&) { return {}; }
inline void choose_algorithms(CpuContext&, const std::string&) {}
#if NUNCHI_CUDA
std::string chosen_algorithms(CudaContext& ctx);
void choose_algorithms(CudaContext& ctx, const std::string& text);
#endif

// Bytes in which `product`, with relu, keeps what passed; 0 where the device looks at its result
// instead, as the CPU does.
template <class T>
std::int64_t relu_mask_bytes(CpuContext&, const Product<T>&) {
  return 0;
}
#if NUNCHI_CUDA
std::int64_t relu_mask_bytes(CudaContext& ctx, const Product<float>& product);
std::int64_t relu_mask_bytes(CudaContext& ctx, const Product<BFloat16>& product);
#endif

// Whether a row's bits stay the same for any number of rows.
bool rows_are_independent();
// The library behind f32 products, with its version.
const char* product_library();

}  // namespace nunchi::kernels
