// The program: hands its words and streams to the command line of cli/.
#include <iostream>
#include <string>
#include <vector>

#include "cli/command.h"

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return gpuwright::cli::run(words, {std::cout, std::cerr});
}
