# The names by which cmake/Unity.cmake keeps files apart: cmake -P unity_test.cmake
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/Unity.cmake)

nunchi_unnamed_names(names "#include <map>

namespace nunchi {
namespace {

namespace fs = std::filesystem;
using Rows = std::vector<int>;
constexpr int kLimit = 3;
const std::array<int, 2> kTable{1, 2};

struct Saved {
  int member = 0;
};

template <class T>
T* pointer_to(T& value) {
  int local = 0;
  return &value;
}

Saved run_backward(const Saved& saved) { return saved; }

}  // namespace

struct Public {};
void exported() {}

namespace {
enum class Kind { one };
}  // namespace

}  // namespace nunchi
")
list(SORT names)
set(expected Kind Rows Saved fs kLimit kTable pointer_to run_backward)
if(NOT names STREQUAL expected)
  message(SEND_ERROR "found '${names}' instead of '${expected}'")
endif()

foreach(case "TRUE|int Kind = 0" "TRUE|f(fs::path())" "FALSE|KindOf x, my_fs()")
  string(REPLACE "|" ";" case "${case}")
  list(POP_FRONT case result)
  nunchi_any_word(found " ${case} " ${names})
  if(NOT found STREQUAL result)
    message(SEND_ERROR "'${case}': ${found} instead of ${result}")
  endif()
endforeach()
