#include "nunchi/training/run/event_file.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <chrono>

#include "nunchi/base/error.h"
#include "nunchi/base/wire_format.h"

namespace nunchi {
namespace {

// CRC-32C of each byte value, with the reflected polynomial.
constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
    table[byte] = crc;
  }
  return table;
}();

std::uint32_t masked_crc(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes)
    crc = kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 255] ^ (crc >> 8);
  return std::rotr(crc ^ 0xFFFFFFFFu, 15) + 0xA282EAD8u;
}

// A new event with the fields that every event has: time and step.
WireWriter event_at(std::int64_t step) {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  WireWriter event;
  event.fixed64(1, std::bit_cast<std::uint64_t>(now));
  event.varint(2, static_cast<std::uint64_t>(step));
  return event;
}

std::string named_scalar(const NamedValue& named) {
  return WireWriter()
      .bytes(1, named.first)
      .fixed32(2, std::bit_cast<std::uint32_t>(static_cast<float>(named.second)))
      .message();
}

// The first unused file name in the folder, which is created if it is missing.
std::filesystem::path next_file(const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw Error("cannot make the folder " + folder.string() + ": " + failure.message());
  for (int number = 1;; ++number) {
    std::filesystem::path path = folder / fmt::format("events.out.tfevents.{:06}", number);
    if (!std::filesystem::exists(path, failure)) return path;
  }
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& folder, std::int64_t first_step)
    : file_(next_file(folder)) {
  append(event_at(0).bytes(3, "brain.Event:2").message());
  append(event_at(first_step).bytes(7, WireWriter().varint(1, 1).message()).message());
}

void EventFile::write(std::int64_t step, std::span<const NamedValue> values) {
  WireWriter summary;
  for (const NamedValue& named : values) summary.bytes(1, named_scalar(named));
  write_summary(step, summary.message());
}

void EventFile::write_summary(std::int64_t step, const std::string& summary) {
  append(event_at(step).bytes(5, summary).message());
}

void EventFile::append(const std::string& event) {
  std::string record;
  append_little_endian(record, event.size(), 8);
  append_little_endian(record, masked_crc(record), 4);
  record += event;
  append_little_endian(record, masked_crc(event), 4);
  file_.write(record);
}

}  // namespace nunchi
