#include "nunchi/inference/pipeline.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "nunchi/base/error.h"
#include "tests/inference/small_translation.h"

namespace nunchi::testing {
namespace {

const PipelineOptions kOneThread{.device = {.threads = 1}};

// Counts how often a file is opened.
class OpenCounter {
 public:
  explicit OpenCounter(const std::filesystem::path& file) : queue_(::inotify_init1(IN_NONBLOCK)) {
    ::inotify_add_watch(queue_, file.c_str(), IN_OPEN);
  }
  ~OpenCounter() { ::close(queue_); }
  OpenCounter(const OpenCounter&) = delete;
  OpenCounter& operator=(const OpenCounter&) = delete;

  // How often the file was opened since the last call.
  int opened() {
    // An event without a name has the size of the struct.
    std::array<inotify_event, 64> events;
    const ssize_t bytes = ::read(queue_, events.data(), sizeof(events));
    return bytes < 0 ? 0 : static_cast<int>(bytes / static_cast<ssize_t>(sizeof(inotify_event)));
  }

 private:
  int queue_;
};

class PipelineFolder : public ::testing::Test {
 protected:
  PipelineFolder() { small_.save(folder_.path()); }

  SmallTranslation small_;
  TemporaryFolder folder_;
};

TEST_F(PipelineFolder, TranslatesLikeATranslatorMadeDirectly) {
  const Pipeline pipeline = Pipeline::open(folder_.path(), kOneThread);
  Translator translator = pipeline.translator({.search = {.max_length = 12}});
  EXPECT_TRUE(
      same(translator.translate("the old fox"), small_.translator().translate("the old fox")));
  EXPECT_FALSE(pipeline.translator().translate("the old fox").text.empty());
}

TEST_F(PipelineFolder, UsesTheSearchOptionsOfTheFolder) {
  EXPECT_EQ(Pipeline::open(folder_.path(), kOneThread).search().beam_size, 1);
  write_text(folder_ / "generation_config.json", "{\"num_beams\": 3, \"max_length\": 2}");
  const Pipeline pipeline = Pipeline::open(folder_.path(), kOneThread);
  EXPECT_EQ(pipeline.search().beam_size, 3);
  EXPECT_LE(pipeline.translator().translate("the old fox").pieces.size(), 3u);
}

TEST_F(PipelineFolder, CanBeMoved) {
  Pipeline first = Pipeline::open(folder_.path(), kOneThread);
  const Pipeline second = std::move(first);
  EXPECT_TRUE(same(second.translator({.search = {.max_length = 12}}).translate("a dog"),
                   small_.translator().translate("a dog")));
}

TEST_F(PipelineFolder, BuildsTheModelOnce) {
  OpenCounter config(folder_ / "config.json"), weights(folder_ / "model.safetensors");
  Pipeline::open(folder_.path(), {.device = {.threads = 1}, .check = as_translation_model});
  EXPECT_EQ(config.opened(), 1);
  EXPECT_EQ(weights.opened(), 1);
}

TEST_F(PipelineFolder, ChecksTheAbilityBeforeItReadsWeights) {
  OpenCounter weights(folder_ / "model.safetensors");
  const std::string message = error_of([&] {
    Pipeline::open(folder_.path(), {.device = {.threads = 1}, .check = as_language_model});
  });
  EXPECT_NE(message.find("a model of the family transformer cannot"), std::string::npos) << message;
  EXPECT_EQ(weights.opened(), 0);
}

TEST_F(PipelineFolder, PartsRefuseAModelWithoutTheAbility) {
  const Pipeline pipeline = Pipeline::open(folder_.path(), kOneThread);
  EXPECT_THROW(pipeline.generator(), Error);
  EXPECT_THROW(pipeline.filler(), Error);
  EXPECT_THROW(pipeline.embedder(), Error);
  EXPECT_THROW(pipeline.classifier(), Error);
  EXPECT_THROW(pipeline.line_scorer(), Error);
}

TEST_F(PipelineFolder, AWorkerKeepsTheWeights) {
  const auto worker = [&] { return Pipeline::open(folder_.path(), kOneThread).worker(1); }();
  EXPECT_TRUE(same(worker.translator({.search = {.max_length = 12}}).translate("a dog"),
                   small_.translator().translate("a dog")));
}

TEST_F(PipelineFolder, WorkersShareTheWeights) {
  const Pipeline pipeline = Pipeline::open(folder_.path(), kOneThread);
  const Pipeline worker = pipeline.worker(1);
  EXPECT_EQ(&worker.model(), &pipeline.model());
  EXPECT_NE(&worker.context(), &pipeline.context());
}

TEST_F(PipelineFolder, ConcurrentWorkersTranslateToTheSameBits) {
  const std::vector<SourceLine> lines = lines_of(some_texts());
  const TranslatorOptions options{.search = {.beam_size = 3, .n_best = 2, .max_length = 12}};
  const auto expected = small_.translator(options).translate(lines);
  const Pipeline pipeline = Pipeline::open(folder_.path(), kOneThread);
  std::array<std::vector<Translations>, 2> found;
  {
    std::vector<std::jthread> threads;
    for (std::vector<Translations>& result : found) {
      // Both threads need the packed weights at the same time, the first time they are needed.
      threads.emplace_back([&result, &lines, &options, worker = pipeline.worker(1)] {
        result = worker.translator(options).translate(lines);
      });
    }
  }
  for (const std::vector<Translations>& result : found) {
    ASSERT_EQ(result.size(), expected.size());
    for (std::size_t line = 0; line < expected.size(); ++line) {
      ASSERT_EQ(result[line].size(), expected[line].size());
      for (std::size_t i = 0; i < expected[line].size(); ++i) {
        EXPECT_TRUE(same(result[line][i], expected[line][i])) << lines[line].text;
      }
    }
  }
}

class BrokenFolder : public ::testing::Test {
 protected:
  BrokenFolder() { SmallTranslation().save(folder_.path()); }

  void expect_refused(const std::string& reason) {
    const std::string message = error_of([&] { Pipeline::open(folder_.path(), kOneThread); });
    EXPECT_NE(message.find(reason), std::string::npos) << message;
    EXPECT_NE(message.find(folder_.path().string()), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << "the message must be one line";
  }

  TemporaryFolder folder_;
};

TEST_F(BrokenFolder, WithoutTokenizer) {
  std::filesystem::remove(folder_ / "tokenizer.spm");
  expect_refused("has no tokenizer: neither tokenizer.spm nor source.spm and target.spm");
}

TEST_F(BrokenFolder, WithATokenizerOfAnotherModel) {
  save_tokenizers(Tokenizers(letter_tokenizer()), folder_.path());
  expect_refused("the source tokenizer has 34 tokens, but the model knows 310");
  std::filesystem::remove(folder_ / "tokenizer.spm");
  save_tokenizers(Tokenizers(byte_tokenizer(), letter_tokenizer()), folder_.path());
  expect_refused("the target tokenizer has 34 tokens, but the model knows 310");
}

TEST_F(BrokenFolder, WithABrokenTokenizer) {
  write_text(folder_ / "tokenizer.spm", "no tokenizer at all");
  expect_refused("tokenizer.spm");
  write_text(folder_ / "tokenizer.spm", "");
  expect_refused("tokenizer.spm");
}

TEST_F(BrokenFolder, WithABrokenGenerationConfig) {
  write_text(folder_ / "generation_config.json", "{\"num_beams\": ");
  expect_refused("generation_config.json");
}

}  // namespace
}  // namespace nunchi::testing
