# What `cmake --install` installs: the library with its headers, a CMake package and a pkg-config
# file for its users; the program with its man page and shell completion; the licence.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/nunchi)
install(TARGETS nunchi EXPORT nunchiTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT nunchiTargets NAMESPACE nunchi:: DESTINATION ${package_folder})
# Without the implementation of the kernels and headers that need those of other libraries.
install(DIRECTORY nunchi DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h"
        PATTERN "kernels/cpu" EXCLUDE PATTERN "kernels/cuda" EXCLUDE
        PATTERN "device/cuda/check.h" EXCLUDE PATTERN "text/sentencepiece_library.h" EXCLUDE)
configure_package_config_file(cmake/nunchiConfig.cmake.in ${PROJECT_BINARY_DIR}/nunchiConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/nunchiConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/nunchiConfig.cmake
              ${PROJECT_BINARY_DIR}/nunchiConfigVersion.cmake DESTINATION ${package_folder})

# The library is static, so its users link what it links.
set(NUNCHI_PC_LIBRARIES -lfmt -lyaml-cpp -lz ${NUNCHI_TEXT_LIBRARIES} ${NUNCHI_PRODUCT_LIBRARY})
if(NUNCHI_WITH_CUDA)
  list(APPEND NUNCHI_PC_LIBRARIES ${CUDA_cublasLt_LIBRARY} ${CUDA_cudart_static_LIBRARY} -lrt -ldl)
endif()
list(APPEND NUNCHI_PC_LIBRARIES ${OpenMP_CXX_FLAGS} -lpthread)
list(JOIN NUNCHI_PC_LIBRARIES " " NUNCHI_PC_LIBRARIES)
# The prefix, from the folder of the file: an installed tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
           BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE NUNCHI_PC_PREFIX)
configure_file(cmake/nunchi.pc.in nunchi.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/nunchi.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES LICENSE NOTICE THIRD_PARTY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(NUNCHI_PROGRAM)
  install(TARGETS nunchi_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # The program writes them from the descriptions of its options.
  foreach(page "${CMAKE_INSTALL_MANDIR}/man1/nunchi.1|help --man"
               "${CMAKE_INSTALL_DATADIR}/bash-completion/completions/nunchi|completion bash"
               "${CMAKE_INSTALL_DATADIR}/zsh/site-functions/_nunchi|completion zsh"
               "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d/nunchi.fish|completion fish")
    string(REPLACE "|" ";" page "${page}")
    list(POP_FRONT page file)
    cmake_path(GET file PARENT_PATH folder)
    cmake_path(GET file FILENAME name)
    install(CODE "
      file(MAKE_DIRECTORY \"${PROJECT_BINARY_DIR}/pages\")
      execute_process(COMMAND \"$<TARGET_FILE:nunchi_program>\" ${page}
                      OUTPUT_FILE \"${PROJECT_BINARY_DIR}/pages/${name}\"
                      COMMAND_ERROR_IS_FATAL ANY)
      file(INSTALL \"${PROJECT_BINARY_DIR}/pages/${name}\"
           DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${folder}\")")
  endforeach()
endif()
