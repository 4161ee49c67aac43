// A small artificial corpus and a config for training on it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/files.h"
#include "tests/support.h"

namespace nunchi::testing {

// The targets are the sources in reverse order.
class SmallRun {
 public:
  SmallRun() {
    const std::vector<std::string> words = {"eins", "zwei", "drei", "vier", "fünf", "sechs"};
    std::string sources, targets;
    for (int i = 0; i < 160; ++i) {
      std::string source, target;
      for (const double u : random_values<double>(1 + i % 5, 90 + static_cast<std::uint64_t>(i))) {
        const std::string& word = words[static_cast<std::size_t>((u + 1) * 3)];
        source += (source.empty() ? "" : " ") + word;
        target = word + (target.empty() ? "" : " ") + target;
      }
      sources += source + "\n";
      targets += target + "\n";
      if (i == 19) {
        write_text(folder_ / "val.x", sources);
        write_text(folder_ / "val.y", targets);
      }
    }
    write_text(folder_ / "train.x", sources);
    write_text(folder_ / "train.y", targets);
    write_text(folder_ / "config.yaml", R"(
output: OUT
seed: 3
model: {family: transformer, encoder_layers: 1, decoder_layers: 1, width: 48, heads: 2,
        feed_forward: 96, dropout: 0.1}
tokenizer: {vocabulary: 40, byte_fallback: false}
data:
  train: {source: train.x, target: train.y}
  validation: {source: val.x, target: val.y}
training: {batch_tokens: 150, accumulate: 2, max_steps: 60, log_every: 10,
           schedule: {learning_rate: 0.003, warmup: 10}}
checkpoints: {every: 5, keep_last: 2, keep_best: 2, average: 2}
validation: {every: 30, metric: bleu}
)");
  }

  // The arguments of the program for training into the folder `run`.
  std::string arguments(const std::string& run, const std::string& more = "") const {
    return "train " + (folder_ / "config.yaml").string() + " --set output=" + path(run) +
           " --set data.root=" + folder_.path().string() + " " + more;
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

}  // namespace nunchi::testing
