// What can be a seed.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <string>

namespace nunchi::cli {

// For options that take one: a whole number below 2^63, as in config files. (CLI11 alone would take
// -1 for the largest of all.)
inline CLI::Validator seed() {
  const auto check = [](const std::string& text) -> std::string {
    std::int64_t value = -1;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    if (read.ec == std::errc() && read.ptr == end && value >= 0) return {};
    return "a seed is a whole number from 0 to 9223372036854775807, not '" + text + "'";
  };
  return {check, "NUMBER", "seed"};
}

}  // namespace nunchi::cli
