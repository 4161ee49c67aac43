// An inspection in every format: the numbers arrive, and hostile texts stay texts.
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "nunchi/base/error.h"
#include "nunchi/inference/inspector.h"
#include "nunchi/text/unicode.h"
#include "nunchi/views/html_page.h"
#include "nunchi/views/inspection_json.h"
#include "nunchi/views/inspection_npz.h"
#include "nunchi/views/inspection_text.h"
#include "tests/errors.h"
#include "tests/inference/small_translation.h"

namespace nunchi::testing {
namespace {

using Json = nlohmann::json;

Inspection small_inspection(const std::string& text = "the old fox sees a dog",
                            const InspectorOptions& options = {
                                .search = {.beam_size = 3, .max_length = 8}}) {
  SmallTranslation small;
  InspectorOptions named = options;
  named.model_name = "small";
  return Inspector(small.context, *small.model, small.tokenizers, named).inspect({.text = text});
}

TEST(InspectionJson, HasTheNumbersOfTheInspection) {
  const Inspection inspection = small_inspection();
  const Json json = Json::parse(to_json(inspection));
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ(json["task"], "translate");
  EXPECT_EQ(json["model"]["name"], "small");
  EXPECT_EQ(json["source"], Json(inspection.source.pieces));
  EXPECT_EQ(json["target_ids"], Json(inspection.target.ids));
  ASSERT_EQ(json["attention"].size(), inspection.attention.size());
  for (std::size_t h = 0; h < inspection.attention.size(); ++h) {
    const InspectedHead& head = inspection.attention[h];
    const Json& entry = json["attention"][h];
    EXPECT_EQ(entry["stack"], head.place.stack);
    EXPECT_EQ(entry["layer"], head.place.layer);
    EXPECT_EQ(entry["part"], head.place.part);
    EXPECT_EQ(entry["head"], head.place.head);
    ASSERT_EQ(std::ssize(entry["weights"]), head.weights.rows);
    for (std::int64_t i = 0; i < head.weights.rows; ++i) {
      const Json& row = entry["weights"][static_cast<std::size_t>(i)];
      double sum = 0;
      for (const Json& weight : row) sum += weight.get<double>();
      EXPECT_NEAR(sum, 1, 1e-4);
      ASSERT_EQ(std::ssize(row), head.weights.columns);
    }
  }
  for (const Json& step : json["steps"]) EXPECT_EQ(step["best"].size(), 10u);
  EXPECT_EQ(json["tensors"].size(), inspection.tensors.size());
  EXPECT_EQ(json["norms"].size(), inspection.norms.size());
  EXPECT_EQ(json["beam"]["best"], Json(inspection.beam->best));
  EXPECT_EQ(json["positions"]["kind"], "sinusoidal");
}

TEST(InspectionJson, AMaskedScoreIsNull) {
  const Json json = Json::parse(to_json(small_inspection()));
  std::size_t masked = 0;
  for (const Json& tensor : json["tensors"]) {
    if (tensor["tap"] != "masked_scores" || tensor["stack"] != "decoder") continue;
    if (tensor["part"] != "self_attention") continue;
    const Json& rows = tensor["values"];
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = 0; j < rows[i].size(); ++j) {
        EXPECT_EQ(rows[i][j].is_null(), j > i);
        ++masked;
      }
    }
  }
  EXPECT_GT(masked, 0u);
}

TEST(InspectionJson, AViewRestrictsIt) {
  const Inspection inspection = small_inspection();
  const auto keys = [&](const InspectionSelection& selection) {
    const Json json = Json::parse(to_json(inspection, selection));
    return std::array{json.contains("steps"), json.contains("attention"), json.contains("tensors"),
                      json.contains("norms"), json.contains("beam")};
  };
  EXPECT_EQ(keys({}), (std::array{true, true, true, true, true}));
  EXPECT_EQ(keys({.view = InspectionView::words}), (std::array{true, false, false, false, false}));
  EXPECT_EQ(keys({.view = InspectionView::attention}),
            (std::array{false, true, false, false, false}));
  EXPECT_EQ(keys({.view = InspectionView::beam}), (std::array{false, false, false, false, true}));
  const Json one = Json::parse(
      to_json(inspection,
              {.view = InspectionView::attention, .attention = "cross", .layer = 1, .head = 0}));
  ASSERT_EQ(one["attention"].size(), 1u);
  EXPECT_EQ(one["attention"][0]["part"], "cross_attention");
  EXPECT_EQ(one["attention"][0]["layer"], 1);
}

