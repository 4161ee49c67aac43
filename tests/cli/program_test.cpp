// The program itself: output, messages and exit codes.
#include <nlohmann/json.hpp>
#include <tuple>

#include "nunchi/base/version.h"
#include "nunchi/kernels/product.h"
#include "nunchi/models/format/folder.h"
#include "tests/cli/program.h"
#include "tests/files.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

TEST(Program, WrongCallsExitWithTwoAndOneSentence) {
  for (const char* arguments :
       {"", "nonsense", "bench", "bench train --no-such-option", "bench train --preset huge",
        "bench train --threads -1", "bench train --length 0", "bench attention --length abc",
        "bench train --device tpu", "bench train --seconds nan", "bench train --dropout 1",
        "bench train --dropout nan", "bench train no.yaml --dropout 0",
        "bench train no.yaml --seconds 1", "info"}) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_EQ(result.error.rfind("nunchi: ", 0), 0u) << arguments << ": " << result.error;
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    EXPECT_TRUE(result.out.empty()) << arguments << ": " << result.out;
  }
}

TEST(Program, WrongCallsPointToTheirHelp) {
  for (const auto& [arguments, what, help] :
       {std::tuple{"", "a subcommand is required", "nunchi --help"},
        {"info", "MODEL", "nunchi info --help"},
        {"qqqqqqqqqq", "there is no command 'qqqqqqqqqq'", "nunchi --help"},
        {"bench train --no-such-option", "--no-such-option", "nunchi bench train --help"},
        {"bench attention --length abc", "abc", "nunchi bench attention --help"},
        // Control characters of an argument never reach the terminal.
        {"info m \"$(printf 'a\\n\\033[2J')\"", "a??[2J", "nunchi info --help"}}) {
    const std::string error = run(arguments).error;
    EXPECT_NE(error.find(what), std::string::npos) << error;
    EXPECT_TRUE(error.ends_with("; see '" + std::string(help) + "'.\n")) << error;
  }
}

TEST(Program, AMisspeltCommandGetsASuggestion) {
  EXPECT_EQ(run("trane x.yaml").error,
            "nunchi: there is no command 'trane'; did you mean 'train'? See 'nunchi --help'.\n");
  EXPECT_EQ(run("bench trian").error,
            "nunchi: there is no command 'trian'; did you mean 'train'? See 'nunchi bench "
            "--help'.\n");
  EXPECT_EQ(run("trane").code, 2);
}

TEST(Program, AMisspeltOptionGetsASuggestion) {
  const ProgramResult result = run("translate model --beamsize 4");
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(
      result.error.ends_with("; did you mean --beam-size? See 'nunchi translate --help'.\n"))
      << result.error;
}

TEST(Program, OptionsWithoutEffectAreWrongCalls) {
  const ProgramResult bench = run("bench train --set foo=1 --preset tiny");
  EXPECT_EQ(bench.code, 2);
  EXPECT_EQ(bench.error, "nunchi: --set changes a CONFIG, but none is given.\n");
}

TEST(Program, StartsOnce) {
  // libgomp prints its settings each time that it is loaded.
  const std::string printed =
      run("--version", "env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT OMP_DISPLAY_ENV=true").error;
  const std::string begin = "OPENMP DISPLAY ENVIRONMENT BEGIN";
  const std::size_t first = printed.find(begin);
  if (first == printed.npos) GTEST_SKIP() << "the OpenMP library does not print its settings";
  EXPECT_EQ(printed.find(begin, first + 1), printed.npos) << printed;
}

TEST(Program, HelpAndVersionExitWithZero) {
  EXPECT_EQ(run("--help").code, 0);
  EXPECT_EQ(run("bench train --help").code, 0);
  EXPECT_EQ(run("--version").code, 0);
}

TEST(Program, TheVersionSaysHowTheProgramWasBuilt) {
  const std::string expected =
      "nunchi " + std::string(version()) + "\ncommit: " + std::string(commit()) +
      "\nCUDA: " + std::string(cuda_build().empty() ? "no" : cuda_build()) +
      "\nCPU products: " + kernels::product_library() + "\ninstruction set: portable\n";
  EXPECT_EQ(run("--version", "NUNCHI_ISA=portable").out, expected);
  EXPECT_EQ(cuda_build().empty(), !NUNCHI_CUDA);
  EXPECT_TRUE(commit() == "unknown" ||
              (commit().size() >= 12 &&
               commit().find_first_not_of("0123456789abcdef") == std::string_view::npos))
      << commit();
  EXPECT_EQ(run("--version", "NUNCHI_ISA=v9").code, 2);
}

// A program built with CUDA must start on machines without CUDA's libraries.
TEST(Program, LoadsNoCudaLibraryWhenItStarts) {
  const TemporaryFolder folder;
  const std::string list = (folder / "dynamic").string();
  const std::string command =
      std::string("readelf --dynamic --wide ") + NUNCHI_PROGRAM + " >" + list + " 2>/dev/null";
  if (std::system(command.c_str()) != 0) GTEST_SKIP() << "needs readelf (Debian: binutils)";
  const std::string entries = content(list);
  EXPECT_NE(entries.find("(NEEDED)"), std::string::npos) << entries;
  for (const char* library : {"libcublas", "libcudart", "libcuda", "libnvrtc", "libnccl"}) {
    EXPECT_EQ(entries.find(library), std::string::npos) << entries;
  }
}

