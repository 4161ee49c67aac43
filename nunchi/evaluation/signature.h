// The signature of a score: all options that are needed to reproduce it, in sacreBLEU's format
// (Post 2018).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nunchi/evaluation/bootstrap.h"

namespace nunchi::evaluation {

// The version of sacreBLEU that the scores equal; tests/evaluation compares them.
inline constexpr std::string_view kSacreBleuVersion = "2.6.0";

// The options of a score that do not belong to its metric.
struct Setting {
  std::size_t references = 1;
  std::optional<BootstrapOptions> bootstrap{};
};

// "nrefs:1|bs:1000|seed:1|" + `own` + "|version:…"; `own` describes the metric's options.
std::string signature_of(const Setting& setting, std::string_view own);

}  // namespace nunchi::evaluation
