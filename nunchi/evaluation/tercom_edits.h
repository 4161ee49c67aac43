// The edits of TER (Snover et al. 2006): insertions, deletions and substitutions of a word, and
// shifts of a phrase, each of cost 1. Finding the fewest edits is NP-hard, so Tercom shifts
// greedily: while some shift lowers the edit distance, it applies the shift that lowers it most.
//
// Which shifts are tried, and which of equally good ones is taken, decides the score. The rules are
// those of sacreBLEU 2.6.0:
//  - a phrase of 1 to 10 words that also occurs in the reference, at most 50 words away, moves to
//    where the words around that occurrence are aligned;
//  - it must contain a word that is not aligned to an equal word, on both sides, and its occurrence
//    must not be aligned to the phrase itself;
//  - the larger gain wins, then the longer phrase, then the earlier phrase, then the earlier
//  target;
//  - after 1,000 tried shifts the search ends, without the shift that was best last;
//  - the edit distance is computed in a band of 25 words around the diagonal of the matrix.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "nunchi/evaluation/ngrams.h"

namespace nunchi::evaluation {

// Keeps its memory from one pair of sentences to the next.
class TercomEdits {
 public:
  // The number of edits that turn the hypothesis into the reference.
  std::int64_t count(const Sequence& hypothesis, const Sequence& reference);

 private:
  // Columns [begin, end) of a row of the matrix: the row has a cell for each of them.
  struct Band {
    std::size_t begin, end;
    std::size_t cells;  // where the row's cells begin in cells_
  };
  // The words [start, start + length) of the hypothesis, moved before the word `target`.
  struct Shift {
    std::size_t start, length, target;
  };
  // The words [first, last) that a shift rearranged; empty if it moved nothing.
  struct Changed {
    std::size_t first, last;
  };

  void set_bands();
  // Computes the rows behind the first changed word, and the alignment.
  void fill_matrix(std::size_t first_changed);
  // Computes a row from the one before it. Both have the cells of their band.
  void next_row(std::size_t row, Symbol word, const std::int32_t* previous,
                std::int32_t* out) const;
  void align();
  // Sets best_. False if no shift lowers the distance or too many were tried.
  bool find_best_shift();
  // Tries every target for a phrase that occurs at word `at` of the reference.
  void try_targets(Shift shift, std::size_t at);
  // The distance of shifted_, or any number above max_useful_distance() if it is above it.
  std::int32_t distance_after(const Changed& changed);
  static Changed apply(const Shift& shift, Sequence& words);

  // A shift with a larger distance cannot be the best.
  std::int32_t max_useful_distance() const { return found_ ? best_distance_ : distance_ - 1; }
  const std::int32_t* cells(std::size_t row) const { return cells_.data() + bands_[row].cells; }
  std::int32_t* cells(std::size_t row) { return cells_.data() + bands_[row].cells; }
  std::int32_t cell(std::size_t row, std::size_t column) const;

  Sequence words_;      // the hypothesis with the shifts so far
  Sequence reference_;  // not empty
  // The edit distance of the first i words of the hypothesis and the first j of the reference is
  // cell j of row i. Row 0 is complete, the others have their band only.
  std::vector<Band> bands_;
  std::vector<std::int32_t> cells_;
  std::int32_t distance_ = 0;  // of words_ and reference_

  // For each word of the reference, where a phrase that should follow it is inserted: behind the
  // word of the hypothesis that it is paired with or, without one, behind the last paired or
  // dropped word before it.
  std::vector<std::size_t> insert_after_;
  // How many of the first i words are not aligned to an equal word.
  std::vector<std::int32_t> hypothesis_errors_, reference_errors_;

  int tried_ = 0;  // shifts
  Shift best_{};
  std::int32_t best_distance_ = 0;
  bool found_ = false;

  Sequence shifted_;
  std::array<std::vector<std::int32_t>, 2> rows_;  // of the matrix of shifted_, in turn
};

}  // namespace nunchi::evaluation
