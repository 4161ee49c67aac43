#include "nunchi/inference/inspector.h"

#include <cmath>

#include "nunchi/base/error.h"
#include "nunchi/inference/attention_analysis.h"
#include "nunchi/inference/generator.h"
#include "tests/errors.h"
#include "tests/inference/small_translation.h"
#include "tests/models/every_model.h"

namespace nunchi::testing {
namespace {

// A small model of any family with a tokenizer.
struct InspectedSmall {
  explicit InspectedSmall(const NamedModel& named)
      : context({.threads = 1}),
        tokenizers(byte_tokenizer()),
        model(context, named, {.vocabulary = tokenizers.target().vocabulary()}) {}

  Inspection inspect(const InspectedInput& input, InspectorOptions options = {}) {
    options.search.max_length = std::min<std::int64_t>(options.search.max_length, 9);
    options.search.max_repeats = 0;  // untrained models repeat themselves
    return Inspector(context, model.model(), tokenizers, options).inspect(input);
  }

  CpuContext context;
  Tokenizers tokenizers;
  AnyModel model;
};

void expect_rows_sum_to_one(const ValueMatrix& weights) {
  for (std::int64_t i = 0; i < weights.rows; ++i) {
    double sum = 0;
    for (const float weight : weights.row(i)) sum += double{weight};
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

// The axes of every attention matrix have its size, rows sum to 1, and weights × V are the columns
// of the context that belong to the head.
void expect_attention_fits(const Inspection& inspection) {
  for (const InspectedHead& head : inspection.attention) {
    const auto [queries, keys] = axes_of(inspection, head.place);
    ASSERT_EQ(head.weights.rows, std::ssize(queries.pieces));
    ASSERT_EQ(head.weights.columns, std::ssize(keys.pieces));
    expect_rows_sum_to_one(head.weights);
    InspectedPlace whole = head.place;
    whole.head = -1;
    const ValueMatrix *value = inspection.tensor("value", whole),
                      *context = inspection.tensor("attention_context", whole);
    ASSERT_TRUE(value != nullptr && context != nullptr);
    std::int64_t heads = 0;
    for (const InspectedHead& other : inspection.attention) {
      InspectedPlace same = other.place;
      same.head = head.place.head;
      heads += same == head.place ? 1 : 0;
    }
    const std::int64_t width = context->columns / heads, groups = value->columns / width,
                       group = head.place.head / (heads / groups);
    for (std::int64_t i = 0; i < head.weights.rows; ++i) {
      for (std::int64_t d = 0; d < width; ++d) {
        double sum = 0;
        for (std::int64_t j = 0; j < head.weights.columns; ++j) {
          sum += double{head.weights.at(i, j)} * double{value->at(j, group * width + d)};
        }
        EXPECT_NEAR(sum, double{context->at(i, head.place.head * width + d)}, 1e-5);
      }
    }
  }
  for (const InspectedWeights& entry : inspection.rollout) expect_rows_sum_to_one(entry.weights);
  EXPECT_EQ(inspection.gradient_weight.size(), inspection.attention.size());
}

class InspectedFamily : public ::testing::TestWithParam<std::string_view> {};

TEST_P(InspectedFamily, AttentionFitsTheTextsAndTheTaps) {
  for (const NamedModel& named : models_of(GetParam())) {
    SCOPED_TRACE(named.name);
    InspectedSmall small(named);
    const Inspection inspection = small.inspect({.text = "the old fox"});
    expect_attention_fits(inspection);
    EXPECT_EQ(inspection.model.family, GetParam());
    EXPECT_FALSE(inspection.steps.empty());
    const bool has_attention = named.name.find("\"attention\": \"none\"") == std::string::npos &&
                               named.name.find("\"attention\":\"none\"") == std::string::npos;
    EXPECT_EQ(inspection.attention.empty(), !has_attention);
    for (const InspectedText* text : {&inspection.source, &inspection.target, &inspection.input}) {
      EXPECT_EQ(text->pieces.size(), text->ids.size());
      int next = 0;
      for (const auto& [begin, end] : text->words) {
        EXPECT_EQ(begin, next);
        EXPECT_GT(end, begin);
        next = end;
      }
      EXPECT_EQ(next, static_cast<int>(text->pieces.size()));
    }
  }
}

TEST_P(InspectedFamily, TheLikeliestTokenOfEachStepIsTheOneThatGreedySearchTakes) {
  for (const NamedModel& named : models_of(GetParam())) {
    InspectedSmall small(named);
    if (!small.model.generates()) GTEST_SKIP() << "the family does not generate";
    SCOPED_TRACE(named.name);
    const Inspection inspection = small.inspect({.text = "the old fox"});
    const Tokens& suppressed = small.tokenizers.decoder().suppressed;
    ASSERT_TRUE(inspection.beam);
    // The last tokens were generated; those of a prompt, before them, were given.
    const std::size_t generated = inspection.beam->steps.size(),
                      count = inspection.steps.size() - (inspection.target_cut ? 1 : 0);
    for (std::size_t i = count - generated; i < count; ++i) {
      const InspectedStep& step = inspection.steps[i];
      const auto allowed = std::ranges::find_if(step.best, [&](const TokenProbability& token) {
        return !std::ranges::binary_search(suppressed, token.id);
      });
      ASSERT_NE(allowed, step.best.end());
      EXPECT_EQ(allowed->id, step.chosen.id) << "step " << i;
      EXPECT_EQ(step.chosen.id, inspection.target.ids[i]);
    }
  }
}

TEST_P(InspectedFamily, TheBestPathOfTheBeamSpellsTheTarget) {
  for (const NamedModel& named : models_of(GetParam())) {
    InspectedSmall small(named);
    if (!small.model.generates()) GTEST_SKIP() << "the family does not generate";
    SCOPED_TRACE(named.name);
    const Inspection inspection =
        small.inspect({.text = "a dog"}, {.search = {.beam_size = 3, .max_length = 6}});
    ASSERT_TRUE(inspection.beam);
    const BeamTree& beam = *inspection.beam;
    EXPECT_EQ(beam.size, 3);
    std::map<int, const BeamNode*> nodes;
    for (const std::vector<BeamNode>& step : beam.steps) {
      std::size_t kept = 0;
      double last = 0;
      for (const BeamNode& node : step) {
        kept += node.state == BeamNode::State::kept ? 1 : 0;
        EXPECT_LE(node.score, last + 1e-9) << "candidates are in order";
        last = node.score;
        EXPECT_TRUE(node.parent == -1 || nodes.contains(node.parent));
        EXPECT_EQ(node.state == BeamNode::State::kept, node.why.empty());
        if (node.parent > 0) {
          EXPECT_NEAR(nodes[node.parent]->score + node.log_probability, node.score, 1e-5);
        }
      }
      EXPECT_LE(kept, 3u);
      for (const BeamNode& node : step) nodes[node.id] = &node;
    }
    Tokens path;
    for (const int id : beam.best) path.push_back(nodes.at(id)->token);
    const Tokens& target = inspection.target.ids;
    ASSERT_FALSE(path.empty());
    ASSERT_LE(path.size(), target.size());
    const auto end = target.end() - (inspection.target_cut ? 1 : 0);
    EXPECT_TRUE(std::equal(path.begin(), path.end(), end - std::ssize(path)));
  }
}

TEST_P(InspectedFamily, HostileTextsAreInspectedOrRefusedInOneSentence) {
  std::string many_words, many_letters(20'000, 'x');
  for (int i = 0; i < 10'000; ++i) many_words += "word ";
  const std::vector<std::string> texts = {many_words,
                                          many_letters,
                                          "👩‍👩‍👧‍👦 🦊",
                                          "\u1112\u1161\u11ab\u1100\u116e\u11a8",
                                          "</script><script>alert(1)</script>",
                                          "שלום עולם",
                                          "\u202etxet\u202c",
                                          std::string("a\0b\x01", 4),
                                          "\xff\xfe broken"};
  InspectedSmall small(models_of(GetParam())[0]);
  for (const std::string& text : texts) {
    SCOPED_TRACE(text.substr(0, 40));
    const Inspection inspection = small.inspect({.text = text}, {.max_length = 32});
    EXPECT_LE(inspection.source.pieces.size(), 32u);
    EXPECT_LE(inspection.input.pieces.size(), 32u);
    const bool is_long = text.size() > 1000;
    EXPECT_TRUE(!is_long || inspection.source_cut || inspection.target_cut);
    expect_attention_fits(inspection);
  }
  for (const std::string& text : {std::string(), std::string("   "), std::string("\n")}) {
    EXPECT_THROW(small.inspect({.text = text}), UsageError);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, InspectedFamily, ::testing::ValuesIn(kFamilies),
                         [](const auto& info) { return std::string(info.param); });

TEST(Inspector, FindsTheTranslationAndTheScoresOfTheTranslator) {
  SmallTranslation small;
  for (const int beam_size : {1, 3}) {
    const SearchOptions search{.beam_size = beam_size, .max_length = 12};
    Translator translator = small.translator({.search = search});
    const Translation expected = translator.translate("the old fox");
    const Inspection found =
        Inspector(small.context, *small.model, small.tokenizers, {.search = search})
            .inspect({.text = "the old fox"});
    EXPECT_EQ(found.target_text, expected.text);
    for (std::size_t i = 0; i < expected.token_scores.size(); ++i) {
      EXPECT_NEAR(std::log(found.steps[i].chosen.probability), double{expected.token_scores[i]},
                  1e-4);
    }
  }
}

TEST(Inspector, ReadsAGivenTarget) {
  SmallTranslation small;
  const Inspector inspector(small.context, *small.model, small.tokenizers, {});
  const Inspection found = inspector.inspect({.text = "the old fox", .target = "a dog"});
  EXPECT_TRUE(found.given_target);
  EXPECT_FALSE(found.beam);
  EXPECT_EQ(found.target_text, "a dog");
  EXPECT_EQ(found.target.pieces.back(), "</s>");
  EXPECT_EQ(found.input.pieces.front(), "<s>");
}

TEST(Inspector, ContinuesATextLikeTheGenerator) {
  InspectedSmall small(models_of("gpt")[0]);
  const SearchOptions search{.max_length = 5, .max_repeats = 0};
  Generator generator(small.context, small.model.model(), small.tokenizers, {.search = search});
  const Continuation expected = generator.generate("the old fox");
  const Inspection found = small.inspect({.text = "the old fox"}, {.search = search});
  const Tokens& target = found.target.ids;
  ASSERT_GE(target.size(), expected.tokens.size());
  EXPECT_TRUE(std::equal(expected.tokens.begin(), expected.tokens.end(),
                         target.end() - std::ssize(expected.tokens)));
}

TEST(Inspector, RefusesALengthThatItCannotShow) {
  SmallTranslation small;
  for (const std::int64_t length : {0, 3, 513}) {
    EXPECT_THROW(Inspector(small.context, *small.model, small.tokenizers, {.max_length = length}),
                 UsageError);
  }
}

// A matrix with these rows.
ValueMatrix matrix_of(const std::vector<std::vector<float>>& rows) {
  ValueMatrix matrix{.rows = std::ssize(rows), .columns = std::ssize(rows[0]), .values = {}};
  for (const auto& row : rows) matrix.values.insert(matrix.values.end(), row.begin(), row.end());
  return matrix;
}

TEST(HeadKind, IsNamedByTheLargestMeasure) {
  const InspectedPlace encoder{.stack = "encoder", .layer = 0, .part = "self_attention", .head = 0};
  const InspectedPlace cross{.stack = "decoder", .layer = 0, .part = "cross_attention", .head = 0};
  const std::vector<std::pair<int, int>> words = {{0, 1}, {1, 3}};
  const auto kind = [&](const InspectedPlace& place, const ValueMatrix& weights) {
    return measured_kind(place, weights, words).name;
  };
  EXPECT_EQ(kind(encoder, matrix_of({{1, 0, 0, 0}, {.8f, .2f, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}})),
            "first");
  EXPECT_EQ(kind(encoder, matrix_of({{0, 0, 1}, {.9f, .1f, 0}, {0, .9f, .1f}})), "previous");
  EXPECT_EQ(kind(encoder, matrix_of({{0, 1, 0}, {0, 0, 1}, {.4f, .3f, .3f}})), "next");
  EXPECT_EQ(kind(encoder, matrix_of({{1, 0, 0}, {0, .5f, .5f}, {0, .5f, .5f}})), "same word");
  const float third = 1.0f / 3;
  EXPECT_EQ(kind(cross, matrix_of({{third, third, third}, {third, third, third}})), "broad");
  EXPECT_EQ(kind(cross, matrix_of({{1, 0, 0}, {.9f, .1f, 0}})), "first");
  EXPECT_EQ(kind(cross, matrix_of({{0, 1, 0}, {0, 0, 1}})), "mixed");
}

TEST(Rollout, OfAttentionToItselfIsTheIdentity) {
  std::vector<InspectedHead> attention;
  for (int layer = 0; layer < 3; ++layer) {
    attention.push_back(
        {.place = {.stack = "encoder", .layer = layer, .part = "self_attention", .head = 0},
         .kind = {},
         .weights = matrix_of({{1, 0}, {0, 1}})});
  }
  const auto rollout = rollout_of(attention);
  ASSERT_EQ(rollout.size(), 1u);
  EXPECT_EQ(rollout[0].weights.values, (std::vector<float>{1, 0, 0, 1}));
}

TEST(Rollout, MixesHalfOfEachLayer) {
  std::vector<InspectedHead> attention{
      {.place = {.stack = "encoder", .layer = 0, .part = "self_attention", .head = 0},
       .kind = {},
       .weights = matrix_of({{0, 1}, {0, 1}})}};
  attention.push_back(attention[0]);
  attention[1].place.layer = 1;
  // One layer: [[.5, .5], [0, 1]]; its square: [[.25, .75], [0, 1]].
  EXPECT_EQ(rollout_of(attention)[0].weights.values, (std::vector<float>{.25f, .75f, 0, 1}));
}

TEST(Alignment, TakesTheHeadsThatAreClosestToOneToOne) {
  const auto head = [](int layer, int number, const ValueMatrix& weights) {
    return InspectedHead{
        .place = {.stack = "decoder", .layer = layer, .part = "cross_attention", .head = number},
        .kind = {},
        .weights = weights};
  };
  const ValueMatrix sharp = matrix_of({{0, .9f, .1f}, {.9f, .1f, 0}, {0, 0, 1}}),
                    sink = matrix_of({{1, 0, 0}, {1, 0, 0}, {1, 0, 0}}),
                    flat = matrix_of({{.3f, .3f, .4f}, {.3f, .3f, .4f}, {.3f, .3f, .4f}});
  const auto alignment = alignment_of(
      std::vector{head(0, 0, sink), head(0, 1, flat), head(1, 0, flat), head(1, 1, sharp)});
  ASSERT_TRUE(alignment);
  EXPECT_EQ(alignment->layer, 1);
  EXPECT_EQ(alignment->heads, std::vector<int>{1});
  EXPECT_FALSE(alignment_of({}));
}

TEST(Alignment, TakesTheHeadsThatAreGiven) {
  std::vector<InspectedHead> attention;
  for (int layer = 0; layer < 2; ++layer) {
    for (int head = 0; head < 3; ++head) {
      const float weight = static_cast<float>(layer + head) / 4;
      attention.push_back(
          {.place = {.stack = "decoder", .layer = layer, .part = "cross_attention", .head = head},
           .kind = {},
           .weights = matrix_of({{weight, 1 - weight}})});
    }
  }
  const auto alignment = alignment_of(attention, {{0, 1}, {1, 0}, {1, 2}, {9, 9}});
  ASSERT_TRUE(alignment);
  EXPECT_EQ(alignment->layer, 1);
  EXPECT_EQ(alignment->heads, (std::vector<int>{0, 2}));
  EXPECT_FLOAT_EQ(alignment->weights.at(0, 0), (0.25f + 0.25f + 0.75f) / 3);
}

}  // namespace
}  // namespace nunchi::testing
