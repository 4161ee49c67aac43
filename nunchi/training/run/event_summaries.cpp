#include "nunchi/training/run/event_summaries.h"

#include <bit>
#include <charconv>
#include <chrono>

#include "nunchi/base/wire_format.h"

namespace nunchi {
namespace {

constexpr std::uint64_t kFloatType = 1, kStringType = 7;  // of TensorProto
constexpr std::uint64_t kTensorData = 2;                  // SummaryMetadata's data class
constexpr std::uint64_t kSuccess = 1;                     // of a session

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void put_double(WireWriter& message, std::uint32_t field, double value) {
  message.fixed64(field, std::bit_cast<std::uint64_t>(value));
}

// A TensorShapeProto.
std::string shape_of(std::span<const std::uint64_t> sizes) {
  WireWriter shape;
  for (const std::uint64_t size : sizes) shape.bytes(2, WireWriter().varint(1, size).message());
  return shape.message();
}

// A summary of one value. `metadata` starts with the plugin's data.
std::string summary_of(const std::string& tag, const std::string& tensor,
                       const std::string& metadata) {
  const std::string value =
      WireWriter().bytes(1, tag).bytes(8, tensor).bytes(9, metadata).message();
  return WireWriter().bytes(1, value).message();
}

std::string plugin_data(const std::string& plugin, const std::string& content) {
  return WireWriter().bytes(1, WireWriter().bytes(1, plugin).bytes(2, content).message()).message();
}

// A summary of the plugin hparams, whose tensor is ignored but must exist.
std::string hparams_summary(const std::string& tag, const std::string& content) {
  constexpr std::uint64_t kOne[] = {1};
  const std::string tensor = WireWriter()
                                 .varint(1, kFloatType)
                                 .bytes(2, shape_of(kOne))
                                 .bytes(5, std::string(sizeof(float), '\0'))
                                 .message();
  return summary_of(tag, tensor, plugin_data("hparams", content));
}

// A google.protobuf.Value.
std::string value_of(const std::string& text) {
  WireWriter value;
  if (text == "true" || text == "false") return value.varint(4, text == "true" ? 1 : 0).message();
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [parsed, failure] = std::from_chars(text.data(), end, number);
  if (failure == std::errc() && parsed == end && !text.empty()) {
    put_double(value, 2, number);
    return value.message();
  }
  return value.bytes(3, text).message();
}

}  // namespace

std::string text_table_summary(const std::string& tag,
                               std::span<const std::vector<std::string>> rows) {
  const std::uint64_t sizes[] = {rows.size(), rows.empty() ? 0 : rows.front().size()};
  WireWriter tensor;
  tensor.varint(1, kStringType).bytes(2, shape_of(sizes));
  for (const std::vector<std::string>& row : rows) {
    for (const std::string& cell : row) tensor.bytes(8, cell);
  }
  return summary_of(tag, tensor.message(),
                    plugin_data("text", "") + WireWriter().varint(4, kTensorData).message());
}

std::string session_start_summary(std::span<const std::pair<std::string, std::string>> options) {
  WireWriter start;
  for (const auto& [key, text] : options) {
    start.bytes(1, WireWriter().bytes(1, key).bytes(2, value_of(text)).message());
  }
  put_double(start, 5, now());
  return hparams_summary("_hparams_/session_start_info",
                         WireWriter().bytes(3, start.message()).message());
}

std::string session_end_summary() {
  WireWriter end;
  end.varint(1, kSuccess);
  put_double(end, 2, now());
  return hparams_summary("_hparams_/session_end_info",
                         WireWriter().bytes(4, end.message()).message());
}

}  // namespace nunchi
