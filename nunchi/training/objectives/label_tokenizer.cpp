#include "nunchi/training/objectives/label_tokenizer.h"

#include "nunchi/base/error.h"
#include "nunchi/base/printable.h"
#include "nunchi/text/fnv1a.h"
#include "nunchi/text/unicode.h"

namespace nunchi {

std::string label_of(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == text.npos) return {};
  return nfc(repaired_utf8(text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1)));
}

LabelTokenizer::LabelTokenizer(const std::vector<std::string>& labels) : labels_(labels) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto [found, is_new] = tokens_.emplace(label_of(labels[i]), static_cast<std::int32_t>(i));
    if (!is_new) {
      throw Error("the labels '" + printable(piece(found->second)) + "' and '" +
                  printable(labels[i]) + "' are the same label: spaces at the ends do not count.");
    }
    serialized_ += labels[i] + "\n";
  }
}

std::int64_t LabelTokenizer::vocabulary() const { return std::ssize(labels_) + 1; }

Tokens LabelTokenizer::encode(std::string_view text) const {
  const std::string label = label_of(text);
  if (label.empty()) return {};
  const auto found = tokens_.find(label);
  return {found == tokens_.end() ? special().unknown : found->second};
}

std::string LabelTokenizer::decode(std::span<const std::int32_t> ids) const {
  return ids.empty() ? std::string() : piece(ids.front());
}

std::string LabelTokenizer::piece(std::int32_t id) const {
  return id == special().unknown ? "<unk>" : labels_.at(static_cast<std::size_t>(id));
}

std::uint64_t LabelTokenizer::fingerprint() const { return fnv1a("labels from 0\n" + serialized_); }

}  // namespace nunchi
