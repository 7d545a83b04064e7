// fuzz_seeds DIRECTORY: writes DIRECTORY/TARGET/NAME for the targets whose seeds are binary. Seeds that are text lie
// under fuzz/seeds/TARGET/.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/file.h"
#include "doctor/testing/elf_builder.h"
#include "model/testing/gguf_builder.h"
#include "model/testing/onnx_builder.h"

namespace {

using namespace gpuwright;
using model::testing::GgufBuilder;
using model::testing::small_llama;

GgufBuilder hybrid() {
  GgufBuilder file;
  file.text("general.architecture", "qwen35").u32("qwen35.block_count", 5).u32("qwen35.embedding_length", 64);
  file.u32("qwen35.nextn_predict_layers", 1).u32("qwen35.attention.head_count", 4).u32("qwen35.ssm.inner_size", 64);
  file.u32("qwen35.ssm.state_size", 16).u32("qwen35.ssm.time_step_rank", 4).u32("qwen35.ssm.group_count", 2);
  file.u32("qwen35.ssm.conv_kernel", 4).u32_array("qwen35.attention.head_count_kv", {0, 0, 0, 2, 2});
  return file.f32_tensor("blk.0.ssm_conv1d.weight", {4, 4}).f32_tensor("blk.3.attn_q.weight", {4, 4});
}

GgufBuilder windowed() {
  GgufBuilder file;
  file.text("general.architecture", "gemma4").u32("gemma4.block_count", 3).u32("gemma4.embedding_length", 64);
  file.u32("gemma4.attention.head_count", 4).u32("gemma4.attention.sliding_window", 16);
  file.u32("gemma4.attention.shared_kv_layers", 1).u32("gemma4.attention.key_length_swa", 8);
  file.boolean_array("gemma4.attention.sliding_window_pattern", {true, false, true});
  return file.tensor("blk.0.attn_q.weight", {256, 2}, 12, 288).tensor("other", {16}, 200, 64);
}

GgufBuilder projector() {
  GgufBuilder file;
  file.text("general.architecture", "clip").u32("clip.vision.block_count", 2).u32("clip.vision.image_size", 28);
  return file.u32("clip.vision.patch_size", 14).f16_tensor("v.blk.0.attn_q.weight", {8, 8});
}

GgufBuilder first_shard() {
  return small_llama().u16("split.no", 0).u16("split.count", 2).i32("split.tensors.count", 30);
}

std::string external() {
  namespace onnx = model::testing::onnx;
  onnx::Message graph;
  graph.message(5, onnx::external_tensor("a", 1, {16}, "data", "64", "64"));
  return onnx::model(graph).str();
}

bool write(const std::string& folder, std::string_view name, const std::string& bytes) {
  std::filesystem::create_directories(folder);
  return write_file_atomically(fmt::format("{}/{}", folder, name), bytes).has_value();
}

bool write_libraries(const std::string& folder) {
  using namespace doctor::testing;  // NOLINT: these two builders
  const std::string library = build_elf_from(
      "soname=liba.so.1 needed=libc10.so,libc.so.6 runpath=$ORIGIN,/usr/lib exports=f,g,h imports=i,j sm=80,90a ptx=90 "
      "versions=A_1,A_2 wants=libstdc++.so.6:GLIBCXX_3.4.29,libc.so.6:GLIBC_2.17 containers=2");
  const std::string codes = build_fatbin({*doctor::gpu_code_named("sm_75"), *doctor::gpu_code_named("compute_120")});
  return write(folder + "/elf", "library", library) && write(folder + "/fatbin", "two", codes + codes);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fmt::print(stderr, "usage: fuzz_seeds DIRECTORY\n"), 2;
  const std::string gguf = std::string(argv[1]) + "/gguf", onnx = std::string(argv[1]) + "/onnx";
  bool done = true;
  const std::string plain(1, '\0'), bound(1, '\1');
  done &= write(gguf, "llama", plain + small_llama().file());
  done &= write(gguf, "llama-big-endian", plain + small_llama(3, true).file());
  done &= write(gguf, "llama-v2", bound + small_llama(2).file());
  done &= write(gguf, "hybrid", plain + hybrid().file());
  done &= write(gguf, "windowed", bound + windowed().file());
  done &= write(gguf, "projector", plain + projector().file());
  done &= write(gguf, "shard", plain + first_shard().file());
  done &= write(onnx, "everything", model::testing::onnx::small_model());
  done &= write(onnx, "external", external());
  done &= write_libraries(argv[1]);
  return done ? 0 : 1;
}
