#include "nunchi/training/run/event_file.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <chrono>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

// One byte's worth of CRC-32C's polynomial, bits reversed.
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

void put_little_endian(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

enum class Wire : std::uint8_t { varint = 0, bits64 = 1, bytes = 2, bits32 = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 128; value >>= 7) out.push_back(static_cast<char>(value | 128));
  out.push_back(static_cast<char>(value));
}

void put_tag(std::string& out, std::uint64_t field, Wire wire) {
  put_varint(out, field << 3 | static_cast<std::uint64_t>(wire));
}

void put_bytes(std::string& out, std::uint64_t field, std::string_view bytes) {
  put_tag(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

// The fields that every event has.
std::string event_at(std::int64_t step) {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::string event;
  put_tag(event, 1, Wire::bits64);
  put_little_endian(event, std::bit_cast<std::uint64_t>(now), 8);
  put_tag(event, 2, Wire::varint);
  put_varint(event, static_cast<std::uint64_t>(step));
  return event;
}

std::string named_scalar(const NamedValue& named) {
  std::string value;
  put_bytes(value, 1, named.first);
  put_tag(value, 2, Wire::bits32);
  put_little_endian(value, std::bit_cast<std::uint32_t>(static_cast<float>(named.second)), 4);
  return value;
}

// The first free name in the folder, which is made if need be.
std::filesystem::path next_in(const std::filesystem::path& folder) {
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
    : file_(next_in(folder)) {
  std::string version = event_at(0);
  put_bytes(version, 3, "brain.Event:2");
  append(version);
  std::string start = event_at(first_step);
  put_bytes(start, 7, std::string_view("\x08\x01", 2));
  append(start);
}

void EventFile::write(std::int64_t step, std::span<const NamedValue> values) {
  std::string summary;
  for (const NamedValue& named : values) put_bytes(summary, 1, named_scalar(named));
  std::string event = event_at(step);
  put_bytes(event, 5, summary);
  append(event);
}

void EventFile::append(const std::string& event) {
  std::string record;
  put_little_endian(record, event.size(), 8);
  put_little_endian(record, masked_crc(record), 4);
  record += event;
  put_little_endian(record, masked_crc(event), 4);
  file_.write(record);
}

}  // namespace nunchi
