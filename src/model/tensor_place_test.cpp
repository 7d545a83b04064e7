#include <gtest/gtest.h>

#include "model/weights_file.h"

namespace gpuwright::model {
namespace {

struct Case {
  const char* name;
  TensorRole role;
  std::int32_t layer;
};

void check(std::initializer_list<Case> cases) {
  for (const Case& row : cases) {
    const TensorPlace place = place_of(row.name);
    EXPECT_EQ(static_cast<int>(place.role), static_cast<int>(row.role)) << row.name;
    EXPECT_EQ(place.layer, row.layer) << row.name;
  }
}

using enum TensorRole;

// Names as they stand in the model.safetensors(.index.json) of the repositories named.
TEST(TensorPlace, LlamaAndItsKin) {
  check({
      // meta-llama/Llama-3.1-8B, microsoft/Phi-3-mini-4k-instruct, Qwen/Qwen3-8B
      {"model.embed_tokens.weight", token_embedding, -1},
      {"model.layers.31.self_attn.q_proj.weight", attention, 31},
      {"model.layers.0.self_attn.qkv_proj.weight", attention, 0},
      {"model.layers.0.self_attn.q_norm.weight", norm, 0},
      {"model.layers.0.mlp.gate_proj.weight", feed_forward, 0},
      {"model.layers.0.mlp.gate_up_proj.weight", feed_forward, 0},
      {"model.layers.7.post_attention_layernorm.weight", norm, 7},
      {"model.norm.weight", norm, -1},
      {"lm_head.weight", output_head, -1},
      // the consolidated files of Meta and Mistral; internlm/internlm2-7b
      {"tok_embeddings.weight", token_embedding, -1},
      {"layers.3.attention.wq.weight", attention, 3},
      {"layers.3.feed_forward.w2.weight", feed_forward, 3},
      {"layers.3.attention_norm.weight", norm, 3},
      {"output.weight", output_head, -1},
      {"model.layers.9.attention.wqkv.weight", attention, 9},
      {"model.tok_embeddings.weight", token_embedding, -1},
  });
}

TEST(TensorPlace, Mixtures) {
  check({
      // mistralai/Mixtral-8x7B-v0.1
      {"model.layers.4.block_sparse_moe.experts.7.w3.weight", expert, 4},
      {"model.layers.4.block_sparse_moe.gate.weight", router, 4},
      // Qwen/Qwen1.5-MoE-A2.7B, Qwen/Qwen3-30B-A3B
      {"model.layers.4.mlp.experts.59.down_proj.weight", expert, 4},
      {"model.layers.4.mlp.gate.weight", router, 4},
      {"model.layers.4.mlp.shared_expert.gate_proj.weight", shared_expert, 4},
      {"model.layers.4.mlp.shared_expert_gate.weight", router, 4},
      // deepseek-ai/DeepSeek-V3
      {"model.layers.60.mlp.experts.255.down_proj.weight_scale_inv", quantization, 60},
      {"model.layers.60.mlp.shared_experts.up_proj.weight", shared_expert, 60},
      {"model.layers.60.mlp.gate.e_score_correction_bias", router, 60},
      {"model.layers.60.self_attn.kv_a_proj_with_mqa.weight", attention_kv_a, 60},
      {"model.layers.60.self_attn.kv_a_layernorm.weight", norm, 60},
      {"model.layers.60.self_attn.kv_b_proj.weight", attention, 60},
      {"model.layers.61.eh_proj.weight", multi_token_prediction, -1},
      {"model.layers.61.shared_head.head.weight", multi_token_prediction, -1},
      {"model.layers.61.embed_tokens.weight", token_embedding, 61},
      {"model.layers.61.mlp.experts.0.up_proj.weight", expert, 61},
      // openai/gpt-oss-20b
      {"model.layers.2.mlp.experts.gate_up_proj_blocks", expert, 2},
      {"model.layers.2.mlp.experts.gate_up_proj_scales", quantization, 2},
      {"model.layers.2.mlp.experts.gate_up_proj_bias", expert, 2},
      {"model.layers.2.mlp.router.weight", router, 2},
      {"model.layers.2.self_attn.sinks", attention, 2},
      // meta-llama/Llama-4-Scout-17B-16E
      {"language_model.model.layers.2.feed_forward.experts.gate_up_proj", expert, 2},
      {"language_model.model.layers.2.feed_forward.shared_expert.up_proj.weight", shared_expert, 2},
      {"language_model.model.layers.2.feed_forward.router.weight", router, 2},
      {"vision_model.model.layers.2.self_attn.q_proj.weight", vision, -1},
      {"multi_modal_projector.linear_1.weight", vision, -1},
      // databricks/dbrx-base
      {"transformer.blocks.1.ffn.experts.mlp.w1", expert, 1},
      {"transformer.blocks.1.norm_attn_norm.attn.Wqkv.weight", attention, 1},
      {"transformer.blocks.1.norm_attn_norm.norm_1.weight", norm, 1},
      // ibm-granite/granite-3.0-1b-a400m-base
      {"model.layers.5.block_sparse_moe.input_linear.weight", expert, 5},
      {"model.layers.5.block_sparse_moe.router.layer.weight", router, 5},
  });
}

TEST(TensorPlace, OlderModuleNames) {
  check({
      // openai-community/gpt2, EleutherAI/pythia-1b, facebook/opt-1.3b, bigscience/bloom-560m, tiiuae/falcon-7b
      {"wte.weight", token_embedding, -1},
      {"wpe.weight", position_embedding, -1},
      {"h.11.attn.c_attn.weight", attention, 11},
      {"h.11.attn.c_proj.weight", attention, 11},
      {"h.11.mlp.c_proj.weight", feed_forward, 11},
      {"h.11.ln_2.weight", norm, 11},
      {"ln_f.weight", norm, -1},
      {"transformer.h.3.attn.c_attn.weight", attention, 3},
      {"gpt_neox.embed_in.weight", token_embedding, -1},
      {"gpt_neox.layers.15.attention.query_key_value.weight", attention, 15},
      {"gpt_neox.layers.15.attention.dense.weight", attention, 15},
      {"gpt_neox.layers.15.mlp.dense_4h_to_h.bias", feed_forward, 15},
      {"gpt_neox.final_layer_norm.weight", norm, -1},
      {"embed_out.weight", output_head, -1},
      {"model.decoder.embed_positions.weight", position_embedding, -1},
      {"model.decoder.layers.2.fc1.weight", feed_forward, 2},
      {"model.decoder.layers.2.self_attn.out_proj.weight", attention, 2},
      {"model.decoder.layers.2.self_attn_layer_norm.weight", norm, 2},
      {"word_embeddings_layernorm.weight", norm, -1},
      {"h.0.self_attention.query_key_value.weight", attention, 0},
      {"transformer.h.0.self_attention.dense.weight", attention, 0},
      {"transformer.word_embeddings.weight", token_embedding, -1},
      // THUDM/chatglm3-6b: its decoder is called encoder
      {"transformer.encoder.layers.5.self_attention.query_key_value.weight", attention, 5},
      {"transformer.embedding.word_embeddings.weight", token_embedding, -1},
      {"transformer.encoder.layers.5.mlp.dense_h_to_4h.weight", feed_forward, 5},
  });
}

TEST(TensorPlace, RecurrentAndHybrid) {
  check({
      // state-spaces/mamba-130m-hf
      {"backbone.embeddings.weight", token_embedding, -1},
      {"backbone.layers.3.mixer.in_proj.weight", recurrent, 3},
      {"backbone.layers.3.mixer.A_log", recurrent, 3},
      {"backbone.layers.3.mixer.D", recurrent, 3},
      {"backbone.layers.3.mixer.conv1d.bias", recurrent, 3},
      {"backbone.norm_f.weight", norm, -1},
      // nvidia/Nemotron-H-8B-Base-8K: one "mixer" for all kinds
      {"backbone.layers.7.mixer.q_proj.weight", attention, 7},
      {"backbone.layers.8.mixer.up_proj.weight", feed_forward, 8},
      {"backbone.layers.8.mixer.experts.3.up_proj.weight", expert, 8},
      {"backbone.layers.8.mixer.gate.weight", router, 8},
      // ai21labs/Jamba-v0.1, ibm-granite/granite-4.0-h-tiny, tiiuae/Falcon-H1-7B-Base
      {"model.layers.0.mamba.x_proj.weight", recurrent, 0},
      {"model.layers.0.mamba.dt_layernorm.weight", norm, 0},
      {"model.layers.1.feed_forward.experts.15.gate_proj.weight", expert, 1},
      {"model.layers.1.feed_forward.router.weight", router, 1},
      {"model.layers.0.mamba.in_proj.weight", recurrent, 0},
      {"model.layers.0.shared_mlp.input_linear.weight", shared_expert, 0},
      {"model.layers.0.feed_forward.gate_proj.weight", feed_forward, 0},
      // Qwen/Qwen3-Next-80B-A3B-Instruct
      {"model.layers.0.linear_attn.in_proj_qkvz.weight", recurrent, 0},
      {"model.layers.0.linear_attn.out_proj.weight", recurrent, 0},
      {"model.layers.0.linear_attn.norm.weight", norm, 0},
      {"model.layers.3.self_attn.o_proj.weight", attention, 3},
      {"mtp.layers.0.mlp.experts.17.up_proj.weight", multi_token_prediction, -1},
      {"mtp.fc.weight", multi_token_prediction, -1},
      // LiquidAI/LFM2-1.2B, moonshotai/Kimi-Linear-48B-A3B-Instruct
      {"model.layers.0.conv.in_proj.weight", recurrent, 0},
      {"model.layers.0.self_attn.q_conv1d.weight", recurrent, 0},
  });
}

TEST(TensorPlace, EncodersAndTowers) {
  check({
      // google-bert/bert-base-uncased
      {"bert.embeddings.word_embeddings.weight", token_embedding, -1},
      {"bert.embeddings.position_embeddings.weight", position_embedding, -1},
      {"bert.embeddings.LayerNorm.weight", norm, -1},
      {"bert.encoder.layer.11.attention.self.query.weight", encoder, 11},
      {"bert.encoder.layer.11.output.LayerNorm.weight", encoder, 11},
      {"cls.predictions.decoder.weight", output_head, -1},
      // google-t5/t5-small
      {"shared.weight", token_embedding, -1},
      {"encoder.block.0.layer.0.SelfAttention.q.weight", encoder, 0},
      {"decoder.block.5.layer.0.SelfAttention.q.weight", attention, 5},
      {"decoder.block.5.layer.1.EncDecAttention.k.weight", attention, 5},
      {"decoder.block.5.layer.2.DenseReluDense.wi_0.weight", feed_forward, 5},
      {"decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", attention, 0},
      // openai/whisper-tiny
      {"model.encoder.layers.3.self_attn.k_proj.weight", encoder, 3},
      {"model.encoder.conv1.weight", encoder, -1},
      {"model.decoder.layers.3.encoder_attn.k_proj.weight", attention, 3},
      {"model.decoder.embed_positions.weight", position_embedding, -1},
      {"proj_out.weight", output_head, -1},
      // openai/clip-vit-base-patch32, google/vit-base-patch16-224
      {"text_model.embeddings.token_embedding.weight", token_embedding, -1},
      {"text_model.encoder.layers.0.mlp.fc1.weight", encoder, 0},
      {"vision_model.encoder.layers.0.mlp.fc1.weight", vision, -1},
      {"vision_model.embeddings.position_embedding.weight", vision, -1},
      {"vit.encoder.layer.0.attention.attention.query.weight", encoder, 0},
      {"vit.embeddings.patch_embeddings.projection.weight", encoder, -1},
      // Qwen/Qwen2.5-VL-7B-Instruct, google/gemma-3-4b-it, OpenGVLab/InternVL2-8B
      {"visual.blocks.3.attn.qkv.weight", vision, -1},
      {"visual.merger.mlp.0.weight", vision, -1},
      {"vision_tower.vision_model.encoder.layers.0.self_attn.q_proj.weight", vision, -1},
      {"mlp1.1.weight", vision, -1},
  });
}

TEST(TensorPlace, CompanyOfQuantisedWeights) {
  check({
      {"model.layers.0.self_attn.q_proj.qweight", attention, 0},
      {"model.layers.0.self_attn.q_proj.qzeros", quantization, 0},
      {"model.layers.0.self_attn.q_proj.scales", quantization, 0},
      {"model.layers.0.self_attn.q_proj.g_idx", quantization, 0},
      {"model.layers.0.mlp.up_proj.weight.absmax", quantization, 0},
      {"model.layers.0.mlp.up_proj.weight.nested_absmax", quantization, 0},
      {"model.layers.0.mlp.up_proj.weight.quant_state.bitsandbytes__nf4", quantization, 0},
      {"model.layers.0.mlp.up_proj.SCB", quantization, 0},
      {"model.layers.0.mlp.up_proj.weight_packed", feed_forward, 0},
      {"model.layers.0.mlp.up_proj.weight_shape", quantization, 0},
      {"model.layers.0.mlp.up_proj.input_scale", quantization, 0},
      {"layers.0.attn.wq_a.scale", quantization, 0},
      {"layers.0.ffn.experts.0.w1.scale", quantization, 0},
  });
}

// gguf-py/gguf/constants.py, TENSOR_NAMES
TEST(TensorPlace, Gguf) {
  check({
      {"token_embd.weight", token_embedding, -1},
      {"output.weight", output_head, -1},
      {"output_norm.weight", norm, -1},
      {"rope_freqs.weight", other, -1},
      {"blk.12.attn_q.weight", attention, 12},
      {"blk.12.attn_norm.weight", norm, 12},
      {"blk.12.attn_kv_a_mqa.weight", attention_kv_a, 12},
      {"blk.12.attn_k_b.weight", attention, 12},
      {"blk.12.ffn_down.weight", feed_forward, 12},
      {"blk.12.ffn_down_exps.weight", expert, 12},
      {"blk.12.ffn_up.3.weight", expert, 12},
      {"blk.12.ffn_gate_shexp.weight", shared_expert, 12},
      {"blk.12.ffn_gate_inp.weight", router, 12},
      {"blk.12.exp_probs_b.bias", router, 12},
      {"blk.12.ssm_conv1d.weight", recurrent, 12},
      {"blk.12.ssm_a", recurrent, 12},
      {"blk.12.time_mix_w1.weight", recurrent, 12},
      {"blk.61.nextn.eh_proj.weight", multi_token_prediction, -1},
      {"enc.blk.0.attn_q.weight", encoder, 0},
      {"dec.blk.0.cross_attn_k.weight", attention, 0},
      {"v.blk.0.attn_q.weight", vision, -1},
      {"mm.0.weight", vision, -1},
  });
}

TEST(TensorPlace, AnythingElse) {
  check({{"", other, -1},
         {".", other, -1},
         {"....", other, -1},
         {"layers.99999999999999999999.mlp", feed_forward, -1},
         {"model.layers.-3.mlp.up_proj.weight", feed_forward, -1},
         {"weight", other, -1}});
}

// "v", "a" and "mm" are towers where a path follows them (tensor names of llama.cpp's clip.cpp), not by themselves.
TEST(TensorPlace, ShortNamesAreNoTowers) {
  for (const char* name : {"a", "v", "mm", "a.weight", "v.bias"}) EXPECT_EQ(place_of(name).role, TensorRole::other);
  for (const char* name : {"v.blk.0.attn_q.weight", "mm.0.weight", "a.conv1d.0.weight"})
    EXPECT_EQ(place_of(name).role, TensorRole::vision);
}

}  // namespace
}  // namespace gpuwright::model
