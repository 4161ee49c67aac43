#include "nunchi/inference/terms.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/data/lines.h"
#include "nunchi/text/unicode.h"

namespace nunchi {
namespace {

std::string normalised(std::string_view text) { return nfc(repaired_utf8(text)); }

// Whether a word begins or ends at `position`: the characters around it do not belong to one word.
bool is_word_limit(std::string_view text, std::size_t position) {
  if (position == 0 || position == text.size()) return true;
  std::size_t before = position - 1;
  while (before > 0 && (static_cast<unsigned char>(text[before]) & 0xC0) == 0x80) --before;
  std::string_view left = text.substr(before), right = text.substr(position);
  return !is_word_character(take_character(left)) || !is_word_character(take_character(right));
}

// Replaces the escapes; any other & stands for itself.
std::string unescaped(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 4> kEscapes = {
      {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}}};
  std::string result;
  while (!text.empty()) {
    const auto* const found = std::ranges::find_if(
        kEscapes, [&](const auto& escape) { return text.starts_with(escape.first); });
    result += found != kEscapes.end() ? found->second : text.front();
    text.remove_prefix(found != kEscapes.end() ? found->first.size() : 1);
  }
  return result;
}

constexpr std::string_view kBegin = "<term", kEnd = "</term>", kTarget = " target=\"";

// Whether the text begins with the tag <term …>, and not with <terms> for example.
bool starts_element(std::string_view text) {
  return text.starts_with(kBegin) && text.size() > kBegin.size() &&
         (text[kBegin.size()] == '>' || text[kBegin.size()] == ' ');
}

// Removes a <term> element from the beginning of the text; false if it is wrong.
bool take_element(std::string_view& text, MarkedLine& line) {
  text.remove_prefix(kBegin.size());
  std::optional<std::string_view> target;
  if (text.starts_with(kTarget)) {
    text.remove_prefix(kTarget.size());
    const std::size_t quote = text.find('"');
    if (quote == text.npos) return false;
    target = text.substr(0, quote);
    text.remove_prefix(quote + 1);
  }
  if (!text.starts_with('>')) return false;
  text.remove_prefix(1);
  const std::size_t end = text.find(kEnd);
  if (end == text.npos) return false;
  const std::string_view source = text.substr(0, end);
  if (source.empty() || (target && target->empty())) return false;
  for (std::string_view rest = source; !rest.empty(); rest.remove_prefix(1)) {
    if (starts_element(rest)) return false;
  }
  text.remove_prefix(end + kEnd.size());
  line.text += unescaped(source);
  line.targets.push_back(unescaped(target.value_or(source)));
  return true;
}

}  // namespace

TermList::TermList(std::vector<Term> terms) : terms_(std::move(terms)) {
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    Term& term = terms_[i];
    term.source = normalised(term.source);
    term.target = normalised(term.target);
    const auto refuse = [&](const std::string& problem) {
      throw Error((term.where.empty() ? "" : term.where + ": ") + problem);
    };
    if (term.source.empty() || term.target.empty()) refuse("a term is empty.");
    const auto [entry, is_new] = by_source_.emplace(term.source, i);
    if (!is_new && terms_[entry->second].target != term.target) {
      refuse("the term '" + term.source + "' has the target '" + terms_[entry->second].target +
             "' in " + terms_[entry->second].where + " already.");
    }
    lengths_.push_back(term.source.size());
  }
  std::ranges::sort(lengths_, std::greater<>());
  lengths_.erase(std::unique(lengths_.begin(), lengths_.end()), lengths_.end());
}

TermList TermList::read(const std::filesystem::path& path) {
  std::vector<Term> terms;
  LineReader lines(path);
  for (std::string line; lines.next(line);) {
    if (line.empty()) continue;
    const std::string where = path.string() + ":" + std::to_string(lines.line_number());
    const std::size_t tab = line.find('\t');
    if (tab == line.npos || line.find('\t', tab + 1) != line.npos) {
      throw Error(where + ": a line of terms must be a source term, a tab and a target term.");
    }
    terms.push_back(
        {.source = line.substr(0, tab), .target = line.substr(tab + 1), .where = where});
  }
  return TermList(std::move(terms));
}

std::vector<std::string> TermList::targets_in(std::string_view any_text) const {
  std::vector<std::string> targets;
  if (terms_.empty()) return targets;
  const std::string text = normalised(any_text);
  std::size_t position = 0;
  // The length of the term that begins at `position`; 0: none.
  const auto take_term = [&]() -> std::size_t {
    if (!is_word_limit(text, position)) return 0;
    for (const std::size_t length : lengths_) {
      if (length > text.size() - position) continue;
      const auto found = by_source_.find(text.substr(position, length));
      if (found == by_source_.end() || !is_word_limit(text, position + length)) continue;
      targets.push_back(terms_[found->second].target);
      return length;
    }
    return 0;
  };
  while (position < text.size()) {
    const std::size_t length = take_term();
    if (length > 0) {
      position += length;
      continue;
    }
    std::string_view rest = std::string_view(text).substr(position);
    take_character(rest);
    position = text.size() - rest.size();
  }
  return targets;
}

std::optional<MarkedLine> read_inline_terms(std::string_view line) {
  MarkedLine read;
  std::string_view plain = line;  // up to the next element
  while (!line.empty()) {
    if (line.starts_with(kEnd)) return std::nullopt;
    if (!starts_element(line)) {
      line.remove_prefix(1);
      continue;
    }
    read.text += unescaped(plain.substr(0, plain.size() - line.size()));
    if (!take_element(line, read)) return std::nullopt;
    plain = line;
  }
  read.text += unescaped(plain);
  return read;
}

std::optional<RequiredPhrase> required_phrase(const Tokenizer& tokenizer, const std::string& term) {
  const std::string expected = normalised(term);
  RequiredPhrase phrase;
  // Adds the tokens of the term in `text`, which ends with it, if they are separate from the tokens
  // of the text before it.
  const auto add = [&](const std::string& before, const std::string& text) {
    const Tokens start = tokenizer.encode(before), all = tokenizer.encode(text);
    if (all.size() <= start.size() || !std::equal(start.begin(), start.end(), all.begin())) return;
    const Tokens form(all.begin() + std::ssize(start), all.end());
    std::string decoded = tokenizer.decode(form);
    if (decoded.starts_with(' ') && !expected.starts_with(' ')) decoded.erase(0, 1);
    const std::int32_t unknown = tokenizer.special().unknown;
    if (decoded != expected || std::ranges::find(form, unknown) != form.end()) return;
    if (std::ranges::find(phrase.forms, form) == phrase.forms.end()) phrase.forms.push_back(form);
  };
  add("a", "a " + term);
  add("(", "(" + term);
  if (phrase.forms.empty()) add("", term);
  if (phrase.forms.empty()) return std::nullopt;
  return phrase;
}

std::int64_t token_count(const RequiredPhrase& phrase) {
  std::int64_t tokens = 0;
  for (const Tokens& form : phrase.forms) tokens += std::ssize(form);
  return tokens;
}

}  // namespace nunchi
