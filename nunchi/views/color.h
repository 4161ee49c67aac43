// Colours of drawings on a light background, the same as on the page (web/modules/color.js). The
// lightness of a scale falls evenly from zero, so it can be read in grey; signed values are blue
// and orange, which every common kind of colour blindness keeps apart.
#pragma once

#include <string>
#include <string_view>

namespace nunchi {

inline constexpr std::string_view kInk = "#1b2027";        // text
inline constexpr std::string_view kSoftInk = "#565f6b";    // secondary text
inline constexpr std::string_view kLineColor = "#c4c9d0";  // frames and axes
inline constexpr std::string_view kGridColor = "#dfe2e6";
inline constexpr std::string_view kWash = "#eef3f9";  // the background of a box
inline constexpr std::string_view kAccent = "#1d5fa8";
inline constexpr std::string_view kMarkColor = "#c96a1b";  // marks the largest of some values
inline constexpr std::string_view kQueryColor = "#a8420b";
inline constexpr std::string_view kKeyColor = "#0b5f9e";
inline constexpr std::string_view kValueColor = "#04705a";

// The colour "#rrggbb" of a weight in [0, largest]. The square root keeps small weights visible.
// Values outside take the nearest colour; what is not a number takes that of 0.
std::string weight_color(double value, double largest = 1);

// The colour of a value in [-largest, largest].
std::string signed_color(double value, double largest);

// Black or white, whichever can be read on a colour "#rrggbb".
std::string_view ink_on(std::string_view color);

// The look of line `index` of several in one chart; they repeat after eight. Neighbours differ in
// lightness and in their dashes, so that a grey print keeps them apart.
struct SeriesStyle {
  std::string_view color;
  std::string_view dashes;  // as stroke-dasharray; empty for a solid line
};
SeriesStyle series_style(int index);

}  // namespace nunchi