#if NUNCHI_CUDA
TEST(Program, AMissingCudaLibraryIsNamed) {
  const ProgramResult result =
      run("bench attention --length 8 --device cuda", "NUNCHI_CUBLASLT=libmissing.so.13");
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.error.find("--device cuda needs NVIDIA's library libmissing.so.13"),
            std::string::npos)
      << result.error;
  EXPECT_NE(result.error.find("use --device cpu."), std::string::npos) << result.error;
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  // Any library that is not cuBLASLt.
  const ProgramResult other =
      run("bench attention --length 8 --device cuda", "NUNCHI_CUBLASLT=libm.so.6");
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.error.find("libm.so.6 has no function cublasLt"), std::string::npos)
      << other.error;
}
#endif

TEST(Program, AnUnknownInstructionSetIsAWrongCall) {
  const ProgramResult unknown = run("bench attention --length 8", "NUNCHI_ISA=v9");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.error.find("NUNCHI_ISA is 'v9'; it can be portable, v2, v3 or v4."),
            std::string::npos);
}

TEST(Program, EveryInstructionSetTrainsToTheSameLoss) {
  std::vector<double> losses;
  for (const Isa isa : all_isas()) {
    const ProgramResult result =
        run("bench train --preset tiny --sentences 4 --length 9 --vocab 50 --steps 3 --json",
            std::string("NUNCHI_ISA=") + name_of(isa));
    ASSERT_EQ(result.code, 0) << result.error;
    losses.push_back(nlohmann::json::parse(result.out)["last_loss"].get<double>());
    EXPECT_NEAR(losses.back(), losses.front(), 1e-4) << name_of(isa);
  }
}

TEST(Program, BenchTrainPrintsOneJsonObject) {
  const ProgramResult result = run(
      "bench train --preset tiny --sentences 4 --length 9 --vocab 50 --steps 2 --threads 1 --json");
  ASSERT_EQ(result.code, 0) << result.error;
  const auto json = nlohmann::json::parse(result.out);
  for (const char* key : {"target_tokens_per_s", "ms_per_step", "gflops", "peak_fraction",
                          "peak_mib", "first_loss", "last_loss"}) {
    EXPECT_GT(json.at(key).get<double>(), 0) << key;
  }
  EXPECT_EQ(json.at("threads"), 1);
}

TEST(Program, BenchTrainUsesTheGivenDropout) {
  const std::string command =
      "bench train --sentences 2 --length 5 --vocab 30 --steps 1 --warmup 1 --threads 1 --json ";
  for (const char* preset : {"--preset tiny", "--preset small"}) {
    const ProgramResult zero_rate = run(command + preset + " --dropout 0"),
                        default_rate = run(command + preset);
    ASSERT_EQ(zero_rate.code, 0) << zero_rate.error;
    ASSERT_EQ(default_rate.code, 0) << default_rate.error;
    const auto without_dropout = nlohmann::json::parse(zero_rate.out),
               with_dropout = nlohmann::json::parse(default_rate.out);
    for (const char* key : {"dropout", "attention_dropout"}) {
      EXPECT_EQ(without_dropout.at(key), 0) << preset << ", " << key;
      EXPECT_GT(with_dropout.at(key), 0) << preset << ", " << key;
    }
    EXPECT_EQ(without_dropout.at("activation_dropout"), 0);
    EXPECT_NE(without_dropout.at("first_loss"), with_dropout.at("first_loss")) << preset;
  }
}

TEST(Program, BenchAttentionAndGemmPrintJson) {
  const ProgramResult attention =
      run("bench attention --length 300 --heads 2 --width 20 --causal --json");
  ASSERT_EQ(attention.code, 0) << attention.error;
  for (const char* key : {"forward_ms", "backward_ms", "gflops", "peak_mib"}) {
    EXPECT_GT(nlohmann::json::parse(attention.out).at(key).get<double>(), 0) << key;
  }
  const ProgramResult gemm = run("bench gemm --tokens 64 --vocab 100 --json");
  ASSERT_EQ(gemm.code, 0) << gemm.error;
  EXPECT_EQ(nlohmann::json::parse(gemm.out).at("products_measured").size(), 15u);
}

TEST(Program, InfoShowsFamilyParametersAndConfig) {
  const TemporaryFolder folder;
  CpuContext context;
  const auto model = make_small<Transformer>(context, small_config());
  save_model(*model, folder.path());
  const ProgramResult result = run("info --json " + folder.path().string());
  ASSERT_EQ(result.code, 0) << result.error;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json.at("family"), "transformer");
  EXPECT_EQ(json.at("parameters"), model->parameters().count());
  EXPECT_EQ(json.at("config").at("width"), 40);
  EXPECT_NE(run("info --tensors " + folder.path().string()).out.find("decoder.memory_kv.weight"),
            std::string::npos);
}

TEST(Program, InfoReportsOtherFoldersInOneLine) {
  const TemporaryFolder folder;
  for (const std::string& path : {folder.path().string(), (folder / "nothing").string()}) {
    const ProgramResult result = run("info " + path);
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(result.error.rfind("nunchi: '" + path + "' is not a model folder", 0), 0u)
        << result.error;
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1);
  }
}

TEST(Program, UnexpectedArgumentsAreListedInTheirOrder) {
  const ProgramResult result = run("train a.yaml --learn-rate 1 --resum");
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(says(result.error,
                   "nunchi: the following arguments were not expected: --learn-rate 1 --resum"))
      << result.error;
  const ProgramResult one = run("info a b");
  EXPECT_EQ(one.code, 2);
  EXPECT_TRUE(says(one.error, "nunchi: the following argument was not expected: b; see "))
      << one.error;
}

}  // namespace
}  // namespace nunchi::testing
