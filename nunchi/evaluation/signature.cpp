#include "nunchi/evaluation/signature.h"

#include <fmt/format.h>

namespace nunchi::evaluation {

std::string signature_of(const Setting& setting, std::string_view metric_options) {
  std::string text = fmt::format("nrefs:{}", setting.references);
  if (setting.bootstrap) {
    text += fmt::format("|bs:{}|seed:{}", setting.bootstrap->resamples, setting.bootstrap->seed);
  }
  return fmt::format("{}|{}|version:{}", text, metric_options, kSacreBleuVersion);
}

}  // namespace nunchi::evaluation
