// A cache of one weight's forms other than plain. Each form is computed on first use and kept until
// the weight changes.
//
// Thread-safe: when several threads, each with its own context, request a form, one computes it and
// the others wait. The weight must not change meanwhile.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "nunchi/tensor/tensor.h"
#include "nunchi/tensor/weight_form.h"

namespace nunchi {

// A weight in one of its forms.
struct FormedWeight {
  Tensor values;  // undefined if the device does not have that form
  Tensor scales;  // of the form int8: f32 [N]
};

class WeightForms {
 public:
  // `version` must change whenever the weight does.
  explicit WeightForms(std::shared_ptr<const std::uint64_t> version)
      : version_(std::move(version)) {}

  // The form of the weight's current version, from the cache or from make(). make() may return an
  // undefined tensor if the device does not have that form.
  template <class Make>
  FormedWeight get(WeightForm form, Make&& make) {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[static_cast<std::size_t>(form)];
    if (entry.version != *version_) {
      entry.weight = {};  // first, so that two versions never exist at once
      entry.weight = std::forward<Make>(make)();
      entry.version = *version_;
    }
    return entry.weight;
  }

  // The int8 form that replaces the plain weight, whatever its version; the plain weight then has
  // no memory. Called before other threads use the weight.
  void replace_by_int8(FormedWeight weight) { int8_ = std::move(weight); }
  // Undefined values if the weight has its plain form.
  const FormedWeight& int8() const { return int8_; }

 private:
  struct Entry {
    FormedWeight weight;
    std::optional<std::uint64_t> version;  // nullopt: not computed yet
  };
  std::shared_ptr<const std::uint64_t> version_;
  std::mutex mutex_;
  std::array<Entry, kWeightForms> entries_;
  FormedWeight int8_;
};

}  // namespace nunchi