TEST(InspectionJson, WordsHaveTheWeightsOfTheirPieces) {
  const Inspection pieces = small_inspection(), words = joined_into_words(pieces);
  ASSERT_LT(words.source.pieces.size(), pieces.source.pieces.size());
  for (const InspectedHead& head : words.attention) {
    const auto [queries, keys] = axes_of(words, head.place);
    EXPECT_EQ(head.weights.rows, std::ssize(queries.pieces));
    EXPECT_EQ(head.weights.columns, std::ssize(keys.pieces));
    for (std::int64_t i = 0; i < head.weights.rows; ++i) {
      double sum = 0;
      for (const float weight : head.weights.row(i)) sum += double{weight};
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
}

std::string decoded_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<unsigned>(digits.find(c));
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return bytes;
}

double half_value(unsigned bits) {
  const double sign = bits & 0x8000u ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10 & 31u);
  const double fraction = bits & 1023u;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return exponent == 0 ? sign * std::ldexp(fraction, -24)
                       : sign * std::ldexp(1 + fraction / 1024, exponent - 15);
}

TEST(PagePayload, HalfFloatsAreTheValuesRounded) {
  const Inspection inspection = small_inspection();
  const Json json = Json::parse(page_payload(std::span(&inspection, 1)));
  ASSERT_EQ(json["inspections"].size(), 1u);
  EXPECT_TRUE(json["checkpoints"].is_null());
  std::size_t checked = 0;
  for (const Json& tensor : json["inspections"][0]["tensors"]) {
    const ValueMatrix* expected =
        inspection.tensor(tensor["tap"].get<std::string>(),
                          {.stack = tensor["stack"],
                           .layer = tensor["layer"],
                           .part = tensor["part"],
                           .head = tensor.contains("head") ? tensor["head"].get<int>() : -1});
    ASSERT_NE(expected, nullptr);
    const std::string bytes = decoded_base64(tensor["values"]["f16"]);
    ASSERT_EQ(bytes.size(), expected->values.size() * 2);
    for (std::size_t i = 0; i < expected->values.size(); ++i, ++checked) {
      const unsigned bits = static_cast<unsigned char>(bytes[2 * i]) |
                            static_cast<unsigned char>(bytes[2 * i + 1]) << 8u;
      const double value = double{expected->values[i]};
      if (std::isinf(value)) {
        EXPECT_EQ(half_value(bits), value);
      } else {
        EXPECT_NEAR(half_value(bits), value, std::fabs(value) / 2048 + 3e-8);
      }
    }
  }
  EXPECT_GT(checked, 1000u);
}

TEST(PagePayload, StaysBelowItsSizeAndKeepsTheAttention) {
  const Inspection inspection = small_inspection();
  const std::size_t whole = page_payload(std::span(&inspection, 1)).size();
  for (const std::size_t bytes : {whole / 2, whole / 4, std::size_t{60'000}}) {
    const std::string payload = page_payload(std::span(&inspection, 1), {}, bytes);
    EXPECT_LE(payload.size(), bytes + 200);
    EXPECT_EQ(Json::parse(payload)["inspections"][0]["attention"].size(),
              inspection.attention.size());
  }
}

TEST(PagePayload, HasACheckpointForEachInspection) {
  const std::vector<Inspection> inspections(3, small_inspection());
  const std::vector<InspectedCheckpoint> checkpoints = {
      {.name = "step-5", .step = 5, .loss = 2.5},
      {.name = "step-10", .step = 10, .loss = 1.5, .metric = "bleu", .score = 30},
      {.name = "step-15", .step = 15}};
  const Json json = Json::parse(page_payload(inspections, checkpoints, 1'000'000));
  EXPECT_EQ(json["inspections"].size(), 3u);
  EXPECT_EQ(json["checkpoints"][1]["metric"]["name"], "bleu");
  EXPECT_EQ(json["checkpoints"][0]["loss"], 2.5);
  EXPECT_FALSE(json["checkpoints"][2].contains("loss"));
}

// The members of a ZIP archive, read by its directory, uncompressed and checked.
std::map<std::string, std::string> members_of(const std::string& archive) {
  const auto number = [&](std::size_t at, int bytes) {
    std::size_t value = 0;
    for (int i = bytes; i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(archive.at(at + static_cast<std::size_t>(i)));
    return value;
  };
  const std::size_t end = archive.size() - 22;
  EXPECT_EQ(number(end, 4), 0x06054B50u);
  std::map<std::string, std::string> members;
  std::size_t at = number(end + 16, 4);
  for (std::size_t i = 0; i < number(end + 10, 2); ++i) {
    EXPECT_EQ(number(at, 4), 0x02014B50u);
    const std::size_t crc = number(at + 16, 4), packed = number(at + 20, 4),
                      size = number(at + 24, 4), name = number(at + 28, 2),
                      local = number(at + 42, 4);
    std::string data(size, '\0');
    z_stream stream{};
    inflateInit2(&stream, -MAX_WBITS);
    stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(archive.data() + local + 30 + name));
    stream.avail_in = static_cast<uInt>(packed);
    stream.next_out = reinterpret_cast<Bytef*>(data.data());
    stream.avail_out = static_cast<uInt>(size);
    EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
    inflateEnd(&stream);
    EXPECT_EQ(crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(size)), crc);
    members[archive.substr(at + 46, name)] = data;
    at += 46 + name;
  }
  return members;
}

TEST(InspectionNpz, HasTheArraysOfTheInspection) {
  const Inspection inspection = small_inspection();
  const auto members = members_of(to_npz(inspection));
  ASSERT_TRUE(members.contains("attention.decoder.1.cross_attention.npy"));
  ASSERT_TRUE(members.contains("masked_scores.decoder.0.self_attention.npy"));
  ASSERT_TRUE(members.contains("source.npy"));
  const std::string& npy = members.at("query.encoder.0.self_attention.npy");
  ASSERT_EQ(npy.substr(0, 6), "\x93NUMPY");
  const std::size_t header =
      static_cast<unsigned char>(npy[8]) + 256u * static_cast<unsigned char>(npy[9]);
  EXPECT_EQ((10 + header) % 64, 0u);
  const ValueMatrix& query =
      *inspection.tensor("query", {.stack = "encoder", .layer = 0, .part = "self_attention"});
  const std::string shape =
      "(" + std::to_string(query.rows) + "," + std::to_string(query.columns) + ",)";
  EXPECT_NE(npy.substr(10, header).find(shape), std::string::npos) << npy.substr(10, header);
  ASSERT_EQ(npy.size() - 10 - header, query.values.size() * 4);
  EXPECT_EQ(std::memcmp(npy.data() + 10 + header, query.values.data(), query.values.size() * 4), 0);
}

TEST(InspectionText, EveryViewIsValidTextOfTheGivenWidth) {
  const Inspection inspection =
      small_inspection("the old fox 고양이 👩‍👩‍👧‍👦 \xff <b>");
  for (const auto& [name, view] : kInspectionViews) {
    SCOPED_TRACE(name);
    const std::string text = to_text(inspection, {.view = view}, {.width = 76});
    EXPECT_FALSE(text.empty());
    EXPECT_TRUE(is_valid_utf8(text));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80) << line;
  }
}

