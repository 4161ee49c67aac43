# Writes nunchi/base/commit.h, which version.cpp includes: the commit that is built. Runs at every
# build and changes the file only if the commit has changed.
#   cmake -DSOURCE=FOLDER -DHEADER=FILE -P cmake/Commit.cmake

set(commit "unknown")
find_package(Git QUIET)
if(GIT_FOUND)
  # An unpacked archive may be inside the checkout of another project.
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --show-toplevel WORKING_DIRECTORY ${SOURCE}
                  OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short=12 HEAD WORKING_DIRECTORY ${SOURCE}
                  OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(REAL_PATH "${SOURCE}" source)
  if(top AND head)
    file(REAL_PATH "${top}" top)
    if(top STREQUAL source)
      set(commit "${head}")
    endif()
  endif()
endif()
set(text "#define NUNCHI_COMMIT \"${commit}\"\n")
if(EXISTS "${HEADER}")
  file(READ "${HEADER}" previous)
endif()
if(NOT "${previous}" STREQUAL "${text}")
  file(WRITE "${HEADER}" "${text}")
endif()
