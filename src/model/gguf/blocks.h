// What the tensors of each decoder block tell about it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/gguf/header.h"
#include "model/model.h"

namespace gpuwright::model::gguf {

struct Block {
  bool seen = false;
  bool attention = false;
  bool recurrent = false;
  std::int64_t key_rows = 0;  // of attn_k.weight: kv_heads * key_dim; 0 when there is none
  FeedForward feed_forward;   // experts_per_token is not in the shapes
};

// One element a block below `count`; tensors of blocks beyond are passed over.
std::vector<Block> blocks_of(const std::vector<TensorInfo>& tensors, std::int64_t count);

}  // namespace gpuwright::model::gguf
