#include <cstdio>
#include <exception>

#include "nunchi/base/version.h"
#include "nunchi/inference/pipeline.h"

int main(int argc, char** argv) {
  int unused;  // -Wall -Werror would refuse it: Nunchi's warnings must not reach its users
  std::printf("nunchi %s\n", std::string(nunchi::version()).c_str());
  try {
    const auto pipeline = nunchi::Pipeline::open(argc > 1 ? argv[1] : "no-such-folder");
    nunchi::Translator translator = pipeline.translator();
    std::printf("%s\n", translator.translate(argc > 2 ? argv[2] : "").text.c_str());
  } catch (const std::exception& error) {
    std::printf("error: %s\n", error.what());
  }
  return 0;
}