TEST(InspectionText, TheArithmeticPrintsEveryTerm) {
  const Inspection inspection = small_inspection();
  const InspectionSelection selection{.view = InspectionView::arithmetic,
                                      .attention = "encoder",
                                      .layer = 0,
                                      .head = 0,
                                      .query = 1};
  const std::string text = to_text(inspection, selection, {.width = 100});
  const std::int64_t width = inspection.model.head_width,
                     keys = std::ssize(inspection.source.pieces);
  std::int64_t products = 0;
  for (std::size_t at = text.find("×"); at != text.npos; at = text.find("×", at + 1)) ++products;
  // A term of each score and of each number of the context.
  EXPECT_EQ(products, 2 * width * keys);
}

TEST(InspectionText, AWrongPlaceIsAUsageError) {
  const Inspection inspection = small_inspection();
  const auto message = [&](const InspectionSelection& selection) {
    return error_with_kind([&] { check_selection(selection, inspection); });
  };
  EXPECT_NE(message({.layer = 7}).find("layers 1 to 2"), std::string::npos);
  EXPECT_NE(message({.query = 99}).find("queries are 1 to"), std::string::npos);
  Inspection given = inspection;
  given.beam.reset();
  EXPECT_THROW(check_selection({.view = InspectionView::beam}, given), UsageError);
}

TEST(HostileInspections, StayTextsInEveryFormat) {
  const std::vector<std::string> texts = {"</script><script>alert(1)</script> <!-- ]]>",
                                          "👩‍👩‍👧‍👦",
                                          "\u1112\u1161\u11ab\u1100\u116e\u11a8",
                                          "שלום \u202eabc\u202c",
                                          std::string("a\0b\x1b[31m", 8),
                                          "\"'`${7*7}\\",
                                          "\xff\xfe\xc3"};
  for (const std::string& text : texts) {
    SCOPED_TRACE(text);
    const Inspection inspection = small_inspection(text);
    EXPECT_TRUE(Json::accept(to_json(inspection)));
    EXPECT_FALSE(members_of(to_npz(inspection)).empty());
    const std::string page = html_page(page_payload(std::span(&inspection, 1)));
    const std::size_t payload = page.find("id=\"payload\">");
    const std::string inside =
        page.substr(payload, page.find("</script>", payload) - payload).substr(13);
    EXPECT_TRUE(Json::accept(inside));
    EXPECT_EQ(inside.find('<'), std::string::npos);
    for (const auto& [name, view] : kInspectionViews) {
      const std::string shown = to_text(inspection, {.view = view}, {.width = 80});
      EXPECT_TRUE(is_valid_utf8(shown));
      EXPECT_EQ(shown.find('\x1b'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
