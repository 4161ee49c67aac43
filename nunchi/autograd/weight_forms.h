// The forms of one weight other than plain: each is computed when it is first asked for and kept
// until the weight changes.
//
// Any number of threads, each with a context of its own, may ask at once: one computes the form,
// the others wait for it. The weight must not change meanwhile.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "nunchi/tensor/tensor.h"
#include "nunchi/tensor/weight_form.h"

namespace nunchi {

class WeightForms {
 public:
  // `version` changes whenever the weight does.
  explicit WeightForms(std::shared_ptr<const std::uint64_t> version)
      : version_(std::move(version)) {}

  // The form of the weight's present version, from the cache or from make(), which may return an
  // undefined tensor where the device does not have that form.
  template <class Make>
  Tensor get(WeightForm form, Make&& make) {
    const std::lock_guard lock(mutex_);
    Kept& kept = kept_[static_cast<std::size_t>(form)];
    if (kept.version != *version_) {
      kept.tensor = {};  // two versions at once would need twice the memory
      kept.tensor = std::forward<Make>(make)();
      kept.version = *version_;
    }
    return kept.tensor;
  }

 private:
  struct Kept {
    Tensor tensor;
    std::optional<std::uint64_t> version;  // none: nothing is kept
  };
  std::shared_ptr<const std::uint64_t> version_;
  std::mutex mutex_;
  std::array<Kept, kWeightForms> kept_;
};

}  // namespace nunchi
