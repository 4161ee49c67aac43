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

// max_length counts </s> but not <s>.
std::int64_t enclosed_length(std::int64_t max_length, const TrainingOptions&) {
  return max_length + 1;
}

using Kind = ObjectiveKind;
constexpr std::array kObjectives = {
    ObjectiveInfo{.kind = Kind::translation,
                  .name = "translation",
                  .label_smoothing = 0.1,
                  .make = make<TranslationObjective>},
    ObjectiveInfo{.kind = Kind::causal,
                  .name = "causal",
                  .examples = Examples::text,
                  .cut = TextCut::windows,
                  .only_cut = true,
                  .make = make<CausalObjective>},
    ObjectiveInfo{.kind = Kind::span_corruption,
                  .name = "span_corruption",
                  .examples = Examples::text,
                  .cut = TextCut::lines,
                  .only_cut = true,
                  .one_tokenizer = true,
                  .symbols = kFirstSentinel,
                  .longest = longest_corruption,
                  .make = make<SpanCorruptionObjective>},
    ObjectiveInfo{.kind = Kind::masked,
                  .name = "masked",
                  .examples = Examples::text,
                  .only_cut = true,
                  .generates = false,
                  .masks = true,
                  .symbols = kMaskSymbols,
                  .counts_right = true,
                  .longest = enclosed_length,
                  .make = make<MaskedObjective>},
    ObjectiveInfo{.kind = Kind::classification,
                  .name = "classification",
                  .examples = Examples::labelled,
                  .generates = false,
                  .counts_right = true,
                  .longest = enclosed_length,
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
  for (const ObjectiveInfo& info : kObjectives) choices.push_back({info.name, info.kind});
  return choices;
}

}  // namespace nunchi
