// The list of objectives; a new one adds one line.
#include "nunchi/training/objectives/objectives.h"

#include <array>

#include "nunchi/text/mask_symbol.h"
#include "nunchi/training/objectives/causal.h"
#include "nunchi/training/objectives/classification.h"
#include "nunchi/training/objectives/masked.h"
#include "nunchi/training/objectives/span_corruption.h"
#include "nunchi/training/objectives/translation.h"

namespace nunchi {
namespace {

template <class O>
std::unique_ptr<Objective> make(const ObjectiveParts& parts) {
  return std::make_unique<O>(parts);
}

// The length of <s> text </s>: max_length counts </s> but not <s>.
std::int64_t enclosed_length(std::int64_t max_length, const TrainingOptions&) {
  return max_length + 1;
}

constexpr std::array<std::string_view, 2> kSpanKeys = {"span_corruption.noise",
                                                       "span_corruption.mean_span"};
constexpr std::array<std::string_view, 2> kMaskKeys = {"mask_share", "whole_words"};

using Kind = ObjectiveKind;
constexpr std::array kObjectives = {
    ObjectiveInfo{.kind = Kind::translation,
                  .name = "translation",
                  .label_smoothing = 0.1,
                  .make = make<TranslationObjective>},
    ObjectiveInfo{.kind = Kind::causal,
                  .name = "causal",
                  .output = OutputKind::texts,
                  .examples = {.kind = Examples::text, .cut = TextCut::windows},
                  .make = make<CausalObjective>},
    ObjectiveInfo{.kind = Kind::span_corruption,
                  .name = "span_corruption",
                  .output = OutputKind::texts,
                  .examples = {.kind = Examples::text, .max_tokens = max_corrupted_length},
                  .tokenizer = {.shared = true, .symbols = kFirstSentinel},
                  .keys = kSpanKeys,
                  .make = make<SpanCorruptionObjective>},
    ObjectiveInfo{.kind = Kind::masked,
                  .name = "masked",
                  .output = OutputKind::choices,
                  .examples = {.kind = Examples::text, .max_tokens = enclosed_length},
                  .tokenizer = {.symbols = kMaskSymbols, .adds_symbol = true},
                  .keys = kMaskKeys,
                  .make = make<MaskedObjective>},
    ObjectiveInfo{.kind = Kind::classification,
                  .name = "classification",
                  .output = OutputKind::choices,
                  .examples = {.kind = Examples::labelled, .max_tokens = enclosed_length},
                  .targets = &kLabels,
                  .make = make<ClassificationObjective>},
};

}  // namespace

const ObjectiveInfo& info_of(ObjectiveKind kind) {
  for (const ObjectiveInfo& info : kObjectives) {
    if (info.kind == kind) return info;
  }
  throw Error("the list of objectives is incomplete (internal error).");
}

std::vector<Choice<ObjectiveKind>> objective_choices() {
  std::vector<Choice<ObjectiveKind>> choices;
  choices.reserve(kObjectives.size());
  for (const ObjectiveInfo& info : kObjectives) choices.push_back({info.name, info.kind});
  return choices;
}

}  // namespace nunchi
