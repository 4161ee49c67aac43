// Every verdict can come out otherwise: for each lab, figures under which its claim holds, holds
// partly, and fails.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "nunchi/lab/lab.h"

namespace nunchi::testing {
namespace {

using lab::Verdict;
using Numbers = std::map<std::string, double>;

struct Case {
  std::string lab;
  Numbers holds;          // figures under which the claim holds
  Numbers partly, fails;  // replaced in `holds`
};

lab::Figures figures_of(const Numbers& base, const Numbers& replaced) {
  Numbers all = replaced;
  all.insert(base.begin(), base.end());
  lab::Figures figures;
  for (const auto& [name, value] : all) figures.set(name, value);
  return figures;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"worked",
       {{"statements", 10}, {"consistent", 10}},
       {{"consistent", 4}},
       {{"consistent", 0}}},
      {"scaling",
       {{"largest_unscaled_64", 0.87},
        {"largest_scaled_64", 0.32},
        {"gradient_scaled_512", 0.2},
        {"gradient_unscaled_512", 0.03}},
       {{"gradient_unscaled_512", 0.15}},
       {{"gradient_unscaled_512", 0.15}, {"largest_scaled_64", 0.6}}},
      {"positions",
       {{"distance_3_4", 3.7}, {"distance_3_500", 19.2}, {"monotone_until", 511}},
       {{"monotone_until", 43}},
       {{"monotone_until", 43}, {"distance_3_4", 12}}},
      {"collisions",
       {{"nearest_far_1024", 0.5}, {"neighbours_1024", 5}},
       {{"nearest_far_1024", 8}},
       {{"nearest_far_1024", 18}}},
      {"memory",
       {{"matrix_memory_exponent", 2},
        {"tiled_memory_exponent", 1},
        {"tiled_ms", 50},
        {"matrix_ms", 90}},
       {{"tiled_ms", 120}},
       {{"tiled_ms", 120}, {"tiled_memory_exponent", 1.9}}},
      {"order",
       {{"exact_without", 0},
        {"difference_without", 1e-6},
        {"exact_with", 1},
        {"difference_with", 3}},
       {{"exact_without", 0.6}},
       {{"exact_without", 0.6}, {"exact_with", 0.5}}},
      {"mask",
       {{"loss_without", 0.01}, {"loss_with", 1.3}, {"exact_without", 0}, {"exact_with", 1}},
       {{"exact_without", 0.9}},
       {{"exact_without", 0.9}, {"loss_without", 1.2}}},
      {"heads",
       {{"accuracy_1", 0.4},
        {"accuracy_4", 0.9},
        {"accuracy_8", 0.9},
        {"kinds_4", 3},
        {"kinds_8", 3},
        {"diagonal_1", 0.5},
        {"diagonal_4", 0.2},
        {"diagonal_8", 0.2}},
       {{"diagonal_8", 0.6}},
       {{"kinds_4", 1}, {"kinds_8", 1}, {"accuracy_1", 0.9}, {"diagonal_1", 0.1}}},
      {"coreference",
       {{"accuracy", 1},
        {"tired_is_animal", 1},
        {"wide_is_street", 1},
        {"weight_right", 0.4},
        {"weight_wrong", 0.1}},
       {{"weight_right", 0.1}},
       {{"weight_right", 0.1}, {"wide_is_street", 0}}},
      {"cat",
       {{"cat_sentence_right", 1},
        {"exact_held_out", 1},
        {"thanks_before", 0.001},
        {"thanks_after", 0.99},
        {"cat_most_on_sleeps", 1}},
       {{"cat_most_on_sleeps", 0}},
       {{"cat_most_on_sleeps", 0}, {"thanks_after", 0.5}}},
      {"bottleneck",
       {{"rnn_4", 0.9}, {"rnn_20", 0.2}, {"rnn_attention_20", 0.9}, {"transformer_20", 0.9}},
       {{"transformer_20", 0.3}},
       {{"transformer_20", 0.3}, {"rnn_20", 0.8}}},
      {"teacher-forcing",
       {{"reached_0", 1}, {"steps_0", 200}, {"steps_50", 300}, {"steps_100", 600}},
       {{"steps_100", 250}},
       {{"steps_50", 150}, {"steps_100", 150}}},
      {"residual",
       {{"first_to_last_residual_norm", 1},
        {"first_to_last_norm_only", 0.01},
        {"loss_residual_norm", 0.8},
        {"loss_norm_only", 3},
        {"loss_neither", 3}},
       {{"loss_norm_only", 0.8}},
       {{"loss_norm_only", 0.8}, {"first_to_last_norm_only", 0.5}}},
      {"length",
       {{"sinusoidal_10", 0.99}, {"sinusoidal_beyond", 0.95}},
       {{"sinusoidal_beyond", 0.6}},
       {{"sinusoidal_beyond", 0.2}}},
      {"places",
       {{"sinusoidal_first", 0.5}, {"sinusoidal_last", 0.5}},
       {{"sinusoidal_first", 1}},
       {{"sinusoidal_first", 1}, {"sinusoidal_last", 0.95}}},
      {"search",
       {{"likeliest_1", 0}, {"likeliest_8", 0.95}, {"ms_1", 1}, {"ms_8", 3}},
       {{"ms_8", 0.5}},
       {{"ms_8", 0.5}, {"likeliest_1", 0.9}}},
      {"scale",
       {{"loss_8", 2.6}, {"loss_16", 2.4}, {"loss_32", 2}, {"loss_64", 1.6}, {"loss_128", 1.4}},
       {{"loss_64", 2.5}},
       {{"loss_64", 2.5}, {"loss_128", 2.5}}},
      {"learning",
       {{"share_first", 0.14}, {"share_last", 0.8}, {"exact_last", 1}},
       {{"exact_last", 0.5}},
       {{"share_last", 0.2}}},
  };
  return all;
}

TEST(Judges, EveryVerdictCanComeOutOtherwise) {
  for (const Case& one : cases()) {
    const lab::Lab& lab = lab::find_lab(one.lab);
    EXPECT_EQ(lab.judge(figures_of(one.holds, {})), Verdict::holds) << one.lab;
    EXPECT_EQ(lab.judge(figures_of(one.holds, one.partly)), Verdict::partly) << one.lab;
    EXPECT_EQ(lab.judge(figures_of(one.holds, one.fails)), Verdict::fails) << one.lab;
  }
}

TEST(Judges, EveryLabIsTested) {
  std::set<std::string> tested;
  for (const Case& one : cases()) tested.insert(one.lab);
  for (const lab::Lab& lab : lab::labs())
    EXPECT_TRUE(tested.contains(std::string(lab.name))) << lab.name;
  EXPECT_EQ(tested.size(), lab::labs().size());
}

}  // namespace
}  // namespace nunchi::testing
