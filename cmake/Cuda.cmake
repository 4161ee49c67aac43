# Whether the CUDA kernels are built. Without them the program supports only the CPU.

include(${CMAKE_CURRENT_LIST_DIR}/CudaChoice.cmake)

set(NUNCHI_CUDA "auto" CACHE STRING
    "Build the CUDA kernels: auto (if this machine has nvcc and a GPU), on or off")
set(NUNCHI_CUDA_ARCHITECTURES "90a" CACHE STRING "GPU architectures to build for")

set(NUNCHI_CUDA_BUILD "")  # for nunchi --version
set(nvcc FALSE)
if(NOT NUNCHI_CUDA STREQUAL "off")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(nvcc TRUE)
  endif()
endif()
nunchi_find_gpu(gpu)
nunchi_choose_cuda(NUNCHI_WITH_CUDA reason CHOICE "${NUNCHI_CUDA}" NVCC ${nvcc} GPU ${gpu})

if(NUNCHI_WITH_CUDA)
  set(CMAKE_CUDA_ARCHITECTURES ${NUNCHI_CUDA_ARCHITECTURES})
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  # CMake 3.25 does not know nvcc's option for C++20.
  foreach(kind STANDARD EXTENSION)
    if(NOT CMAKE_CUDA20_${kind}_COMPILE_OPTION)
      set(CMAKE_CUDA20_${kind}_COMPILE_OPTION "-std=c++20")
    endif()
  endforeach()
  string(REPLACE ";" " " architectures "${NUNCHI_CUDA_ARCHITECTURES}")
  set(NUNCHI_CUDA_BUILD "${CMAKE_CUDA_COMPILER_VERSION} for ${architectures}")
  message(STATUS "CUDA: ${NUNCHI_CUDA_BUILD}; ${reason}")
else()
  message(STATUS "CUDA: none; ${reason}")
endif()

function(nunchi_add_cuda_kernels target)
  if(NOT NUNCHI_WITH_CUDA)
    return()
  endif()
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS nunchi/kernels/cuda/*.cu)
  target_sources(${target} PRIVATE ${kernels})
  target_link_libraries(${target} PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS})
  string(REPLACE ";" " " architectures "${NUNCHI_CUDA_ARCHITECTURES}")
  set_property(SOURCE nunchi/device/cuda/context.cpp APPEND PROPERTY COMPILE_DEFINITIONS
               "NUNCHI_CUDA_ARCHITECTURES=\"${architectures}\"")
endfunction()
