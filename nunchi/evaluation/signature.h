// The signature of a score: all options that are needed to reproduce it, in sacreBLEU's format
// (Post 2018).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nunchi/evaluation/bootstrap.h"

namespace nunchi::evaluation {

// Scores are equal to those of this version of sacreBLEU; tests/evaluation compares them.
inline constexpr std::string_view kSacreBleuVersion = "2.6.0";

// The options of a score that do not belong to its metric.
struct Setting {
  std::size_t references = 1;
  std::optional<BootstrapOptions> bootstrap{};
};

// "nrefs:1|bs:1000|seed:1|" + `metric_options` + "|version:…".
std::string signature_of(const Setting& setting, std::string_view metric_options);

}  // namespace nunchi::evaluation
