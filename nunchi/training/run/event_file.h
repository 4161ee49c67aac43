// TensorBoard's event files, without TensorBoard's libraries.
//
// A file is a sequence of records:
//
//   8 bytes   N, the event's length, little-endian
//   4 bytes   checksum of those 8 bytes
//   N bytes   the event
//   4 bytes   checksum of the event
//
// A checksum is the CRC-32C (Castagnoli) of the bytes, rotated right by 15 bits, plus 0xA282EAD8.
// This masking keeps a CRC over data that contain CRCs meaningful. An event is a protobuf message:
// each field is a tag (number · 8 + wire type, as a varint) and a value:
//
//   1  double   seconds since 1970
//   2  int64    step
//   3  string   "brain.Event:2", only in the first event of a file
//   5  message  the summary: for each value a field 1, the message {1: its name, 2: float} for a
//               scalar; event_summaries.h has others
//   7  message  the session log: {1: 1} says that a session starts at this step, so that readers
//               drop the values of this and later steps in earlier files
//
// A record reaches the file in one write, so other processes can follow the file as it grows. A
// killed writer leaves at most one truncated record, at the end, which readers skip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "nunchi/training/run/append_file.h"

namespace nunchi {

using NamedValue = std::pair<std::string, double>;

class EventFile {
 public:
  // Starts the next file in `folder`, which is created if it is missing, for steps from
  // `first_step` on. File names are numbered, so that readers read the files in the order in which
  // they were written. Throws Error with the system's error message.
  EventFile(const std::filesystem::path& folder, std::int64_t first_step);

  // Writes one event with all values, as f32.
  void write(std::int64_t step, std::span<const NamedValue> values);
  // Writes one event with an encoded summary.
  void write_summary(std::int64_t step, const std::string& summary);

  const std::filesystem::path& path() const { return file_.path(); }

 private:
  void append(const std::string& event);

  AppendFile file_;
};

}  // namespace nunchi
