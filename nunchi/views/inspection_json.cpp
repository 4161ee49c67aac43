#include "nunchi/views/inspection_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "nunchi/base/version.h"
#include "nunchi/views/base64.h"

namespace nunchi {
namespace {

// Invalid UTF-8 becomes U+FFFD.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// How matrices are written.
enum class Encoding : std::uint8_t { numbers, halves, bytes };

// The values as IEEE half floats, little endian, rounded to nearest.
std::uint16_t half_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude >= 0x7F800000u) {
    return static_cast<std::uint16_t>(sign | (magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u));
  }
  if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7BFFu);  // 65504
  if (magnitude < 0x38800000u) {  // below 2^-14: multiples of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(scaled)));
  }
  const std::uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

// Builds a JSON text. Members are written in order; commas take care of themselves.
class JsonWriter {
 public:
  explicit JsonWriter(Encoding matrices = Encoding::numbers) : matrices_(matrices) {}

  JsonWriter& key(const char* name) {
    separate();
    fmt::format_to(std::back_inserter(text_), "\"{}\":", name);
    after_key_ = true;
    return *this;
  }
  void open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  void raw(std::string_view value) {
    separate();
    text_ += value;
  }
  void value(const std::string& text) { raw(quoted(text)); }
  void value(std::int64_t number) { raw(std::to_string(number)); }
  void value(bool flag) { raw(flag ? "true" : "false"); }
  void value(double number) {
    separate();
    append(number);
  }
  void values(const auto& list) {
    open('[');
    for (const auto& item : list) value(widened(item));
    close(']');
  }
  void matrix(const ValueMatrix& matrix) { this->matrix(matrix, matrices_); }
  void matrix(const ValueMatrix& matrix, Encoding encoding) {
    if (encoding == Encoding::numbers) {
      open('[');
      for (std::int64_t i = 0; i < matrix.rows; ++i) values(matrix.row(i));
      close(']');
      return;
    }
    open('{');
    key("shape");
    values(std::array{matrix.rows, matrix.columns});
    if (encoding == Encoding::halves) {
      key("f16").value(halves(matrix));
    } else {
      float largest = 0;
      for (const float value : matrix.values) largest = std::max(largest, value);
      const double scale = largest > 0 ? double{largest} / 255 : 1;
      key("u8").value(bytes(matrix, scale));
      key("scale").raw(fmt::format("{:.9g}", scale));
    }
    close('}');
  }
  Encoding matrices() const { return matrices_; }
  std::string take() { return std::move(text_); }

 private:
  static double widened(float number) { return double{number}; }
  static double widened(double number) { return number; }
  static std::int64_t widened(std::int32_t number) { return number; }
  static std::int64_t widened(std::int64_t number) { return number; }
  static const std::string& widened(const std::string& text) { return text; }

  static std::string halves(const ValueMatrix& matrix) {
    std::string data;
    data.reserve(matrix.values.size() * 2);
    for (const float value : matrix.values) {
      const std::uint16_t half = half_of(value);
      data += static_cast<char>(half & 0xFF);
      data += static_cast<char>(half >> 8);
    }
    return to_base64(data);
  }
  static std::string bytes(const ValueMatrix& matrix, double scale) {
    std::string data;
    for (const float value : matrix.values) {
      data += static_cast<char>(
          static_cast<unsigned char>(std::clamp(std::lround(double{value} / scale), 0L, 255L)));
    }
    return to_base64(data);
  }

  void append(double number) {
    if (std::isfinite(number)) {
      fmt::format_to(std::back_inserter(text_), "{:.6g}", number);
    } else {
      text_ += "null";
    }
  }
  void separate() {
    if (!first_ && !after_key_) text_ += ',';
    first_ = after_key_ = false;
  }

  Encoding matrices_;
  std::string text_;
  bool first_ = true;  // the next value is the first of its object or list
  bool after_key_ = false;
};

const char* name_of(Inspection::Task task) {
  switch (task) {
    case Inspection::Task::translate:
      return "translate";
    case Inspection::Task::continue_text:
      return "continue";
    case Inspection::Task::fill:
      return "fill";
  }
  return "";
}

const char* name_of(BeamNode::State state) {
  switch (state) {
    case BeamNode::State::kept:
      return "kept";
    case BeamNode::State::dropped:
      return "dropped";
    case BeamNode::State::finished:
      return "finished";
  }
  return "";
}

