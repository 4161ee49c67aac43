# How cmake/EmbedPage.cmake joins modules: cmake -D SCRATCH=FOLDER -P embed_page_test.cmake
cmake_minimum_required(VERSION 3.25)
set(script ${CMAKE_CURRENT_LIST_DIR}/../../cmake/EmbedPage.cmake)
include(${script})

# SHA-256 of the empty string, as browsers print it for a Content-Security-Policy.
string(SHA256 hash "")
nunchi_base64_of_sha256(base64 ${hash})
if(NOT base64 STREQUAL "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
  message(SEND_ERROR "base64: ${base64}")
endif()

set(module "// A module; with [brackets] and \\n.
import {a, b} from \"./first.js\";
import {
  c
} from \"./second.js\";
export const list = [a, b];
export async function load() {}
export class Thing {}
function local() { return list; }
")
nunchi_joined_module(joined "third.js" "${module}" "first.js;second.js")
foreach(expected "modules[\"./third.js\"] = (() => {" "const {a, b} = modules[\"./first.js\"];"
                 "\n  c\n} = modules[\"./second.js\"];" "\nconst list = [a, b];" "\nasync function load() {}"
                 "\nclass Thing {}" "// A module; with [brackets] and \\n." "return { list, load, Thing };")
  string(FIND "${joined}" "${expected}" found)
  if(found EQUAL -1)
    message(SEND_ERROR "\"${expected}\" is not in:\n${joined}")
  endif()
endforeach()

# Pages that cannot be joined are errors that name the file.
function(expect_error words modules first second)
  file(WRITE ${SCRATCH}/page.html "<style>@style@</style><script>@script@</script>")
  file(WRITE ${SCRATCH}/style.css "")
  file(WRITE ${SCRATCH}/modules.txt "${modules}")
  file(WRITE ${SCRATCH}/modules/first.js "${first}")
  file(WRITE ${SCRATCH}/modules/second.js "${second}")
  execute_process(COMMAND ${CMAKE_COMMAND} -DWEB=${SCRATCH} -DHTML=${SCRATCH}/out.html -P ${script}
                  RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE message)
  string(REGEX REPLACE "[ \n]+" " " message "${message}")
  if(words STREQUAL "")
    if(NOT code EQUAL 0)
      message(SEND_ERROR "refused: ${message}")
    endif()
  elseif(code EQUAL 0 OR NOT message MATCHES "${words}")
    message(SEND_ERROR "expected \"${words}\": ${code} ${message}")
  endif()
endfunction()
set(import "import {a} from \"./first.js\";\n")
expect_error("" "first.js\nsecond.js\n" "export const a = 1;\n" "${import}")
expect_error("second.js imports first.js, which is not before it" "second.js\nfirst.js\n" "" "${import}")
expect_error("only import" "first.js\nsecond.js\n" "" "import * as all from \"./first.js\";\n")
expect_error("cannot be joined" "first.js\n" "export default 1;\n" "")
expect_error("contains \"</script\"" "first.js\n" "const a = \"</script>\";\n" "")
