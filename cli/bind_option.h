// Adds an option of CLI11 that sets a variable.
//
// CLI11 consists of inline functions, and each file that calls one of the large ones compiles it
// again. So options of the usual types are compiled once, in bind_option.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nunchi::cli {

// The current value of the variable is shown as the default.
template <class T>
CLI::Option* bind_option(CLI::App& command, const std::string& names, T& value,
                         const std::string& help) {
  return command.add_option(names, value, help)->capture_default_str();
}

extern template CLI::Option* bind_option(CLI::App&, const std::string&, std::string&,
                                         const std::string&);
extern template CLI::Option* bind_option(CLI::App&, const std::string&, std::vector<std::string>&,
                                         const std::string&);
extern template CLI::Option* bind_option(CLI::App&, const std::string&, int&, const std::string&);
extern template CLI::Option* bind_option(CLI::App&, const std::string&, std::int64_t&,
                                         const std::string&);
extern template CLI::Option* bind_option(CLI::App&, const std::string&, std::uint64_t&,
                                         const std::string&);
extern template CLI::Option* bind_option(CLI::App&, const std::string&, float&, const std::string&);
extern template CLI::Option* bind_option(CLI::App&, const std::string&, double&,
                                         const std::string&);
extern template CLI::Option* bind_option(CLI::App&, const std::string&, std::optional<int>&,
                                         const std::string&);

}  // namespace nunchi::cli