void write_model(JsonWriter& out, const InspectedModel& model) {
  out.key("model").open('{');
  out.key("name").value(model.name);
  out.key("family").value(model.family);
  out.key("parameters").value(model.parameters);
  out.key("width").value(model.width);
  if (model.heads > 0) {
    out.key("heads").value(model.heads);
    out.key("head_width").value(model.head_width);
  }
  out.key("layers").open('{');
  if (model.encoder_layers > 0) out.key("encoder").value(model.encoder_layers);
  if (model.decoder_layers > 0) out.key("decoder").value(model.decoder_layers);
  out.close('}');
  if (!model.position.empty()) out.key("position").value(model.position);
  if (!model.norm.empty()) out.key("norm").value(model.norm);
  out.key("vocabulary").value(model.vocabulary);
  out.close('}');
}

void write_side(JsonWriter& out, const std::string& name, const InspectedText& text) {
  if (text.pieces.empty()) return;
  out.key(name.c_str()).values(text.pieces);
  if (!text.ids.empty()) out.key((name + "_ids").c_str()).values(text.ids);
}

void write_texts(JsonWriter& out, const Inspection& inspection) {
  out.key("text").open('{');
  if (!inspection.source_text.empty()) out.key("source").value(inspection.source_text);
  out.key("target").value(inspection.target_text);
  out.close('}');
  write_side(out, "source", inspection.source);
  write_side(out, "target", inspection.target);
  write_side(out, "input", inspection.input);
  out.key("words").open('{');
  for (const auto& [name, text] : {std::pair{"source", &inspection.source},
                                   {"target", &inspection.target},
                                   {"input", &inspection.input}}) {
    if (text->pieces.empty()) continue;
    out.key(name).open('[');
    for (const auto& [begin, end] : text->words) out.values(std::array{begin, end});
    out.close(']');
  }
  out.close('}');
  out.key("given_target").value(inspection.given_target);
  out.key("truncated").open('{');
  out.key("source").value(inspection.source_cut);
  out.key("target").value(inspection.target_cut);
  out.close('}');
}

void write_token(JsonWriter& out, const TokenProbability& token) {
  out.key("piece").value(token.piece);
  out.key("id").value(std::int64_t{token.id});
  out.key("probability").value(token.probability);
  out.key("logit").value(token.logit);
}

void write_steps(JsonWriter& out, const std::vector<InspectedStep>& steps) {
  out.key("steps").open('[');
  for (const InspectedStep& step : steps) {
    out.open('{');
    out.key("position").value(step.position);
    write_token(out, step.chosen);
    out.key("best").open('[');
    for (const TokenProbability& token : step.best) {
      out.open('{');
      write_token(out, token);
      out.close('}');
    }
    out.close(']');
    out.close('}');
  }
  out.close(']');
}

void write_place(JsonWriter& out, const InspectedPlace& place) {
  out.key("stack").value(place.stack);
  if (place.layer >= 0 || place.head >= 0 || place.part.empty()) {
    out.key("layer").value(std::int64_t{place.layer});
  }
  out.key("part").value(place.part);
  if (place.head >= 0) out.key("head").value(std::int64_t{place.head});
}

void write_kind(JsonWriter& out, const HeadKind& kind) {
  out.key("kind").open('{');
  out.key("name").value(kind.name);
  out.key("measure").value(kind.measure);
  out.key("all").open('{');
  for (const auto& [name, measure] : kind.all) out.key(name.c_str()).value(measure);
  out.close('}');
  out.close('}');
}

void write_attention(JsonWriter& out, const Inspection& inspection,
                     const InspectionSelection& selection, Encoding weights) {
  out.key("attention").open('[');
  for (const InspectedHead& head : inspection.attention) {
    if (!selection.includes(head.place)) continue;
    out.open('{');
    write_place(out, head.place);
    write_kind(out, head.kind);
    out.key("weights").matrix(head.weights, weights);
    out.close('}');
  }
  out.close(']');
}

void write_weights(JsonWriter& out, const char* name, const std::vector<InspectedWeights>& entries,
                   const InspectionSelection& selection, Encoding encoding) {
  out.key(name).open('[');
  for (const InspectedWeights& entry : entries) {
    if (!selection.includes(entry.place)) continue;
    out.open('{');
    write_place(out, entry.place);
    out.key("weights").matrix(entry.weights, encoding);
    out.close('}');
  }
  out.close(']');
}

void write_tensor(JsonWriter& out, const InspectedTensor& tensor) {
  out.open('{');
  out.key("tap").value(tensor.tap);
  out.key("stack").value(tensor.place.stack);
  out.key("layer").value(std::int64_t{tensor.place.layer});
  out.key("part").value(tensor.place.part);
  if (tensor.place.head >= 0) out.key("head").value(std::int64_t{tensor.place.head});
  out.key("values").matrix(tensor.values);
  out.close('}');
}

