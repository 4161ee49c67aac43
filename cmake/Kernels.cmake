# CPU kernels are compiled once per instruction set and selected when the program starts. Kernels
# in kernels/cpu/isa_independent are compiled once: they have no vector code, or call a library.
# The f64 kernels, a third of the compile time, serve gradient checks only, so one version has them.

function(nunchi_add_cpu_kernels target)
  file(GLOB versions CONFIGURE_DEPENDS nunchi/kernels/cpu/*.cpp)
  file(GLOB independent CONFIGURE_DEPENDS nunchi/kernels/cpu/isa_independent/*.cpp)
  list(FILTER independent EXCLUDE REGEX "/product_(onednn|openblas).cpp$")

  # A result must not depend on whether an instruction set has fused multiply-add.
  set_source_files_properties(${PROJECT_SOURCE_DIR}/nunchi/kernels/cpu/int8_product.cpp PROPERTIES
                              COMPILE_OPTIONS -ffp-contract=off)

  set(isas portable)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND isas v2 v3 v4)
  endif()
  foreach(isa ${isas})
    set(library nunchi_kernels_${isa})
    add_library(${library} OBJECT ${versions})
    string(COMPARE EQUAL ${isa} portable has_f64)  # kF64Isa in kernels/run.h
    target_compile_definitions(${library} PRIVATE NUNCHI_ISA=${isa}
                               NUNCHI_F64_VERSION=$<BOOL:${has_f64}>)
    target_link_libraries(${library} PRIVATE nunchi_options)
    target_compile_options(${library} PRIVATE -ffp-contract=fast -fno-math-errno -fno-trapping-math)
    # With sanitizers -O3 takes ten times as long to compile.
    if(NOT NUNCHI_SANITIZE)
      target_compile_options(${library} PRIVATE -O3)
    endif()
    if(NOT isa STREQUAL "portable")
      target_compile_options(${library} PRIVATE -march=x86-64-${isa})
    endif()
    if(isa STREQUAL "v4")
      # g++ 12 wrongly reports uninitialised values in its own AVX-512 header.
      target_compile_options(${library} PRIVATE -mprefer-vector-width=512 -Wno-maybe-uninitialized
                             -Wno-uninitialized)
    endif()
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${library}>)
  endforeach()

  target_sources(${target} PRIVATE ${independent} ${NUNCHI_PRODUCT_SOURCE})
  target_include_directories(${target} SYSTEM PRIVATE ${NUNCHI_PRODUCT_INCLUDE})
  target_link_libraries(${target} PRIVATE ${NUNCHI_PRODUCT_LIBRARY})
endfunction()
