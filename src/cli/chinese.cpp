#include "cli/chinese.h"

namespace gpuwright::cli {
namespace {

constexpr Translation kChinese[] = {
    // The pages themselves.
    {"one toolset for GPU work in deep learning", "深度学习 GPU 工作的一站式工具"},
    {"Usage: ", "用法："},
    {"Usage: gpuwright COMMAND [ARGUMENTS] [OPTIONS]", "用法：gpuwright 命令 [参数] [选项]"},
    {"Commands", "命令"},
    {"Arguments", "参数"},
    {"Options", "选项"},
    {"Options of every command", "所有命令通用的选项"},
    {"Examples", "示例"},
    {"Exit codes", "退出码"},
    {"; may be given several times", "；可多次给出"},
    {" (default: {})", "（默认：{}）"},
    {"'gpuwright help COMMAND' explains a command. Exit codes: 0 done, 1 the answer is no, 2 wrong words or input, 3 "
     "something is missing or unreachable, 4 a fault of gpuwright.",
     "“gpuwright help 命令”给出该命令的说明。退出码：0 完成，1 答案是“不行”，2 参数或输入有误，3 "
     "缺少某样东西或无法访问，4 gpuwright 自身的故障。"},
    {"0  done", "0  完成"},
    {"2  the words of the command or its input are wrong", "2  参数或输入有误"},
    {"3  something needed is missing or unreachable, or the answer could not be written",
     "3  缺少某样东西、无法访问，或答案写不出去"},
    // Options of every command.
    {"answer in JSON, with a versioned schema", "以 JSON 回答，带版本化的 schema"},
    {"no colours (also: set NO_COLOR)", "不使用颜色（也可设置 NO_COLOR）"},
    {"language of the help pages", "帮助页面的语言"},
    {"explain the command", "说明该命令"},
    {"print the version", "打印版本号"},
    // help, version.
    {"Explain a command", "说明一个命令"},
    {"Print the version", "打印版本号"},
    {"Shows what a command takes, with examples. Without a command it lists all of them.",
     "显示命令的参数与示例；不给命令时列出全部命令。"},
    {"the command's name, in one or two words", "命令名，一个或两个词"},
    // fit.
    {"Will this model, served this way, fit on that GPU", "这个模型，这样部署，放得进那块 GPU 吗"},
    {"file, folder, hf://org/name, preset or size", "文件、目录、hf://组织/名称、内置名称或规模"},
    {"Where", "放在哪里"},
    {"How", "怎样运行"},
    {"Learn from a run", "从实际运行中学习"},
    {"the GPUs of this machine, with the memory that is free now (same as --gpu here)",
     "本机的 GPU，按此刻的空闲显存计（同 --gpu here）"},
    {"compare the prediction with a log of llama.cpp, ollama, vLLM, torch or nvidia-smi; model and settings are the "
     "log's "
     "own where not given (-: standard input)",
     "把预测与 llama.cpp、ollama、vLLM、torch 或 nvidia-smi 的日志对照；未给出的模型和设置取自日志（- 表示标准输入）"},
    {"keep what the log shows as a correction for this engine and GPU", "把日志显示的差异保存为该引擎和 GPU 的修正"},
    {"list the corrections that are kept", "列出已保存的修正"},
    {"drop correction N of that list", "删除该列表中的第 N 条修正"},
    {"Question", "问什么"},
    {"llama.cpp and ollama", "llama.cpp 与 ollama"},
    {"vLLM and SGLang", "vLLM 与 SGLang"},
    {"a GPU of the catalogue, NAMExN for several, NAME:PROFILE for a MIG slice, or a size (24GiB)",
     "目录中的 GPU；NAMExN 表示多块，NAME:PROFILE 表示 MIG 切片，也可只给容量（24GiB）"},
    {"memory kept free on every GPU", "每块 GPU 上预留不用的显存"},
    {"split every layer over N GPUs", "把每一层切分到 N 块 GPU"},
    {"split the layers over N groups of GPUs", "把各层分给 N 组 GPU"},
    {"all that are named", "所有列出的 GPU"},
    {"llama.cpp, ollama, vllm, sglang or transformers", "llama.cpp、ollama、vllm、sglang 或 transformers"},
    {"llama.cpp for GGUF, else vllm", "GGUF 用 llama.cpp，其余用 vllm"},
    {"context of a sequence; for llama.cpp of all sequences together",
     "单个序列的上下文长度；对 llama.cpp 是所有序列之和"},
    {"tokens of the prompt (transformers)", "提示词的 token 数（transformers）"},
    {"tokens to generate (transformers)", "要生成的 token 数（transformers）"},
    {"sequences at once (default 1)", "同时处理的序列数（默认 1）"},
    {"weights in this format instead of their own: Q4_K_M, bnb-nf4, fp8, awq-int4, ...",
     "改用这种权重格式：Q4_K_M、bnb-nf4、fp8、awq-int4 等"},
    {"storage type of keys and values: f16, bf16, fp8, q8_0, ...", "键和值的存储类型：f16、bf16、fp8、q8_0 等"},
    {"storage type of keys", "键的存储类型"},
    {"storage type of values", "值的存储类型"},
    {"price an unknown architecture as full attention instead of refusing it",
     "未知架构按完整注意力估算上限，而不是拒绝"},
    {"of a repository with several quantisations, this one", "仓库含多种量化时，选这一种"},
    {"the largest context, batch or number of GPU layers that fits", "放得下的最大上下文、批大小或 GPU 层数"},
    {"the smallest GPUs of the catalogue that hold it", "目录中放得下的最小 GPU"},
    {"treat a tight fit as no", "“刚好放下”也算放不下"},
    {"print each formula with its numbers and source", "打印每个公式、数值与出处"},
    {"layers on the GPUs, counted from the last; the output layer is one (default all)",
     "放在 GPU 上的层数，从最后一层数起，输出层也算一层（默认全部）"},
    {"physical batch (default 512)", "物理批大小（默认 512）"},
    {"shares of the GPUs", "各 GPU 的份额"},
    {"one cache for all sequences", "所有序列共用一个缓存"},
    {"full-length cache for sliding-window layers", "滑动窗口层也用全长缓存"},
    {"keep the KV cache in host memory", "KV 缓存留在主机内存"},
    {"experts of the first N layers stay on the host", "前 N 层的专家留在主机"},
    {"vision projector", "视觉投影器"},
    {"share of each GPU that the engine takes", "引擎占用每块 GPU 的比例"},
    {"tokens scheduled in one step", "一步调度的 token 数"},
    {"sequences scheduled at once", "同时调度的序列数"},
    {"tokens of a cache block", "一个缓存块的 token 数"},
    {"no CUDA graphs", "不用 CUDA graph"},
    {"memory for the cache as a log printed it", "日志中打印的缓存显存"},
    {"logits of every prompt position are kept", "保留提示词每个位置的 logits"},
    {"0  it fits, or fits tightly", "0  放得下，或刚好放下"},
    {"1  it does not fit; with --strict also a tight fit", "1  放不下；加 --strict 时刚好放下也算"},
    // gpus.
    {"List GPUs: all that gpuwright knows, or those of this machine", "列出 GPU：收录的全部，或本机的"},
    {"Show all that is known of a GPU, with sources", "显示一块 GPU 的全部已知信息及出处"},
    {"Compare GPUs: figures, ratios, and what each cannot do", "对比 GPU：数字、比值、各自做不到什么"},
    {"only GPUs that satisfy it; several must all hold", "只列满足条件的 GPU；多个条件须同时满足"},
    {"order by a field, -FIELD for descending", "按字段排序，-FIELD 为降序"},
    {"vendor, architecture, year", "厂商、架构、年份"},
    {"at most N rows", "最多 N 行"},
    {"the GPUs of this machine, from the PCI bus; needs no driver", "本机的 GPU，从 PCI 总线读取，无需驱动"},
    {"with --here: look under DIR instead of /", "配合 --here：在 DIR 下查找而不是 /"},
    {"what each architecture brought", "每代架构带来了什么"},
    {"name or id of a GPU", "GPU 的名称或 id"},
    {"names or ids of GPUs", "多块 GPU 的名称或 id"},
    {"0  also when nothing matches or no GPU is here", "0  没有匹配或本机没有 GPU 时也是"},
    // model.
    {"Describe a model: layers, caches, weights", "描述一个模型：各层、缓存、权重"},
    {"List the models that are known by name", "列出内置的模型名称"},
};

}  // namespace

std::span<const Translation> chinese() {
  return kChinese;
}

}  // namespace gpuwright::cli
