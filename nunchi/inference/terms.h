// Terms: words of a source line whose translation is given.
//
//   source term <tab> target term         one on each line of a file (--terms)
//   <term target="Hund">dog</term>         inside a line (--inline-terms)
//   <term>Nunchi</term>                    the same as with target="Nunchi": it is not translated
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nunchi/decoding/required_phrases.h"
#include "nunchi/text/tokenizer.h"

namespace nunchi {

struct Term {
  std::string source, target;
  std::string where;  // "terms.tsv:12"
};

// Immutable.
class TermList {
 public:
  // Reads a file with two columns that are separated by a tab; empty lines are skipped. Throws
  // Error, naming the line, for a line with another number of columns, for an empty term, and for a
  // source term that occurs with two targets.
  static TermList read(const std::filesystem::path& path);
  explicit TermList(std::vector<Term> terms);

  const std::vector<Term>& terms() const { return terms_; }
  // The target of each source term in the text, in the order of the text. Terms match whole words
  // with the same upper and lower case. Where several match, the longest counts; matches do not
  // overlap. Scripts that are written without spaces have no word limits: there, terms match
  // everywhere.
  std::vector<std::string> targets_in(std::string_view text) const;

 private:
  std::vector<Term> terms_;
  std::unordered_map<std::string, std::size_t> by_source_;  // NFC → index of the term
  std::vector<std::size_t> lengths_;                        // of the sources in bytes, descending
};

// A line without its markup.
struct MarkedLine {
  std::string text;
  std::vector<std::string> targets;
};

// Reads <term> elements and the escapes &lt; &gt; &amp; &quot;. All other characters stand for
// themselves. Returns nothing if an element is not closed, nested, empty or has another attribute
// than target.
std::optional<MarkedLine> read_inline_terms(std::string_view line);

// The tokens of a target term, as they are after a space and as they are after a bracket. Nothing
// if the tokenizer cannot spell the term: it decodes the tokens to another text.
std::optional<RequiredPhrase> required_phrase(const Tokenizer& tokenizer, const std::string& term);
// Of all forms of a phrase.
std::int64_t token_count(const RequiredPhrase& phrase);

}  // namespace nunchi
