#include "nunchi/models/format/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "nunchi/base/error.h"

namespace nunchi::safetensors {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's limit
constexpr std::size_t kMaxDimensions = 8;
constexpr std::size_t kDataAlignment = 64;
constexpr std::uint64_t kMaxNumber = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMaxShownBytes = 80;
constexpr std::string_view kMetadataKey = "__metadata__";

struct StoredType {
  std::string_view name;
  DType dtype;
};
constexpr std::array<StoredType, 7> kStoredTypes{{{"F32", DType::f32},
                                                  {"F64", DType::f64},
                                                  {"BF16", DType::bf16},
                                                  {"I8", DType::i8},
                                                  {"U8", DType::u8},
                                                  {"I32", DType::i32},
                                                  {"I64", DType::i64}}};

// Text from a file, safe to print: in quotes, ASCII only, of limited length.
std::string shown(std::string_view text) {
  const Json clipped(text.substr(0, kMaxShownBytes));
  std::string quoted = clipped.dump(-1, ' ', true, Json::error_handler_t::replace);
  quoted.front() = quoted.back() = '\'';
  return text.size() > kMaxShownBytes ? quoted + "..." : quoted;
}

// The number of bytes of a tensor; nullopt if it exceeds kMaxNumber. A zero dimension does not skip
// the check of the others: a caller may use their product.
std::optional<std::uint64_t> bytes_of(DType dtype, std::span<const std::int64_t> shape) {
  std::uint64_t bytes = size_of(dtype);
  bool empty = false;
  for (const std::int64_t dimension : shape) {
    const auto factor = static_cast<std::uint64_t>(std::max<std::int64_t>(dimension, 1));
    if (bytes > kMaxNumber / factor) return std::nullopt;
    bytes *= factor;
    empty = empty || dimension == 0;
  }
  return empty ? 0 : bytes;
}

[[noreturn]] void fail_twice(std::string_view name, const std::string& file) {
  throw Error(fmt::format("{}: the name {} appears twice", file, shown(name)));
}

// The indices of the tensors in the order of their names. Throws Error if two have the same name.
//
// A header may have more than a million tensors in any order. Sorting them once at the end, by a
// key that holds the first bytes of each name, reads most names once; a map of the names would
// follow twenty pointers for each.
std::vector<std::size_t> sorted_by_name(std::span<const StoredTensor> tensors,
                                        const std::string& file) {
  struct Key {
    std::uint64_t first_bytes;  // big-endian, padded with zeros: ordered as the names are
    std::size_t index;
  };
  std::vector<Key> keys;
  keys.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::uint64_t first_bytes = 0;
    for (std::size_t byte = 0; byte < sizeof(first_bytes); ++byte) {
      const std::string& name = tensors[i].name;
      first_bytes =
          first_bytes << 8 | (byte < name.size() ? static_cast<unsigned char>(name[byte]) : 0u);
    }
    keys.push_back({first_bytes, i});
  }
  std::ranges::sort(keys, [&](const Key& a, const Key& b) {
    if (a.first_bytes != b.first_bytes) return a.first_bytes < b.first_bytes;
    return tensors[a.index].name < tensors[b.index].name;
  });
  std::vector<std::size_t> order;
  order.reserve(keys.size());
  for (const Key& key : keys) {
    const std::string& name = tensors[key.index].name;
    if (!order.empty() && tensors[order.back()].name == name) fail_twice(name, file);
    order.push_back(key.index);
  }
  return order;
}

// Receives the header's JSON as parser events and refuses each value at a position where the format
// does not allow it. So nothing is ever nested deeper than header, tensor, shape.
class HeaderReader {
 public:
  HeaderReader(const std::string& file, std::uint64_t data_bytes)
      : file_(file), data_bytes_(data_bytes) {}

  Header take() && { return std::move(header_); }

  bool null() { misplaced("a null"); }
  bool boolean(bool) { misplaced("a truth value"); }
  bool binary(Json::binary_t&) { misplaced("binary data"); }
  bool number_integer(std::int64_t value) { bad_number(std::to_string(value)); }
  bool number_float(double, const std::string& text) { bad_number(text); }

