#include "nunchi/decoding/search_options.h"

#include <cmath>
#include <string>

#include "nunchi/base/error.h"

namespace nunchi {

void SearchOptions::check() const {
  const auto require = [](bool holds, const std::string& message) {
    if (!holds) throw UsageError(message);
  };
  constexpr int kMaxBeam = 4096;
  require(beam_size >= 1 && beam_size <= kMaxBeam,
          "the beam size must be from 1 to " + std::to_string(kMaxBeam) + ".");
  require(n_best >= 1 && n_best <= kMaxBeam,
          "n-best must be from 1 to " + std::to_string(kMaxBeam) + ".");
  require(sample || n_best <= beam_size, "n-best (" + std::to_string(n_best) +
                                             ") cannot be larger than the beam size (" +
                                             std::to_string(beam_size) + ").");
  require(!sample || beam_size == 1, "sampling and beam search exclude each other.");
  require(std::isfinite(normalize) && normalize >= 0, "normalize must be at least 0.");
  require(std::isfinite(temperature) && temperature > 0, "the temperature must be above 0.");
  require(top_p > 0 && top_p <= 1, "top-p must be above 0 and at most 1.");
  require(top_k >= 0, "top-k must be at least 0.");
  require(min_length >= 0 && max_length >= 1 && min_length <= max_length,
          "the maximum length (" + std::to_string(max_length) +
              ") must be at least 1 and at least the minimum length (" +
              std::to_string(min_length) + "), which must be at least 0.");
  require(no_repeat_ngram >= 0 && max_repeats >= 0, "limits on repetition must be at least 0.");
}

}  // namespace nunchi
