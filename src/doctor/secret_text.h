// What in a line of text is a secret or names somebody, by its looks alone: keys by their known beginnings, what is
// assigned to a word like password, home folders, serial numbers, the names of processes in the kernel's log.
#pragma once

#include <string>
#include <string_view>

namespace gpuwright::doctor {

// "NVIDIA_API_KEY", "HF_TOKEN", "registryAuth": whoever names a thing so keeps it to himself.
bool tells_a_secret(std::string_view name);

// The length of the key at the begin ("hf_...", "ghp_...", "AKIA..."); 0 where there is none.
std::size_t key_at(std::string_view text);

// Where text begins with a folder of home folders ("/home/", "/scratch/") and a name: where the name begins and ends.
struct HomeName {
  std::size_t begin = 0, end = 0;
};
HomeName home_name_at(std::string_view text);

std::string without_secret_values(std::string_view line);
std::string without_serial_numbers(std::string_view line);
std::string without_process_names(std::string_view line);

}  // namespace gpuwright::doctor
