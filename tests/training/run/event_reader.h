// An independent reader of event files for tests: it shares no code with the writer and computes
// the checksum bit by bit.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace nunchi::testing {

struct ReadEvent {
  double seconds = 0;
  std::int64_t step = 0;
  std::string version;
  bool starts_session = false;
  std::vector<std::pair<std::string, float>> values;
};

class EventReader {
 public:
  static std::vector<ReadEvent> read(std::string_view file) {
    std::vector<ReadEvent> events;
    EventReader reader(file);
    while (!reader.rest_.empty()) events.push_back(reader.record());
    return events;
  }

 private:
  explicit EventReader(std::string_view bytes) : rest_(bytes) {}

  static std::uint32_t checksum(std::string_view bytes) {
    std::uint64_t crc = 0xFFFFFFFF;
    for (const unsigned char byte : bytes) {
      for (int bit = 0; bit < 8; ++bit) {
        const bool flip = ((crc ^ (byte >> bit)) & 1) != 0;
        crc = crc / 2;
        if (flip) crc ^= 0x82F63B78;
      }
    }
    crc ^= 0xFFFFFFFF;
    return static_cast<std::uint32_t>((crc >> 15 | crc << 17) + 0xA282EAD8);
  }

  std::string_view take(std::size_t count) {
    if (count > rest_.size()) throw std::runtime_error("an event file is truncated");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = number<unsigned char>();
      value |= std::uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
  }
  std::string_view checked(std::string_view bytes) {
    if (number<std::uint32_t>() != checksum(bytes)) throw std::runtime_error("a wrong checksum");
    return bytes;
  }

  ReadEvent record() {
    const std::string_view length = checked(take(8));
    std::uint64_t size = 0;
    std::memcpy(&size, length.data(), 8);
    return event(checked(take(size)));
  }

  static ReadEvent event(std::string_view bytes) {
    ReadEvent event;
    for (EventReader in(bytes); !in.rest_.empty();) {
      switch (in.varint()) {
        case 1 * 8 + 1:
          event.seconds = in.number<double>();
          break;
        case 2 * 8 + 0:
          event.step = static_cast<std::int64_t>(in.varint());
          break;
        case 3 * 8 + 2:
          event.version = in.take(in.varint());
          break;
        case 5 * 8 + 2:
          event.values = summary(in.take(in.varint()));
          break;
        case 7 * 8 + 2:
          event.starts_session = in.take(in.varint()) == std::string_view("\x08\x01", 2);
          break;
        default:
          throw std::runtime_error("an unknown field");
      }
    }
    return event;
  }

  static std::vector<std::pair<std::string, float>> summary(std::string_view bytes) {
    std::vector<std::pair<std::string, float>> values;
    for (EventReader in(bytes); !in.rest_.empty();) {
      if (in.varint() != 1 * 8 + 2) throw std::runtime_error("an unknown field");
      EventReader value(in.take(in.varint()));
      if (value.varint() != 1 * 8 + 2) throw std::runtime_error("a value without a name");
      std::string name(value.take(value.varint()));
      if (value.varint() != 2 * 8 + 5) throw std::runtime_error("a value that is not a float");
      values.emplace_back(std::move(name), value.number<float>());
    }
    return values;
  }

  std::string_view rest_;
};

}  // namespace nunchi::testing
