#include "nunchi/models/format/tokenizers.h"

#include "tests/inference/small_translation.h"

namespace nunchi::testing {
namespace {

TEST(Tokenizers, SharedAndSeparateTokenizersLoadAsTheyWereSaved) {
  const TemporaryFolder shared, separate;
  save_tokenizers(Tokenizers(byte_tokenizer()), shared.path());
  EXPECT_EQ(shared.entry_count(), 1);
  const Tokenizers one = load_tokenizers(shared.path());
  EXPECT_TRUE(one.shared());
  EXPECT_EQ(&one.source(), &one.target());
  EXPECT_EQ(one.source().fingerprint(), byte_tokenizer()->fingerprint());

  save_tokenizers(Tokenizers(byte_tokenizer(), letter_tokenizer()), separate.path());
  EXPECT_EQ(separate.entry_count(), 2);
  const Tokenizers two = load_tokenizers(separate.path());
  EXPECT_FALSE(two.shared());
  EXPECT_EQ(two.source().fingerprint(), byte_tokenizer()->fingerprint());
  EXPECT_EQ(two.target().fingerprint(), letter_tokenizer()->fingerprint());
}

TEST(Tokenizers, OnlyOneOfTwoTokenizersIsAnError) {
  for (const char* missing : {"source.spm", "target.spm"}) {
    const TemporaryFolder folder;
    save_tokenizers(Tokenizers(byte_tokenizer(), letter_tokenizer()), folder.path());
    std::filesystem::remove(folder / missing);
    EXPECT_TRUE(has_tokenizers(folder.path()));
    EXPECT_NE(error_of([&] { load_tokenizers(folder.path()); }).find("has no tokenizer"),
              std::string::npos);
  }
}

TEST(Tokenizers, MustHaveAsManyTokensAsTheModel) {
  SmallTranslation s;
  s.tokenizers.check_fit(*s.model, "here");
  const Tokenizers wrong_target(byte_tokenizer(), letter_tokenizer());
  EXPECT_EQ(error_of([&] { wrong_target.check_fit(*s.model, "here"); }),
            "here: the target tokenizer has 34 tokens, but the model knows 310; they do not belong "
            "together.");
}

}  // namespace
}  // namespace nunchi::testing
