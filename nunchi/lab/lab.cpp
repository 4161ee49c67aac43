#include "nunchi/lab/lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nunchi/base/error.h"
#include "nunchi/base/interrupted.h"

namespace nunchi::lab {

std::string both(std::string_view en, std::string_view ko) {
  return fmt::format("{} · {}", en, ko);
}

void Figures::set(std::string name, double value) { items_.emplace_back(std::move(name), value); }

double Figures::operator[](std::string_view name) const {
  for (const auto& [key, value] : items_) {
    if (key == name) return value;
  }
  throw Error("there is no figure '" + std::string(name) + "' (internal error).");
}

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds:
      return "holds";
    case Verdict::partly:
      return "partly";
    case Verdict::fails:
      return "fails";
  }
  return "";
}

Verdict verdict_of(bool first, bool second) {
  if (first && second) return Verdict::holds;
  return first || second ? Verdict::partly : Verdict::fails;
}

std::string cell(double number) { return fmt::format("{:.6g}", number); }

void Options::report(const Progress& value) const {
  if (stop != nullptr && stop->load()) throw Interrupted();
  if (progress) progress(value);
}

std::int64_t Options::scaled(std::int64_t count, std::int64_t least) const {
  return std::max<std::int64_t>(least, std::llround(static_cast<double>(count) * effort));
}

}  // namespace nunchi::lab