void write_norms(JsonWriter& out, const std::vector<InspectedNorm>& norms) {
  out.key("norms").open('[');
  for (const InspectedNorm& norm : norms) {
    out.open('{');
    write_place(out, norm.place);
    out.key("before").open('{');
    out.key("mean").values(norm.mean_before);
    out.key("deviation").values(norm.deviation_before);
    out.close('}');
    out.key("after").open('{');
    out.key("mean").values(norm.mean_after);
    out.key("deviation").values(norm.deviation_after);
    out.close('}');
    out.key("length").open('{');
    out.key("branch").values(norm.branch_length);
    out.key("stream").values(norm.stream_length);
    out.close('}');
    out.close('}');
  }
  out.close(']');
}

void write_positions(JsonWriter& out, const InspectedPositions& positions) {
  out.key("positions").open('{');
  out.key("kind").value(positions.kind);
  if (!positions.rows.values.empty()) {
    out.key("rows").matrix(positions.rows);
    out.key("similarity").matrix(positions.similarity);
  }
  if (!positions.biases.empty()) {
    out.key("bias").open('[');
    for (const ValueMatrix& bias : positions.biases) out.matrix(bias);
    out.close(']');
  }
  out.close('}');
}

void write_alignment(JsonWriter& out, const InspectedAlignment& alignment) {
  out.key("alignment").open('{');
  out.key("layer").value(std::int64_t{alignment.layer});
  out.key("heads").values(alignment.heads);
  out.close('}');
}

void write_beam(JsonWriter& out, const BeamTree& beam) {
  out.key("beam").open('{');
  out.key("size").value(std::int64_t{beam.size});
  out.key("steps").open('[');
  for (const std::vector<BeamNode>& step : beam.steps) {
    out.open('[');
    for (const BeamNode& node : step) {
      out.open('{');
      out.key("id").value(std::int64_t{node.id});
      out.key("parent").value(std::int64_t{node.parent});
      out.key("piece").value(node.piece);
      out.key("token").value(std::int64_t{node.token});
      out.key("score").value(node.score);
      out.key("log_probability").value(node.log_probability);
      out.key("state").value(std::string(name_of(node.state)));
      if (!node.why.empty()) out.key("why").value(node.why);
      out.close('}');
    }
    out.close(']');
  }
  out.close(']');
  out.key("best").values(beam.best);
  out.close('}');
}

void write_header(JsonWriter& out, const Inspection& inspection) {
  out.key("format").value(std::int64_t{1});
  out.key("version").value(std::string(version()));
  write_model(out, inspection.model);
  out.key("task").value(std::string(name_of(inspection.task)));
  write_texts(out, inspection);
}

void write_inspection(JsonWriter& out, const Inspection& inspection,
                      const InspectionSelection& selection) {
  using View = InspectionView;
  const bool walk = selection.includes(View::walk);
  const bool arithmetic = selection.includes(View::arithmetic);
  const bool attention = walk || arithmetic || selection.includes(View::attention);
  out.open('{');
  write_header(out, inspection);
  if (walk || selection.includes(View::words)) write_steps(out, inspection.steps);
  if (attention) {
    write_attention(out, inspection, selection, out.matrices());
    write_weights(out, "rollout", inspection.rollout, selection, out.matrices());
    write_weights(out, "gradient_weight", inspection.gradient_weight, selection, out.matrices());
    if (inspection.alignment) write_alignment(out, *inspection.alignment);
  }
  if (walk || arithmetic) {
    out.key("tensors").open('[');
    for (const InspectedTensor& tensor : inspection.tensors) {
      const bool wanted = walk || tensor.place.part.ends_with("attention");
      if (wanted && selection.includes(tensor.place)) write_tensor(out, tensor);
    }
    out.close(']');
  }
  if (walk || selection.includes(View::norms)) write_norms(out, inspection.norms);
  if (inspection.positions && (walk || selection.includes(View::positions))) {
    write_positions(out, *inspection.positions);
  }
  if (inspection.beam && (walk || selection.includes(View::beam))) {
    write_beam(out, *inspection.beam);
  }
  out.close('}');
}

void write_checkpoints(JsonWriter& out, std::span<const InspectedCheckpoint> checkpoints) {
  out.key("checkpoints");
  if (checkpoints.empty()) {
    out.raw("null");
    return;
  }
  out.open('[');
  for (const InspectedCheckpoint& checkpoint : checkpoints) {
    out.open('{');
    out.key("name").value(checkpoint.name);
    out.key("step").value(checkpoint.step);
    if (checkpoint.loss) out.key("loss").value(*checkpoint.loss);
    if (!checkpoint.metric.empty()) {
      out.key("metric").open('{');
      out.key("name").value(checkpoint.metric);
      out.key("score").value(checkpoint.score);
      out.close('}');
    }
    out.close('}');
  }
  out.close(']');
}

