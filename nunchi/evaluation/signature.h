// The signature of a score: everything that another person needs in order to get the same number,
// in the words of sacreBLEU (Post 2018).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nunchi/evaluation/bootstrap.h"

namespace nunchi::evaluation {

// The version of sacreBLEU whose scores these are, to every digit; tests/evaluation compares.
inline constexpr std::string_view kSacreBleuVersion = "2.6.0";

// How a score came about, apart from its metric's own options.
struct Setting {
  std::size_t references = 1;
  std::optional<BootstrapOptions> bootstrap{};
};

// "nrefs:1|bs:1000|seed:1|" + `own` + "|version:…"; `own` is what the metric says of itself.
std::string signature_of(const Setting& setting, std::string_view own);

}  // namespace nunchi::evaluation
