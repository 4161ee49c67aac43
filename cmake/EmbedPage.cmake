# Joins the files of web/ into one HTML page and writes the page as a C++ string.
#   cmake -DWEB=FOLDER [-DHTML=FILE] [-DCPP=FILE] -P cmake/EmbedPage.cmake
#
# The modules of web/ are ES modules, listed in web/modules.txt in the order in which they run. A page
# without a server cannot import files, so a module becomes a function that runs at once and returns
# its exports; an import becomes a look-up in the table of the modules before it. For this, a module
# writes `import { a, b } from "./name.js";` and `export function|const|class NAME` at the start of a
# line, and nothing else of the module syntax.
cmake_minimum_required(VERSION 3.25)

# Sets `result` to the base64 form of 64 hexadecimal digits (a SHA-256).
function(nunchi_base64_of_sha256 result hex)
  set(digits "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(text "")
  foreach(begin RANGE 0 60 6)
    string(SUBSTRING "${hex}00" ${begin} 6 bytes)
    math(EXPR number "0x${bytes}")
    foreach(shift 18 12 6 0)
      math(EXPR digit "(${number} >> ${shift}) & 63")
      string(SUBSTRING "${digits}" ${digit} 1 digit)
      string(APPEND text "${digit}")
    endforeach()
  endforeach()
  string(SUBSTRING "${text}" 0 43 text)
  set(${result} "${text}=" PARENT_SCOPE)
endfunction()

# Sets `result` to the text of a module as a function in the table `modules`.
function(nunchi_joined_module result name text earlier)
  set(text "\n${text}")
  string(REGEX MATCHALL "\nimport [^\"]*\"[^\"]*\"" imports "${text}")
  foreach(import IN LISTS imports)
    if(NOT import MATCHES "^\nimport {[^}]*} from \"\\./([a-z_.]+)\"$")
      message(FATAL_ERROR "web/${name}: only import { NAMES } from \"./name.js\" is joined, not${import}")
    endif()
    if(NOT CMAKE_MATCH_1 IN_LIST earlier)
      message(FATAL_ERROR "web/${name} imports ${CMAKE_MATCH_1}, which is not before it in web/modules.txt.")
    endif()
  endforeach()
  string(REGEX REPLACE "\nimport ({[^}]*}) from (\"[^\"]*\")" "\nconst \\1 = modules[\\2]" text "${text}")
  string(REGEX MATCHALL "\nexport (async )?(function|const|class) [A-Za-z0-9_]+" exports "${text}")
  set(names "")
  foreach(export IN LISTS exports)
    string(REGEX REPLACE "^.* " "" export "${export}")
    list(APPEND names ${export})
  endforeach()
  list(JOIN names ", " names)
  string(REGEX REPLACE "\nexport (async function|function|const|class) " "\n\\1 " text "${text}")
  if(text MATCHES "\n(import|export)[^A-Za-z0-9_]")
    message(FATAL_ERROR "web/${name} has an import or export that cannot be joined (cmake/EmbedPage.cmake).")
  endif()
  set(${result} "modules[\"./${name}\"] = (() => {${text}return { ${names} };\n})();\n" PARENT_SCOPE)
endfunction()

# Sets `result` to the page. `folder` is web/.
function(nunchi_joined_page result folder)
  file(READ ${folder}/page.html page)
  file(READ ${folder}/style.css style)
  file(STRINGS ${folder}/modules.txt names REGEX "^[^#]")
  set(script "\"use strict\";\nconst modules = {};\n")
  set(earlier "")
  foreach(name IN LISTS names)
    file(READ ${folder}/modules/${name} text)
    nunchi_joined_module(module "${name}" "${text}" "${earlier}")
    string(APPEND script "${module}")
    list(APPEND earlier ${name})
  endforeach()
  foreach(part script style)
    # Either would end the element early.
    if("${${part}}" MATCHES "</(script|style)|<!--")
      message(FATAL_ERROR "The ${part} of web/ contains \"${CMAKE_MATCH_0}\".")
    endif()
    string(SHA256 hash "${${part}}")
    nunchi_base64_of_sha256(hash ${hash})
    string(REPLACE "@${part}_hash@" "sha256-${hash}" page "${page}")
    string(REPLACE "@${part}@" "${${part}}" page "${page}")
  endforeach()
  set(${result} "${page}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  nunchi_joined_page(page ${WEB})
  if(HTML)
    file(WRITE ${HTML} "${page}")
  endif()
  if(CPP)
    if("${page}" MATCHES "\\)page\"")
      message(FATAL_ERROR "web/ contains the end of the C++ string, )page\".")
    endif()
    # Compilers need not support literals above 64 KiB.
    set(parts "")
    while(NOT page STREQUAL "")
      string(SUBSTRING "${page}" 0 60000 part)
      string(LENGTH "${page}" length)
      string(FIND "${part}" "\n" end REVERSE)
      if(length GREATER 60000 AND end GREATER 0)
        math(EXPR end "${end} + 1")
        string(SUBSTRING "${part}" 0 ${end} part)
      endif()
      string(LENGTH "${part}" end)
      string(SUBSTRING "${page}" ${end} -1 page)
      string(APPEND parts "      R\"page(${part})page\",\n")
    endwhile()
    file(WRITE ${CPP} "#include <initializer_list>
#include <string>

#include \"nunchi/views/html_page.h\"

namespace nunchi {

std::string_view empty_page() {
  static const std::string page = [] {
    std::string joined;
    for (const std::string_view part : std::initializer_list<std::string_view>{
${parts}    }) {
      joined += part;
    }
    return joined;
  }();
  return page;
}

}  // namespace nunchi
")
  endif()
endif()
