// The list of families: a new one adds one line here.
#include "nunchi/base/error.h"
#include "nunchi/base/printable.h"
#include "nunchi/models/families/bert_config.h"
#include "nunchi/models/families/gpt_config.h"
#include "nunchi/models/families/rnn_config.h"
#include "nunchi/models/families/transformer_config.h"
#include "nunchi/models/family.h"

namespace nunchi {
namespace {

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      transformer_family(), gpt_family(), bert_family(), rnn_family(), t5_family(),
  };
  return all;
}

std::string family_names() {
  std::string names;
  for (const Family& known : families()) names += (names.empty() ? "" : ", ") + known.name;
  return names;
}

// The family given by the option 'family'.
const Family& named_family(OptionReader& in) {
  if (!in.has("family")) {
    in.fail("family", "is missing; it must be one of " + family_names());
  }
  std::string name;
  in.text("family", name);
  for (const Family& known : families()) {
    if (name == known.name) return known;
  }
  in.fail("family", "must be one of " + family_names() + ", not '" + printable(name) + "'");
}

// Throws Error if these are the options of a Hugging Face model, whose config.json has the name of
// its architecture instead of a family.
void refuse_hugging_face(OptionReader& in, const std::string& where) {
  if (in.has("family")) return;
  std::string name;
  if (in.has("model_type")) {
    in.text("model_type", name);
  } else if (in.has("architectures")) {
    std::vector<std::string> names;
    in.texts("architectures", names);
    if (!names.empty()) name = names.front();
  }
  if (name.empty()) return;
  throw Error(where + " describes a Hugging Face model of type '" + printable(name) +
              "'. This version of Nunchi reads only the folders that it writes itself; their "
              "config.json names a 'family': " +
              family_names() + ".");
}

}  // namespace

ModelConfig read_model_config(const std::string& config_json, const std::string& where) {
  const Options options = Options::from_json(config_json, where);
  OptionReader in(options);
  refuse_hugging_face(in, where);
  return named_family(in).read(in);
}

std::unique_ptr<Model> make_model(const std::string& config_json, const std::string& where) {
  return read_model_config(config_json, where)->make();
}

ModelConfig read_training_model_config(OptionReader& in) {
  return named_family(in).read_training_options(in);
}

ModelConfig model_preset(const std::string& name) {
  std::string presets;
  for (const Family& known : families()) {
    for (const std::string& preset : known.presets) {
      if (preset == name) return known.preset(name);
      presets += (presets.empty() ? "" : ", ") + preset;
    }
  }
  throw UsageError("there is no preset '" + printable(name) + "'; the presets are " + presets +
                   ".");
}

}  // namespace nunchi