// The taps of a page in the order of their importance. What the page can compute comes late: scores
// follow from queries and keys, unless a bias is added to them.
constexpr std::array<std::array<std::string_view, 3>, 10> kTapOrder = {{
    {"query", "key", "value"},
    {"biased_scores"},
    {"token_embedding", "position", "embedding"},
    {"norm_output"},
    {"residual_sum"},
    {"attention_output", "feed_forward"},
    {"stack_output"},
    {"attention_context"},
    {"feed_forward_hidden"},
    {"scores", "scaled_scores", "masked_scores"},
}};

// An inspection for the page in at most about `bytes` bytes.
std::string packed(const Inspection& inspection, std::size_t bytes) {
  // A page of a few short sentences has room for half floats; bytes are enough for a picture.
  std::size_t cells = 0;
  for (const InspectedHead& head : inspection.attention) cells += head.weights.values.size();
  const Encoding weights = cells * 3 < bytes / 8 ? Encoding::halves : Encoding::bytes;
  JsonWriter out(Encoding::halves);
  out.open('{');
  write_header(out, inspection);
  write_steps(out, inspection.steps);
  write_attention(out, inspection, {}, weights);
  write_weights(out, "rollout", inspection.rollout, {}, weights);
  if (inspection.alignment) write_alignment(out, *inspection.alignment);
  write_norms(out, inspection.norms);
  if (inspection.beam) write_beam(out, *inspection.beam);
  std::string result = out.take();

  std::string tensors;
  const auto fits = [&](const std::string& more) {
    constexpr std::size_t kEnd = 32;  // the brackets around the tensors
    return result.size() + tensors.size() + more.size() + kEnd <= bytes;
  };
  const auto add = [&](const auto& write) {
    JsonWriter part(Encoding::halves);
    part.open('{');  // the part continues an object
    write(part);
    std::string text = part.take();
    text[0] = ',';
    if (fits(text)) result += text;
  };
  const auto add_taps = [&](const auto& names) {
    std::string group;
    for (const InspectedTensor& tensor : inspection.tensors) {
      if (std::ranges::find(names, tensor.tap) == names.end()) continue;
      JsonWriter part(Encoding::halves);
      write_tensor(part, tensor);
      group += (group.empty() && tensors.empty() ? "" : ",") + part.take();
    }
    if (fits(group)) tensors += group;
  };
  add_taps(kTapOrder.front());
  add([&](JsonWriter& part) {
    write_weights(part, "gradient_weight", inspection.gradient_weight, {}, weights);
  });
  if (inspection.positions) {
    add([&](JsonWriter& part) { write_positions(part, *inspection.positions); });
  }
  for (const auto& names : std::span(kTapOrder).subspan(1)) add_taps(names);
  return result + ",\"tensors\":[" + tensors + "]}";
}

}  // namespace

std::string to_json(const Inspection& inspection, const InspectionSelection& selection) {
  JsonWriter out;
  write_inspection(out, inspection, selection);
  return out.take();
}

std::string to_json(std::span<const Inspection> inspections,
                    std::span<const InspectedCheckpoint> checkpoints,
                    const InspectionSelection& selection) {
  JsonWriter out;
  out.open('{');
  out.key("inspections").open('[');
  for (const Inspection& inspection : inspections) write_inspection(out, inspection, selection);
  out.close(']');
  write_checkpoints(out, checkpoints);
  out.close('}');
  return out.take();
}

std::string page_payload(std::span<const Inspection> inspections,
                         std::span<const InspectedCheckpoint> checkpoints, std::size_t bytes) {
  // The last checkpoint, where a page starts, gets up to a quarter; the others share the rest.
  std::vector<std::string> parts(inspections.size());
  if (!inspections.empty()) {
    const std::size_t others = inspections.size() - 1;
    parts.back() = packed(inspections.back(), others == 0 ? bytes : bytes / 4);
    const std::size_t rest = bytes - std::min(bytes, parts.back().size());
    for (std::size_t i = 0; i < others; ++i) parts[i] = packed(inspections[i], rest / others);
  }
  JsonWriter out;
  out.open('{');
  out.key("inspections").open('[');
  for (const std::string& part : parts) out.raw(part);
  out.close(']');
  write_checkpoints(out, checkpoints);
  out.close('}');
  return out.take();
}

}  // namespace nunchi
