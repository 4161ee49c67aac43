#include "nunchi/decoding/search_options.h"

#include <cmath>
#include <string>

#include "nunchi/base/error.h"

namespace nunchi {

void SearchOptions::check() const {
  const auto need = [](bool holds, const std::string& what) {
    if (!holds) throw UsageError(what);
  };
  constexpr int kLargestBeam = 4096;
  need(beam_size >= 1 && beam_size <= kLargestBeam,
       "the beam size is a whole number from 1 to " + std::to_string(kLargestBeam) + ".");
  need(n_best >= 1 && n_best <= kLargestBeam, "n-best is a whole number from 1 to 4096.");
  need(sample || n_best <= beam_size, "n-best (" + std::to_string(n_best) +
                                          ") cannot be larger than the beam size (" +
                                          std::to_string(beam_size) + ").");
  need(!sample || beam_size == 1, "sampling and a beam exclude each other.");
  need(std::isfinite(normalize) && normalize >= 0, "normalize is a number from 0 up.");
  need(std::isfinite(temperature) && temperature > 0, "the temperature is a number above 0.");
  need(top_p > 0 && top_p <= 1, "top-p is a number above 0 and up to 1.");
  need(top_k >= 0, "top-k is a whole number from 0 up.");
  need(min_length >= 0 && max_length >= 1 && min_length <= max_length,
       "the minimum length (" + std::to_string(min_length) +
           ") cannot be larger than the maximum (" + std::to_string(max_length) +
           "), nor can the maximum be 0.");
  need(no_repeat_ngram >= 0 && max_repeats >= 0, "limits on repetition are whole numbers from 0.");
}

}  // namespace nunchi
