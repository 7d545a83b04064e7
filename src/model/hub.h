// Models that are elsewhere: hf://org/name[@revision][/file] and https://host/.../file. Only headers travel, by byte
// ranges; what travelled is kept in cache_directory()/hub.
//
// Environment, as huggingface_hub reads it: HF_ENDPOINT, HF_TOKEN (or the file HF_TOKEN_PATH, $HF_HOME/token,
// ~/.cache/huggingface/token), HF_HUB_OFFLINE. The token is sent to the endpoint only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/load.h"

namespace gpuwright::model {

struct HubReference {
  std::string repository;         // "org/name", or "gpt2"
  std::string revision = "main";  // branch, tag or commit
  std::string file;               // empty: the repository
};

// "hf://org/name@rev", and pages of the hub ("https://huggingface.co/org/name/blob/main/model.gguf").
// bad_input when a name holds what a name cannot hold.
Result<HubReference> parse_hub_reference(std::string_view text, std::string_view endpoint);

bool is_remote(std::string_view text);
Result<Model> load_remote(std::string_view reference, const LoadOptions& options);

}  // namespace gpuwright::model
