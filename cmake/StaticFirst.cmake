# gw_static_first(<name> HEADER <header>): the target gpuwright::<name> is lib<name>.a, or lib<name>.so where the system
# has no archive.
function(gw_static_first name)
  cmake_parse_arguments(LIBRARY "" "HEADER" "" ${ARGN})
  find_library(GPUWRIGHT_${name}_LIBRARY NAMES lib${name}.a ${name} REQUIRED)
  find_path(GPUWRIGHT_${name}_INCLUDE ${LIBRARY_HEADER} REQUIRED)
  add_library(gpuwright::${name} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(gpuwright::${name} PROPERTIES
    IMPORTED_LOCATION "${GPUWRIGHT_${name}_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${GPUWRIGHT_${name}_INCLUDE}"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endfunction()