  bool number_unsigned(std::uint64_t value) {
    if (!in_list()) misplaced("a number");
    if (value > kMaxNumber) bad_number(std::to_string(value));
    if (list_->size() == (level_ == Level::shape ? kMaxDimensions : 2)) {
      fail_tensor(level_ == Level::shape
                      ? fmt::format("has more than {} dimensions", kMaxDimensions)
                      : "has more than two data_offsets");
    }
    list_->push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(std::string& text) {
    if (level_ == Level::metadata) {
      header_.metadata[key_] = std::move(text);
    } else if (level_ == Level::tensor && key_ == "dtype") {
      const auto type = std::find_if(kStoredTypes.begin(), kStoredTypes.end(),
                                     [&](const StoredType& known) { return known.name == text; });
      if (type == kStoredTypes.end()) {
        fail_tensor(
            fmt::format("is of type {}, which is not supported: F32, F64, BF16, I8, U8, I32 "
                        "and I64 are",
                        shown(text)));
      }
      dtype_ = type->dtype;
    } else {
      misplaced("text");
    }
    return true;
  }

  bool start_object(std::size_t) {
    switch (level_) {
      case Level::outside:
        level_ = Level::header;
        return true;
      case Level::header:
        level_ = name_ == kMetadataKey ? Level::metadata : Level::tensor;
        dtype_.reset();
        shape_.reset();
        offsets_.reset();
        return true;
      default:
        misplaced("an object");
    }
  }

  bool key(std::string& text) {
    switch (level_) {
      case Level::header:
        name_ = std::move(text);
        if (name_ == kMetadataKey && std::exchange(has_metadata_, true)) fail_twice(name_, file_);
        return true;
      case Level::metadata:
        key_ = std::move(text);
        if (header_.metadata.contains(key_)) {
          fail(fmt::format("the metadata has {} twice", shown(key_)));
        }
        return true;
      default:
        key_ = std::move(text);
        if ((key_ == "dtype" && dtype_) || (key_ == "shape" && shape_) ||
            (key_ == "data_offsets" && offsets_)) {
          fail_tensor(fmt::format("has {} twice", key_));
        }
        if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets") {
          fail_tensor(fmt::format("has the unknown field {}", shown(key_)));
        }
        return true;
    }
  }

  bool end_object() {
    if (level_ == Level::tensor) finish_tensor();
    level_ = level_ == Level::header ? Level::outside : Level::header;
    return true;
  }

  bool start_array(std::size_t) {
    if (level_ != Level::tensor || key_ == "dtype") misplaced("a list");
    level_ = key_ == "shape" ? Level::shape : Level::offsets;
    list_ = &(level_ == Level::shape ? shape_ : offsets_).emplace();
    return true;
  }

  bool end_array() {
    level_ = Level::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) {
    constexpr int kNumberOutOfRange = 406;
    if (error.id == kNumberOutOfRange) bad_number(token);
    fail(fmt::format("the header is not valid JSON in UTF-8; its byte {} is wrong", position));
  }

 private:
  enum class Level { outside, header, metadata, tensor, shape, offsets };

  bool in_list() const { return level_ == Level::shape || level_ == Level::offsets; }

  void finish_tensor() {
    if (!dtype_) fail_tensor("has no dtype");
    if (!shape_) fail_tensor("has no shape");
    if (!offsets_ || offsets_->size() != 2) fail_tensor("has no pair of data_offsets");
    const auto begin = static_cast<std::uint64_t>((*offsets_)[0]);
    const auto end = static_cast<std::uint64_t>((*offsets_)[1]);
    if (begin > end) {
      fail_tensor(fmt::format("has bytes {}..{}, which end before they start", begin, end));
    }
    if (end > data_bytes_) {
      fail_tensor(
          fmt::format("has bytes {}..{} but the file has only {} bytes of data: "
                      "was it cut short?",
                      begin, end, data_bytes_));
    }
    const std::optional<std::uint64_t> needed = bytes_of(*dtype_, *shape_);
    const auto form = [&] {
      return fmt::format("[{}] of {}", fmt::join(*shape_, ", "), name_of(*dtype_));
    };
    if (!needed) fail_tensor(fmt::format("has the shape {}, too large for any file", form()));
    if (*needed != end - begin) {
      fail_tensor(fmt::format("has bytes {}..{} but its shape {} needs {} bytes", begin, end,
                              form(), *needed));
    }
    header_.tensors.push_back({.name = name_,
                               .dtype = *dtype_,
                               .shape = std::move(*shape_),
                               .offset = begin,
                               .bytes = end - begin});
  }

  [[noreturn]] void fail(const std::string& what) const { throw Error(file_ + ": " + what); }
  [[noreturn]] void fail_tensor(const std::string& what) const {
    fail(fmt::format("tensor {} {}", shown(name_), what));
  }
  [[noreturn]] void misplaced(std::string_view what) const {
    if (name_ == kMetadataKey) fail(fmt::format("the metadata has {} instead of text", what));
    fail_tensor(fmt::format("has {} where the format does not allow it", what));
  }
  [[noreturn]] void bad_number(std::string_view text) const {
    if (!in_list()) misplaced("a number");
    fail_tensor(fmt::format("has {} in its {}: not a whole number from 0 to {}", shown(text),
                            level_ == Level::shape ? "shape" : "data_offsets", kMaxNumber));
  }

