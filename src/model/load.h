// The door of the room: from what a user types to a Model.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "model/model.h"

namespace gpuwright::model {

struct LoadOptions {
  // Price an architecture that is not known as full attention everywhere instead of refusing it.
  bool upper_bound = false;
  // Of a GGUF repository with several quantisations, the one wanted: "Q4_K_M".
  std::string variant;
  // Called with what is being fetched or read, for progress on slow sources; may be empty.
  std::function<void(std::string_view)> progress;
};

// Accepts, in this order: an existing file (*.gguf, *.safetensors, *.onnx, *.bin, config.json, *.index.json), an
// existing folder, hf://org/name[@revision], https://..., a preset name ("llama-3.1-8b", near misses suggested), or a
// plain size ("7B": assumptions are recorded in the Model).
// Errors: not_found (no such file or preset), bad_input (contents), unsupported (unknown architecture without
// upper_bound; a pickle without config), unavailable (network).
Result<Model> load(std::string_view reference, const LoadOptions& options = {});

// The files of one model, wherever they are. Names are relative and never leave the folder.
// Thread-safe.
class ModelFiles {
 public:
  virtual ~ModelFiles() = default;
  virtual const std::string& name() const = 0;                // of the folder or repository, for messages
  virtual Result<std::vector<std::string>> list() const = 0;  // sorted file names
  virtual Result<std::unique_ptr<ByteSource>> open(const std::string& file) const = 0;  // not_found when absent
  // How many files are worth opening at once: processors for a disk, more where each answer travels.
  virtual int concurrency() const { return 2; }
};

std::unique_ptr<ModelFiles> local_folder(std::string path);

// A folder or repository: GGUF, ONNX, safetensors with config.json, or config.json alone. config.json gives the
// layers, headers the tensors; where both are there they are checked against each other.
Result<Model> load_folder(const ModelFiles& files, const LoadOptions& options);

}  // namespace gpuwright::model
