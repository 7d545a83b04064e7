# Build options and the warning set that every target of the project shares.
option(GPUWRIGHT_TESTS "Build the unit tests" ON)
option(GPUWRIGHT_BENCH "Build the programs under bench/" ON)
option(GPUWRIGHT_FUZZ "Build the fuzz targets (clang only)" OFF)
option(GPUWRIGHT_WERROR "Treat warnings as errors" OFF)
set(GPUWRIGHT_SANITIZE "" CACHE STRING "Sanitizers for every target, e.g. address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(gpuwright_options INTERFACE)
target_compile_options(gpuwright_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion>
  # __extension__ statement expressions (GW_TRY) are accepted by g++ and clang; clang still warns about them.
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-gnu-statement-expression>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 takes its own std::string::insert for overlapping copies at -O2 (GCC bug 105651).
  target_compile_options(gpuwright_options INTERFACE -Wno-restrict)
endif()
if(GPUWRIGHT_WERROR)
  target_compile_options(gpuwright_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(GPUWRIGHT_SANITIZE)
  target_compile_options(gpuwright_options INTERFACE
    -fsanitize=${GPUWRIGHT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(gpuwright_options INTERFACE -fsanitize=${GPUWRIGHT_SANITIZE})
endif()
if(GPUWRIGHT_FUZZ)
  target_compile_options(gpuwright_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
