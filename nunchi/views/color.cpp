#include "nunchi/views/color.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace nunchi {
namespace {

using Rgb = std::array<double, 3>;

constexpr std::array<Rgb, 6> kWeights{{{0xf6, 0xf8, 0xfb},
                                       {0xd3, 0xe3, 0xf3},
                                       {0x94, 0xbf, 0xe0},
                                       {0x4a, 0x90, 0xc8},
                                       {0x1a, 0x60, 0x9f},
                                       {0x08, 0x30, 0x6b}}};
constexpr std::array<Rgb, 5> kNegative{{{0xf6, 0xf6, 0xf4},
                                        {0xfb, 0xd9, 0xb4},
                                        {0xf2, 0xa6, 0x5e},
                                        {0xc9, 0x6a, 0x1b},
                                        {0x7f, 0x3b, 0x08}}};
constexpr std::array<Rgb, 5> kPositive{{{0xf6, 0xf6, 0xf4},
                                        {0xcf, 0xe1, 0xf0},
                                        {0x86, 0xb5, 0xda},
                                        {0x3c, 0x7f, 0xb8},
                                        {0x0d, 0x3f, 0x78}}};

constexpr std::array<SeriesStyle, 8> kSeries{{{"#1d5fa8", ""},
                                              {"#e08a1e", "6 3"},
                                              {"#04705a", "2 2"},
                                              {"#b35c9e", "8 3 2 3"},
                                              {"#08306b", "4 2"},
                                              {"#7f3b08", ""},
                                              {"#5b9bd0", "10 4"},
                                              {"#565f6b", "1 2"}}};

// The colour at `share` of a scale, 0 to 1.
std::string mixed(std::span<const Rgb> scale, double share) {
  const double at = share * static_cast<double>(scale.size() - 1);
  const std::size_t low = std::min(static_cast<std::size_t>(at), scale.size() - 2);
  const double rest = at - static_cast<double>(low);
  std::array<int, 3> channels{};
  for (std::size_t c = 0; c < channels.size(); ++c) {
    channels[c] =
        static_cast<int>(std::lround(scale[low][c] + (scale[low + 1][c] - scale[low][c]) * rest));
  }
  return fmt::format("#{:02x}{:02x}{:02x}", channels[0], channels[1], channels[2]);
}

// |value| / largest, limited to 0 to 1; 0 for what is not a number.
double share_of(double value, double largest) {
  if (!(largest > 0) || std::isnan(value)) return 0;
  return std::min(std::abs(value) / largest, 1.0);
}

double luminance(std::string_view color) {
  constexpr std::array<double, 3> kParts{0.2126, 0.7152, 0.0722};
  double sum = 0;
  for (std::size_t c = 0; c < kParts.size(); ++c) {
    int channel = 0;
    const char* begin = color.data() + 1 + 2 * c;
    std::from_chars(begin, begin + 2, channel, 16);
    const double s = channel / 255.0;
    sum += kParts[c] * (s <= 0.04045 ? s / 12.92 : std::pow((s + 0.055) / 1.055, 2.4));
  }
  return sum;
}

}  // namespace

std::string weight_color(double value, double largest) {
  return mixed(kWeights, value > 0 ? std::sqrt(share_of(value, largest)) : 0);
}

std::string signed_color(double value, double largest) {
  return mixed(value < 0 ? std::span(kNegative) : std::span(kPositive),
               std::pow(share_of(value, largest), 0.75));
}

std::string_view ink_on(std::string_view color) {
  if (color.size() != 7) return kInk;
  return luminance(color) > 0.18 ? "#10151c" : "#ffffff";
}

SeriesStyle series_style(int index) {
  return kSeries[static_cast<std::size_t>(std::max(index, 0)) % kSeries.size()];
}

}  // namespace nunchi
