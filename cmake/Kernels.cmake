# CPU kernels are compiled once per instruction set and chosen when the program starts.

# Files that need no vector code of their own, or hand their work to a library.
set(NUNCHI_KERNELS_ONCE
    nunchi/kernels/cpu/copy.cpp
    nunchi/kernels/cpu/clip_scale.cpp
    nunchi/kernels/cpu/extend_slots.cpp
    nunchi/kernels/cpu/gelu_product.cpp
    nunchi/kernels/cpu/linear_gradient.cpp
    nunchi/kernels/cpu/norm_product.cpp
    nunchi/kernels/cpu/product_check.cpp
    nunchi/kernels/cpu/relative_bucket.cpp
    nunchi/kernels/cpu/search_steps.cpp
    nunchi/kernels/cpu/top_of_product.cpp)

function(nunchi_add_cpu_kernels target)
  file(GLOB versions CONFIGURE_DEPENDS nunchi/kernels/cpu/*.cpp)
  list(FILTER versions EXCLUDE REGEX "/product_(onednn|openblas).cpp$")
  foreach(once ${NUNCHI_KERNELS_ONCE})
    list(REMOVE_ITEM versions ${PROJECT_SOURCE_DIR}/${once})
  endforeach()

  set(isas portable)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND isas v2 v3 v4)
  endif()
  foreach(isa ${isas})
    set(library nunchi_kernels_${isa})
    add_library(${library} OBJECT ${versions})
    target_compile_definitions(${library} PRIVATE NUNCHI_ISA=${isa})
    target_link_libraries(${library} PRIVATE nunchi_options)
    target_compile_options(${library} PRIVATE -O3 -ffp-contract=fast -fno-math-errno
                           -fno-trapping-math)
    if(NOT isa STREQUAL "portable")
      target_compile_options(${library} PRIVATE -march=x86-64-${isa})
    endif()
    if(isa STREQUAL "v4")
      # g++ 12 takes its own AVX-512 header for a user of uninitialised values.
      target_compile_options(${library} PRIVATE -mprefer-vector-width=512 -Wno-maybe-uninitialized)
    endif()
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${library}>)
  endforeach()

  target_sources(${target} PRIVATE ${NUNCHI_KERNELS_ONCE} ${NUNCHI_PRODUCT_SOURCE})
  target_include_directories(${target} SYSTEM PRIVATE ${NUNCHI_PRODUCT_INCLUDE})
  target_link_libraries(${target} PRIVATE ${NUNCHI_PRODUCT_LIBRARY})
endfunction()
