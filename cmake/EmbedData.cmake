# embed_data(<target> <file>...): compiles the files into a static library that serves them by name through
# base/embedded.h. The bytes enter by the assembler's .incbin, so a megabyte of facts costs no compile time.
function(embed_data target)
  set(assembly "${CMAKE_CURRENT_BINARY_DIR}/${target}.S")
  set(table "${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp")
  set(asm_text "  .section .rodata\n")
  set(declarations "")
  set(rows "")
  set(index 0)
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME)
    get_filename_component(path ${file} ABSOLUTE)
    string(APPEND asm_text "  .global gw_data_${index}\ngw_data_${index}:\n  .incbin \"${path}\"\n"
                           "  .global gw_data_${index}_end\ngw_data_${index}_end:\n  .byte 0\n")
    string(APPEND declarations "extern const char gw_data_${index}[], gw_data_${index}_end[];\n")
    string(APPEND rows "    {\"${name}\", gw_data_${index}, gw_data_${index}_end},\n")
    list(APPEND paths ${path})
    math(EXPR index "${index} + 1")
  endforeach()
  string(APPEND asm_text "  .section .note.GNU-stack,\"\",@progbits\n")
  file(CONFIGURE OUTPUT ${assembly} CONTENT "${asm_text}" @ONLY)
  file(CONFIGURE OUTPUT ${table} @ONLY CONTENT
"#include \"base/embedded.h\"
extern \"C\" {
${declarations}}
namespace gpuwright {
namespace {
struct Row { std::string_view name; const char* begin; const char* end; };
constexpr Row kRows[] = {
${rows}};
}  // namespace
std::optional<std::string_view> embedded_data(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return std::string_view(row.begin, static_cast<std::size_t>(row.end - row.begin));
  return std::nullopt;
}
}  // namespace gpuwright
")
  set_source_files_properties(${assembly} PROPERTIES OBJECT_DEPENDS "${paths}")
  add_library(${target} STATIC ${assembly} ${table})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src)
endfunction()
