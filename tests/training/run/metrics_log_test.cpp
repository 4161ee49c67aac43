#include "nunchi/training/run/metrics_log.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "nunchi/base/error.h"
#include "tests/files.h"
#include "tests/support.h"
#include "tests/training/run/event_reader.h"

namespace nunchi::testing {
namespace {

namespace fs = std::filesystem;
using Values = std::vector<NamedValue>;

std::vector<nlohmann::json> lines_of(const fs::path& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(content(path));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(EventFile, RecordsCanBeReadBack) {
  const TemporaryFolder folder;
  EventFile file(folder / "events", 1);
  file.write(50, Values{{"train/loss", 4.25}, {"손실", -1e-30}});
  file.write(std::int64_t{1} << 40, Values{{std::string(300, 'x'), 1e300}});
  file.write(100, Values{});
  // Each write reaches the file at once, so it can be read while it is open.
  const auto events = EventReader::read(content(file.path()));
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_TRUE(events[1].starts_session);
  EXPECT_EQ(events[1].step, 1);
  EXPECT_GT(events[2].seconds, 1.5e9);
  EXPECT_EQ(events[2].step, 50);
  ASSERT_EQ(events[2].values.size(), 2u);
  EXPECT_EQ(events[2].values[0], (std::pair<std::string, float>("train/loss", 4.25f)));
  EXPECT_EQ(events[2].values[1], (std::pair<std::string, float>("손실", -1e-30f)));
  EXPECT_EQ(events[3].step, std::int64_t{1} << 40);
  EXPECT_EQ(events[3].values[0].first.size(), 300u);
  EXPECT_TRUE(std::isinf(events[3].values[0].second));
  EXPECT_TRUE(events[4].values.empty());
}

TEST(EventFile, ChecksumsDetectAnyCorruptedByte) {
  const TemporaryFolder folder;
  EventFile file(folder.path(), 1);
  file.write(1, Values{{"a", 1}});
  std::string text = content(file.path());
  for (std::size_t i = 0; i < text.size(); ++i) {
    text[i] ^= 4;
    EXPECT_THROW(EventReader::read(text), std::runtime_error) << i;
    text[i] ^= 4;
  }
}

TEST(EventFile, AFolderThatCannotBeMadeIsAnError) {
  const TemporaryFolder folder;
  write_text(folder / "events", "a file");
  const std::string message = error_of([&] { EventFile file(folder / "events", 1); });
  EXPECT_NE(message.find("events"), std::string::npos) << message;
}

TEST(MetricsLog, JsonLinesAndEventsHaveTheSameNumbers) {
  const TemporaryFolder folder;
  MetricsLog log(folder.path(), 0);
  const double third = 1.0 / 3;
  log.write(50, Values{{"train/loss", third}, {"train/learning_rate", 5e-7}});
  log.write(100, Values{{"train/loss", NAN}, {"train/tokens_per_second", 12345}});
  const auto lines = lines_of(folder / "log.jsonl");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["step"], 50);
  EXPECT_EQ(lines[0]["train/loss"].get<double>(), third);
  EXPECT_EQ(lines[0]["train/learning_rate"].get<double>(), 5e-7);
  EXPECT_TRUE(lines[1]["train/loss"].is_null());
  const auto events = EventReader::read(content(folder / "events.out.tfevents.000001"));
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[2].values[0].second, static_cast<float>(third));
  EXPECT_TRUE(std::isnan(events[3].values[0].second));
}

TEST(MetricsLog, AResumedRunRemovesTheStepsThatItRepeats) {
  const TemporaryFolder folder;
  {
    MetricsLog log(folder.path(), 0);
    for (const int step : {10, 20, 30}) log.write(step, Values{{"a", step}});
  }
  {
    std::ofstream(folder / "log.jsonl", std::ios::app)
        << R"({"step": 15, "a": 1})";  // without a newline
  }
  MetricsLog log(folder.path(), 20);
  log.write(30, Values{{"a", 31}});
  const auto lines = lines_of(folder / "log.jsonl");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1]["step"], 20);
  EXPECT_EQ(lines[2]["a"], 31);
  const auto events = EventReader::read(content(folder / "events.out.tfevents.000002"));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_TRUE(events[1].starts_session);
  EXPECT_EQ(events[1].step, 21);
}

TEST(MetricsLog, TensorBoardGetsOptionsSamplesAndTheModelsScore) {
  const TemporaryFolder folder;
  MetricsLog log(folder.path(), 0);
  const std::vector<std::pair<std::string, std::string>> options = {
      {"model.family", "gpt"}, {"training.max_steps", "300"}, {"model.bias", "true"}};
  log.write_options(options);
  log.write_samples(10, std::vector<SampleTranslation>{{"눈", "snow", "eye"}, {"a", "b", ""}});
  log.write_samples(20, {});
  log.write_end(30, NamedValue{"final/bleu", 12.5});
  EXPECT_EQ(content(folder / "log.jsonl"), "") << "only for TensorBoard";
  const auto events = EventReader::read(content(folder / "events.out.tfevents.000001"));
  ASSERT_EQ(events.size(), 6u);
  const ReadTensor& start = events[2].tensors.at(0);
  EXPECT_EQ(start.tag, "_hparams_/session_start_info");
  EXPECT_EQ(start.plugin, "hparams");
  EXPECT_EQ(start.type, 1u);
  for (const auto& [key, value] : options) EXPECT_NE(start.content.find(key), start.content.npos);
  EXPECT_NE(start.content.find("gpt"), start.content.npos);
  EXPECT_EQ(start.content.find("300"), start.content.npos) << "a number is not stored as text";
  const ReadTensor& samples = events[3].tensors.at(0);
  EXPECT_EQ(events[3].step, 10);
  EXPECT_EQ(samples.tag, "validation/translations");
  EXPECT_EQ(samples.plugin, "text");
  EXPECT_EQ(samples.type, 7u);
  EXPECT_EQ(samples.sizes, (std::vector<std::uint64_t>{3, 3}));
  EXPECT_EQ(samples.texts, (std::vector<std::string>{"source", "reference", "translation", "눈",
                                                     "snow", "eye", "a", "b", ""}));
  EXPECT_EQ(events[4].step, 30);
  EXPECT_EQ(events[4].values.at(0), (std::pair<std::string, float>("final/bleu", 12.5f)));
  EXPECT_EQ(events[5].tensors.at(0).tag, "_hparams_/session_end_info");
}

// TensorBoard names a run after the folder of its event files, so all must be in one folder.
TEST(MetricsLog, EventFilesOfEarlierVersionsAreMoved) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "events");
  write_text(folder / "events/events.out.tfevents.000001", "old");
  MetricsLog log(folder.path(), 5);
  EXPECT_EQ(content(folder / "events.out.tfevents.000001"), "old");
  EXPECT_TRUE(fs::exists(folder / "events.out.tfevents.000002"));
  EXPECT_FALSE(fs::exists(folder / "events"));
}

}  // namespace
}  // namespace nunchi::testing
