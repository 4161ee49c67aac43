#include "cli/bind_option.h"

namespace nunchi::cli {

template CLI::Option* bind_option(CLI::App&, const std::string&, std::string&, const std::string&);
template CLI::Option* bind_option(CLI::App&, const std::string&, std::vector<std::string>&,
                                  const std::string&);
template CLI::Option* bind_option(CLI::App&, const std::string&, int&, const std::string&);
template CLI::Option* bind_option(CLI::App&, const std::string&, std::int64_t&, const std::string&);
template CLI::Option* bind_option(CLI::App&, const std::string&, std::uint64_t&,
                                  const std::string&);
template CLI::Option* bind_option(CLI::App&, const std::string&, float&, const std::string&);
template CLI::Option* bind_option(CLI::App&, const std::string&, double&, const std::string&);
template CLI::Option* bind_option(CLI::App&, const std::string&, std::optional<int>&,
                                  const std::string&);

}  // namespace nunchi::cli
