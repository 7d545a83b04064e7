# The C++ libraries that the program stands on become part of it: gpuwright_fmt, gpuwright_toml, and by gw_link_runtime
# the compiler's own. As shared libraries they cost every start a third of its time (0.7 of 2.2 ms: mapping six files
# and looking up the two thousand symbols of libstdc++). Debian has fmt and toml++ as shared libraries and headers only,
# so they are compiled from the headers.
include(CheckCXXSourceCompiles)
find_package(fmt REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(tomlplusplus REQUIRED tomlplusplus)

if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  add_library(gpuwright_fmt STATIC cmake/linked/fmt.cpp)
  target_include_directories(gpuwright_fmt SYSTEM PUBLIC $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(gpuwright_fmt PUBLIC $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
  target_link_libraries(gpuwright_fmt PRIVATE gpuwright_options)
  set_target_properties(gpuwright_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)
else()
  add_library(gpuwright_fmt INTERFACE)
  target_link_libraries(gpuwright_fmt INTERFACE fmt::fmt)
endif()

add_library(gpuwright_toml STATIC cmake/linked/toml.cpp)
target_include_directories(gpuwright_toml SYSTEM PUBLIC ${tomlplusplus_INCLUDE_DIRS})
target_compile_options(gpuwright_toml PUBLIC ${tomlplusplus_CFLAGS_OTHER})  # -DTOML_HEADER_ONLY=0
target_link_libraries(gpuwright_toml PRIVATE gpuwright_options)
set_target_properties(gpuwright_toml PROPERTIES POSITION_INDEPENDENT_CODE ON)

# Built as Debian builds its own: the parser's asserts are about its state after an error was already noted, and end the
# program on malformed keys; its table of blanks ends in an unreachable that U+FEFE reaches. Neither is a fault of ours
# for sanitizers to stop at.
set_source_files_properties(cmake/linked/toml.cpp PROPERTIES COMPILE_DEFINITIONS NDEBUG
                                                              COMPILE_OPTIONS -fno-sanitize=all)

# Some systems keep libstdc++.a in a package of its own.
set(CMAKE_REQUIRED_LINK_OPTIONS -static-libstdc++ -static-libgcc)
check_cxx_source_compiles("#include <iostream>\nint main() { std::cout << 1; }" GPUWRIGHT_HAS_STATIC_RUNTIME)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
function(gw_link_runtime target)
  if(GPUWRIGHT_HAS_STATIC_RUNTIME AND NOT GPUWRIGHT_SANITIZE)  # sanitizers replace parts of it
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()
