# The library for f32 matrix products: oneDNN or, if that is missing, OpenBLAS (OpenMP build).
# Both are found by header and library: the CMake files of the packages require more than is used.

find_path(NUNCHI_ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp)
find_library(NUNCHI_ONEDNN dnnl)
find_path(NUNCHI_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas x86_64-linux-gnu/openblas-openmp
          x86_64-linux-gnu)
find_library(NUNCHI_OPENBLAS openblas PATH_SUFFIXES openblas-openmp x86_64-linux-gnu/openblas-openmp)

if(NOT NUNCHI_PRODUCTS MATCHES "^(auto|onednn|openblas)$")
  message(FATAL_ERROR "NUNCHI_PRODUCTS must be auto, onednn or openblas, not '${NUNCHI_PRODUCTS}'.")
elseif(NUNCHI_ONEDNN_INCLUDE AND NUNCHI_ONEDNN AND NOT NUNCHI_PRODUCTS STREQUAL "openblas")
  set(NUNCHI_PRODUCT_SOURCE nunchi/kernels/cpu/isa_independent/product_onednn.cpp)
  set(NUNCHI_PRODUCT_LIBRARY ${NUNCHI_ONEDNN})
  set(NUNCHI_PRODUCT_INCLUDE ${NUNCHI_ONEDNN_INCLUDE})
  message(STATUS "f32 products: oneDNN")
elseif(NUNCHI_PRODUCTS STREQUAL "onednn")
  message(FATAL_ERROR "NUNCHI_PRODUCTS is onednn, but oneDNN was not found (Debian: libdnnl-dev).")
elseif(NUNCHI_CBLAS_INCLUDE AND NUNCHI_OPENBLAS)
  set(NUNCHI_PRODUCT_SOURCE nunchi/kernels/cpu/isa_independent/product_openblas.cpp)
  set(NUNCHI_PRODUCT_LIBRARY ${NUNCHI_OPENBLAS})
  set(NUNCHI_PRODUCT_INCLUDE ${NUNCHI_CBLAS_INCLUDE})
  message(STATUS "f32 products: OpenBLAS")
else()
  message(FATAL_ERROR "neither oneDNN (Debian: libdnnl-dev) nor OpenBLAS (libopenblas-openmp-dev) was found.")
endif()
