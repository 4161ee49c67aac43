# The library behind f32 matrix products: oneDNN, or OpenBLAS (its OpenMP build) where that is missing.
# Both are looked for as header and library: the packages' own CMake files ask for more than we use.

find_path(NUNCHI_ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp)
find_library(NUNCHI_ONEDNN dnnl)
find_path(NUNCHI_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas x86_64-linux-gnu/openblas-openmp
          x86_64-linux-gnu)
find_library(NUNCHI_OPENBLAS openblas PATH_SUFFIXES openblas-openmp x86_64-linux-gnu/openblas-openmp)

if(NOT NUNCHI_PRODUCTS MATCHES "^(auto|onednn|openblas)$")
  message(FATAL_ERROR "NUNCHI_PRODUCTS is '${NUNCHI_PRODUCTS}'; it can be auto, onednn or openblas.")
elseif(NUNCHI_ONEDNN_INCLUDE AND NUNCHI_ONEDNN AND NOT NUNCHI_PRODUCTS STREQUAL "openblas")
  set(NUNCHI_PRODUCT_SOURCE nunchi/kernels/cpu/isa_independent/product_onednn.cpp)
  set(NUNCHI_PRODUCT_LIBRARY ${NUNCHI_ONEDNN})
  set(NUNCHI_PRODUCT_INCLUDE ${NUNCHI_ONEDNN_INCLUDE})
  message(STATUS "f32 products: oneDNN")
elseif(NUNCHI_PRODUCTS STREQUAL "onednn")
  message(FATAL_ERROR "oneDNN was asked for and not found (Debian: libdnnl-dev).")
elseif(NUNCHI_CBLAS_INCLUDE AND NUNCHI_OPENBLAS)
  set(NUNCHI_PRODUCT_SOURCE nunchi/kernels/cpu/isa_independent/product_openblas.cpp)
  set(NUNCHI_PRODUCT_LIBRARY ${NUNCHI_OPENBLAS})
  set(NUNCHI_PRODUCT_INCLUDE ${NUNCHI_CBLAS_INCLUDE})
  message(STATUS "f32 products: OpenBLAS")
else()
  message(FATAL_ERROR "neither oneDNN (Debian: libdnnl-dev) nor OpenBLAS (libopenblas-openmp-dev) was found.")
endif()
