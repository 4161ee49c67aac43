// MeCab splits Japanese and Korean into words, with the dictionaries that sacreBLEU uses: IPA for
// Japanese, mecab-ko-dic for Korean. Its library, libmecab.so.2, is loaded when it is first needed:
// Nunchi is built and runs without it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace nunchi::evaluation {

enum class MecabLanguage { japanese, korean };

// Where MeCab is; an empty path stands for the usual places.
struct MecabFiles {
  std::filesystem::path library = {};     // libmecab.so.2
  std::filesystem::path dictionary = {};  // the folder with sys.dic
};

// Not thread-safe.
class Mecab {
 public:
  // Without a dictionary folder, tries the one of the user's settings (the environment variable
  // MECABRC, ~/.mecabrc, /etc/mecabrc), then the folders in which packages install it. Throws
  // Error, which says what to install, if the library or the dictionary is not found, is not the
  // one that sacreBLEU uses, or has a user dictionary beside it.
  explicit Mecab(MecabLanguage language, const MecabFiles& files = {});
  ~Mecab();
  Mecab(const Mecab&) = delete;
  Mecab& operator=(const Mecab&) = delete;

  // The line with spaces between its words. `line` has no white space at its ends; a zero byte ends
  // it, as in sacreBLEU.
  std::string tokenized(std::string_view line) const;

  // As in sacreBLEU's signature: "ja-mecab-0.996-IPA".
  std::string name() const;

 private:
  struct Tagger;
  MecabLanguage language_;
  std::unique_ptr<Tagger> tagger_;
};

}  // namespace nunchi::evaluation
