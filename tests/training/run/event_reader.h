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

// A value that is not a scalar.
struct ReadTensor {
  std::string tag, plugin, content;  // the plugin's name and its own message
  std::uint64_t type = 0;            // of the tensor
  std::vector<std::uint64_t> sizes;  // its shape
  std::vector<std::string> texts;    // its strings
};

struct ReadEvent {
  double seconds = 0;
  std::int64_t step = 0;
  std::string version;
  bool starts_session = false;
  std::vector<std::pair<std::string, float>> values;
  std::vector<ReadTensor> tensors;
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
          read_summary(in.take(in.varint()), event);
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

  static void read_summary(std::string_view bytes, ReadEvent& event) {
    for (EventReader in(bytes); !in.rest_.empty();) {
      if (in.varint() != 1 * 8 + 2) throw std::runtime_error("an unknown field");
      EventReader value(in.take(in.varint()));
      if (value.varint() != 1 * 8 + 2) throw std::runtime_error("a value without a name");
      std::string name(value.take(value.varint()));
      const std::uint64_t field = value.varint();
      if (field == 2 * 8 + 5) {
        event.values.emplace_back(std::move(name), value.number<float>());
        continue;
      }
      if (field != 8 * 8 + 2) throw std::runtime_error("neither a float nor a tensor");
      ReadTensor& tensor = event.tensors.emplace_back();
      tensor.tag = std::move(name);
      read_tensor(value.take(value.varint()), tensor);
      if (value.varint() != 9 * 8 + 2) throw std::runtime_error("a tensor without metadata");
      EventReader metadata(value.take(value.varint()));
      if (metadata.varint() != 1 * 8 + 2) throw std::runtime_error("metadata without a plugin");
      EventReader plugin(metadata.take(metadata.varint()));
      if (plugin.varint() != 1 * 8 + 2) throw std::runtime_error("a plugin without a name");
      tensor.plugin = plugin.take(plugin.varint());
      if (plugin.varint() != 2 * 8 + 2) throw std::runtime_error("a plugin without content");
      tensor.content = plugin.take(plugin.varint());
    }
  }

  static void read_tensor(std::string_view bytes, ReadTensor& tensor) {
    for (EventReader in(bytes); !in.rest_.empty();) {
      switch (in.varint()) {
        case 1 * 8 + 0:
          tensor.type = in.varint();
          break;
        case 2 * 8 + 2:
          for (EventReader shape(in.take(in.varint())); !shape.rest_.empty();) {
            if (shape.varint() != 2 * 8 + 2) throw std::runtime_error("an unknown field");
            EventReader size(shape.take(shape.varint()));
            if (size.varint() != 1 * 8 + 0) throw std::runtime_error("an unknown field");
            tensor.sizes.push_back(size.varint());
          }
          break;
        case 5 * 8 + 2:
          in.take(in.varint());
          break;
        case 8 * 8 + 2:
          tensor.texts.emplace_back(in.take(in.varint()));
          break;
        default:
          throw std::runtime_error("an unknown field");
      }
    }
  }

  std::string_view rest_;
};

}  // namespace nunchi::testing
