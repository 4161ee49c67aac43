// A lab is an experiment on one claim of the notes: what it measures, the picture of it, and the
// rule by which the claim holds or does not.
//
// A lab is one pair of files here and one line in labs.cpp. Its `run` computes figures; its `judge`
// is a function of the figures alone, so that tests can ask under which figures the claim would
// fail. lab/report.h turns the result into files.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nunchi/device/context.h"
#include "nunchi/views/chart.h"

namespace nunchi::lab {

// A text for readers, in both languages of the program.
struct Text {
  std::string en, ko;
};

// Both languages in one line, for pictures.
std::string both(std::string_view en, std::string_view ko);

// Named numbers in the order in which they were set.
class Figures {
 public:
  void set(std::string name, double value);
  // Throws Error if there is no such figure.
  double operator[](std::string_view name) const;
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  std::size_t size() const { return items_.size(); }

 private:
  std::vector<std::pair<std::string, double>> items_;
};

enum class Verdict : std::uint8_t { holds, partly, fails };
std::string_view name_of(Verdict verdict);  // "holds", "partly", "fails"

// holds if both conditions are true, partly if one is, fails if none is.
Verdict verdict_of(bool first, bool second);

// The numbers behind the pictures, for NAME.csv.
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;

  // Numbers are written with up to six significant digits.
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
};
std::string cell(double number);

struct Result {
  Figures figures;
  Text finding;    // what was measured, with the numbers
  Text not_shown;  // what the experiment leaves open
  std::vector<Chart> charts;
  Table table;
  std::string log;  // plain text to print before the finding: operations with numbers
};

struct Progress {
  std::string_view part;  // "without positions"
  double done = 0;        // of the whole lab, 0 to 1
};

struct Options {
  ContextBase& context;
  std::uint64_t seed = 1;
  // Multiplies the training steps and the sizes of measurements. Below 1 a lab still runs through,
  // but its verdict says nothing: for tests.
  double effort = 1;
  std::function<void(const Progress&)> progress = {};
  const std::atomic<bool>* stop = nullptr;  // set to true to stop the lab

  // Reports progress. Throws Interrupted when the lab is to stop.
  void report(const Progress& progress) const;
  // `count` times the effort, at least `least`.
  std::int64_t scaled(std::int64_t count, std::int64_t least = 1) const;
};

struct Lab {
  std::string_view name;
  std::string_view note;  // which note makes the claim
  Text question;
  Text claim;  // as the note states it
  Text rule;   // when the claim holds, partly holds, and fails
  Verdict (*judge)(const Figures& figures) = nullptr;
  Result (*run)(const Options& options) = nullptr;
};

// All labs, computed ones first.
const std::vector<Lab>& labs();
// Throws UsageError, naming the most similar lab, if there is none of this name.
const Lab& find_lab(std::string_view name);

// The notes that the claims come from.
namespace notes {
inline constexpr std::string_view kOverview = "Transformer overview (트랜스포머 개요)";
inline constexpr std::string_view kAttention = "Attention (어텐션)";
inline constexpr std::string_view kSeq2Seq =
    "From Seq2Seq to the Transformer (Seq2Seq에서 트랜스포머까지)";
inline constexpr std::string_view kTraining =
    "Encoder, decoder, training, decoding (인코더·디코더·학습·디코딩)";
inline constexpr std::string_view kPositions =
    "Paper review: positions (논문 리뷰: 포지셔널 인코딩)";
}  // namespace notes

}  // namespace nunchi::lab
