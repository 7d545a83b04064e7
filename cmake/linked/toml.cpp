// toml++ from its headers, compiled once for all who include them with TOML_HEADER_ONLY=0.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