  const std::string& file_;
  std::uint64_t data_bytes_;
  Header header_;
  bool has_metadata_ = false;

  Level level_ = Level::outside;
  std::string name_;  // the tensor's name, or kMetadataKey
  std::string key_;   // the key in the tensor or in the metadata
  std::optional<DType> dtype_;
  std::optional<std::vector<std::int64_t>> shape_;
  std::optional<std::vector<std::int64_t>> offsets_;
  std::vector<std::int64_t>* list_ = nullptr;  // shape_ or offsets_, whichever is being filled
};

// Throws Error if the tensors leave gaps in the data or overlap.
void check_coverage(const Header& header, std::uint64_t data_bytes, const std::string& file) {
  const auto fail = [&](const std::string& what) { throw Error(file + ": " + what); };
  std::vector<std::size_t> order(header.tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const StoredTensor &left = header.tensors[a], &right = header.tensors[b];
    return std::pair(left.offset, left.bytes) < std::pair(right.offset, right.bytes);
  });
  std::uint64_t covered = 0;
  std::string_view previous;
  for (const std::size_t i : order) {
    const StoredTensor& tensor = header.tensors[i];
    if (tensor.offset < covered) {
      fail(fmt::format("tensors {} and {} overlap at byte {} of the data", shown(previous),
                       shown(tensor.name), tensor.offset));
    }
    if (tensor.offset > covered) {
      fail(fmt::format("bytes {}..{} of the data, before tensor {}, belong to no tensor", covered,
                       tensor.offset, shown(tensor.name)));
    }
    covered = tensor.offset + tensor.bytes;
    previous = tensor.name;
  }
  if (covered != data_bytes) {
    fail(fmt::format("bytes {}..{} of the data, after the last tensor, belong to no tensor",
                     covered, data_bytes));
  }
}

std::string json_of(const std::string& text, const std::string& file) try {
  return Json(text).dump();
} catch (const Json::type_error&) {
  throw Error(fmt::format("{}: the name or text {} is not valid UTF-8", file, shown(text)));
}

}  // namespace

void check_header_length(std::uint64_t bytes, const std::string& file) {
  if (bytes <= kMaxHeaderBytes) return;
  throw Error(fmt::format("{}: a header of {} bytes is too long; {} are allowed", file, bytes,
                          kMaxHeaderBytes));
}

Header read_header(std::string_view text, std::uint64_t data_bytes, const std::string& file) {
  check_header_length(text.size(), file);
  // The parser would skip a byte order mark and treat a zero byte as the end of the text.
  if (!text.starts_with('{')) {
    throw Error(file + ": the header does not begin with '{': not a safetensors file");
  }
  if (const std::size_t zero = text.find('\0'); zero != text.npos) {
    throw Error(fmt::format("{}: the header has a zero byte at {}", file, zero));
  }
  HeaderReader reader(file, data_bytes);
  Json::sax_parse(text.begin(), text.end(), &reader);
  Header header = std::move(reader).take();
  header.by_name = sorted_by_name(header.tensors, file);
  check_coverage(header, data_bytes, file);
  return header;
}

std::string header_text(std::span<const SafetensorsEntry> entries,
                        const std::map<std::string, std::string>& metadata,
                        const std::string& file) {
  std::vector<std::string> members;
  if (!metadata.empty()) {
    std::vector<std::string> texts;
    texts.reserve(metadata.size());
    for (const auto& [key, text] : metadata) {
      texts.push_back(json_of(key, file) + ":" + json_of(text, file));
    }
    members.push_back(fmt::format(R"("{}":{{{}}})", kMetadataKey, fmt::join(texts, ",")));
  }
  std::uint64_t begin = 0;
  for (const SafetensorsEntry& entry : entries) {
    const auto type = std::find_if(kStoredTypes.begin(), kStoredTypes.end(),
                                   [&](const StoredType& t) { return t.dtype == entry.dtype; });
    const std::uint64_t end = begin + entry.bytes.size();
    members.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                  json_of(entry.name, file), type->name,
                                  fmt::join(entry.shape, ","), begin, end));
    begin = end;
  }
  std::string text = fmt::format("{{{}}}", fmt::join(members, ","));
  const std::size_t excess = (kLengthBytes + text.size()) % kDataAlignment;
  if (excess != 0) text.append(kDataAlignment - excess, ' ');
  return text;
}

}  // namespace nunchi::safetensors
