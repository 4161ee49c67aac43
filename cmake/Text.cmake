# Libraries for text. They have no CMake files, so they are found by header and library.

foreach(need
        "SENTENCEPIECE sentencepiece_processor.h sentencepiece libsentencepiece-dev"
        "SENTENCEPIECE_TRAIN sentencepiece_trainer.h sentencepiece_train libsentencepiece-dev"
        "UTF8PROC utf8proc.h utf8proc libutf8proc-dev"
        "LZMA lzma.h lzma liblzma-dev")
  separate_arguments(need)
  list(GET need 0 name)
  list(GET need 1 header)
  list(GET need 2 library)
  list(GET need 3 package)
  find_path(NUNCHI_${name}_INCLUDE ${header})
  find_library(NUNCHI_${name} ${library})
  if(NOT NUNCHI_${name}_INCLUDE OR NOT NUNCHI_${name})
    message(FATAL_ERROR "${header} or lib${library} was not found (Debian: ${package}).")
  endif()
  list(APPEND NUNCHI_TEXT_INCLUDE ${NUNCHI_${name}_INCLUDE})
  list(APPEND NUNCHI_TEXT_LIBRARIES ${NUNCHI_${name}})
endforeach()

# Header-only: compiled into the only file that uses it.
find_path(NUNCHI_XXHASH_INCLUDE xxhash.h)
if(NOT NUNCHI_XXHASH_INCLUDE)
  message(FATAL_ERROR "xxhash.h was not found (Debian: libxxhash-dev).")
endif()
list(APPEND NUNCHI_TEXT_INCLUDE ${NUNCHI_XXHASH_INCLUDE})
