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
    {": ", "："},
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
    {"language of help, of explain's and run's answers, and of what is fixed in fit's",
     "帮助的语言，也用于 explain 与 run 的答案，以及 fit 答案中的固定词句"},
    {"explain the command", "说明该命令"},
    {"print the version", "打印版本号"},
    // help, version.
    {"Explain a command", "说明一个命令"},
    {"Print the version", "打印版本号"},
    {"Shows what a command takes, with examples. Without a command it lists all of them.",
     "显示命令的参数与示例；不给命令时列出全部命令。"},
    {"the command's name, in one or two words", "命令名，一个或两个词"},
    // run.
    {"Run a job, and tell what it did to the GPUs or why it failed", "运行作业，并说明它如何使用 GPU 或为何失败"},
    {"Starts COMMAND as it stands, without a shell, and passes its output on unchanged, on a terminal as on one. While "
     "it runs the GPUs are looked at about once a second, which takes far less than a hundredth of a processor. When "
     "it fails, what it printed is explained (as 'gpuwright explain' does; where memory ran out, 'fit' computes what "
     "would fit from the command line), with the memory that it held to the moment of its death. When it ends well, "
     "a few lines on standard error tell how much memory of the card it took, how busy the GPU was, and what could be "
     "better.\n\n"
     "The job's processes are known by descent, also when they become daemons. Nothing is ever killed: Ctrl-C goes "
     "to the job as always, and signals that are sent to gpuwright (TERM, HUP, INT, QUIT, USR1, USR2) are passed on. "
     "With --json the report on standard error is JSON.",
     "按原样启动命令，不经过 shell，输出原样传出，在终端上仍视为终端。运行期间约每秒查看一次 "
     "GPU，开销远低于一个处理器的"
     "百分之一。失败时解释其输出（同 gpuwright explain；显存不足时由 fit "
     "根据命令行算出可行的设置），并给出直到终止时刻的"
     "显存曲线。正常结束时，在标准错误上用几行说明占用了多少显存、GPU 有多忙、哪里可以改进。\n\n"
     "作业的进程按血缘识别，成为守护进程后也一样。从不杀死任何进程：Ctrl-C 照常传给作业，发给 gpuwright "
     "的信号（TERM、HUP、"
     "INT、QUIT、USR1、USR2）会转发。使用 --json 时标准错误上的报告为 JSON。"},
    {"program and arguments; its options are its own", "程序及其参数；其后的选项属于该程序"},
    {"write the whole report there as JSON (gpuwright.run/1)", "把完整报告以 JSON 写入该文件（gpuwright.run/1）"},
    {"say nothing when the job ended well", "作业正常结束时不输出报告"},
    {"between two looks at the GPUs (default: 0.25 in the first 10 s, then 1)",
     "两次查看 GPU 的间隔（默认：前 10 秒为 0.25，其后为 1）"},
    {"the job's own exit code, 128 + N when signal N ended it", "作业自己的退出码；被信号 N 结束时为 128 + N"},
    {"125  gpuwright itself failed (wrong words, a report that cannot be written)",
     "125  gpuwright 自身失败（参数有误、报告无法写入）"},
    {"126  COMMAND cannot be executed", "126  命令无法执行"},
    {"127  there is no such COMMAND", "127  没有该命令"},
    // The GPUs that are here.
    {"Show what the GPUs of this machine are doing", "显示本机 GPU 正在做什么"},
    {"Show who uses the GPUs: process, user, container or job", "显示谁在使用 GPU：进程、用户、容器或作业"},
    {"Show how the GPUs are joined to each other, to CPUs and to CUDA's numbers",
     "显示 GPU 之间、与 CPU 的连接，以及 CUDA 的编号"},
    {"Find GPUs that are free now, or wait for them", "找出现在空闲的 GPU，或等到有空闲"},
    {"Record what the GPUs do, for later", "把 GPU 的活动记录到文件，供以后查看"},
    {"Sum up a recording: use, idle memory and its owners, energy, faults",
     "汇总一份记录：利用率、闲置显存及其占用者、能耗、故障"},
    {"Memory, utilisation, power, temperature, errors and processes of every GPU that is here: NVIDIA, AMD, Intel and "
     "Ascend, with memory of their own or shared with the CPU. A GPU that hangs or is lost keeps its row and does not "
     "disturb the others. What a GPU does not tell is n/a, and JSON says why.\n\nColumns: bus, the share of time in "
     "which memory was read or written; util, in which anything ran. A wider terminal shows more of them. Memory that "
     "is in use but held by no visible process has a row of its own. A sleeping GPU is not woken.",
     "本机每块 GPU 的显存、利用率、功率、温度、错误和进程：NVIDIA、AMD、Intel、昇腾，独立显存或与 CPU "
     "共享内存均可。卡死或掉线的 GPU 仍保留自己的一行，不影响其他 GPU。GPU 不提供的数值显示为 n/a，JSON "
     "会说明原因。\n\n列：bus 为读写显存的时间占比，util "
     "为有任务运行的时间占比。终端越宽，列越多。已占用但不属于任何可见进程的显存单独成行。不会唤醒休眠的 GPU。"},
    {"Every process on a GPU with its memory, utilisation, age and command, and where it runs: Kubernetes pod, Slurm "
     "job, container or service, told from its cgroup. Memory that is in use but held by no visible process has a row "
     "of its own.\n\nIn a container the driver still tells the numbers that processes have on the host. Those that "
     "cannot be matched with a process here are marked with *.",
     "GPU 上的每个进程：显存、利用率、运行时间、命令，以及它属于哪个 Kubernetes pod、Slurm 作业、容器或服务（由 cgroup "
     "得知）。已占用但不属于任何可见进程的显存单独成行。\n\n在容器里，驱动给出的仍是主机上的进程号；无法与此处进程对应"
     "的以 * 标出。"},
    {"Prints the environment that makes a program take the free GPUs, as words for export or env:\n  export "
     "$(gpuwright free -n 2)\n\nFree is a GPU on which no process computes, with nearly all of its memory free and "
     "hardly used; with --memory, one on which so much memory is free. GPUs that CUDA_VISIBLE_DEVICES hides are not "
     "offered, nor those that are lost, need a reset or are cut into MIG instances. Numbers are in the order of the "
     "bus, which the printed CUDA_DEVICE_ORDER asks CUDA for, too.\n\nWhere there are not enough, the printed "
     "environment hides all GPUs, so that a script that does not look at the exit code does not take those of "
     "others.\n\nNothing is reserved: between this answer and the start of your program another one may take the GPU. "
     "Where several people share a machine, a scheduler prevents that; this command does not.",
     "打印让程序使用空闲 GPU 的环境变量，可直接用于 export 或 env：\n  export $(gpuwright free -n "
     "2)\n\n空闲是指没有进程在计算、显存几乎全空、几乎没有利用率；给出 --memory 时，指剩余显存够这么多。被 "
     "CUDA_VISIBLE_DEVICES 隐藏的、掉线的、需要复位的、已切成 MIG 实例的 GPU 不会给出。编号按总线顺序，打印的 "
     "CUDA_DEVICE_ORDER 让 CUDA 也按此编号。\n\n数量不够时，打印的环境变量会隐藏所有 "
     "GPU，这样不看退出码的脚本也不会占用别人的 "
     "GPU。\n\n这里不做任何预留：从给出答案到你的程序启动之间，别的程序可能先占用。多人共用的机器应由调度器避免这种情况"
     "。"},
    {"Writes a snapshot of all GPUs and processes into FILE at every interval, until it is ended (Ctrl-C is the "
     "ordinary way) or the duration is over. The file is whole after every snapshot, also if the program is killed; "
     "recording into it again goes on. 'stat --replay' and 'ps --replay' show it as if it were now, 'report' sums it "
     "up.",
     "每隔一段时间把所有 GPU 和进程的快照写入 FILE，直到被结束（通常用 "
     "Ctrl-C）或时长已到。每写完一个快照文件都是完整的，即使程序被杀；再次记录到同一文件会接着写。“stat --replay”和“ps "
     "--replay”像实时一样回放，“report”给出汇总。"},
    {"For every GPU: mean and 95th percentile of utilisation, memory, power and energy. For every user: GPU time and "
     "energy. Then who held memory while nothing computed, what held the clocks down, and what went wrong, in order of "
     "time. Figures are over the time in which the value was known; gaps in the recording do not count.",
     "每块 GPU：利用率的均值与 95 分位、显存、功率、能耗。每个用户：GPU "
     "时间与能耗。然后是谁占着显存却不计算、什么压低了频率、按时间排列的故障。数字只统计数值已知的时间；记录中的空档不"
     "计入。"},
    {"The matrix of nvidia-smi topo -m for GPUs of every vendor: NVLinks where there are some, else what lies between "
     "two GPUs on PCI Express. Then the numbers by which a GPU is known: CUDA counts by speed unless "
     "CUDA_DEVICE_ORDER=PCI_BUS_ID is set, and CUDA_VISIBLE_DEVICES counts anew.",
     "nvidia-smi topo -m 的矩阵，适用于各厂商的 GPU：有 NVLink 时显示其数量，否则显示两块 GPU 之间的 PCI Express "
     "路径。然后是每块 GPU 的各种编号：未设置 CUDA_DEVICE_ORDER=PCI_BUS_ID 时 CUDA 按速度编号，CUDA_VISIBLE_DEVICES "
     "会重新编号。"},
    {"Which GPUs", "哪些 GPU"},
    {"End a process", "结束进程"},
    {"only these: numbers and ranges (0,2-3), a UUID, a PCI address, part of a name",
     "只看这些：编号与区间（0,2-3）、UUID、PCI 地址、名称的一部分"},
    {"read sleeping GPUs, too, which wakes them", "也读取休眠的 GPU（会唤醒它们）"},
    {"look under DIR instead of / (a captured /sys and /proc)",
     "在 DIR 而不是 / 下查找（例如保存下来的 /sys 与 /proc）"},
    {"a simulated host: a built-in scenario or a file.toml", "模拟的主机：内置场景，或 file.toml"},
    {"what was recorded with 'gpuwright record'", "用“gpuwright record”记录的文件"},
    {"with --simulate or --replay: the moment so long after the start",
     "与 --simulate 或 --replay 同用：开始后这么久的时刻"},
    {"with --simulate: the moment so long after the start", "与 --simulate 同用：开始后这么久的时刻"},
    {"again and again; a terminal is redrawn (q ends)", "反复显示；在终端上原地刷新（q 结束）"},
    {"a line a GPU, with all fields or those of --fields", "每块 GPU 一行，包含全部字段或 --fields 指定的字段"},
    {"only these, joined by commas; 'help' lists them", "只要这些字段，用逗号分隔；“help”列出全部"},
    {"rolling columns of nvidia-smi dmon: p power and temperature, u utilisation, c clocks, m memory, e ECC and PCIe "
     "replays, t PCIe traffic",
     "滚动输出 nvidia-smi dmon 的列：p 功率与温度，u 利用率，c 频率，m 显存，e ECC 与 PCIe 重放，t PCIe 流量"},
    {"between the samples of --stream; without it: take two samples, so that rates are known",
     "--stream 的采样间隔；不用 --stream 时：取两次采样，从而得到速率"},
    {"end after N answers", "输出 N 次后结束"},
    {"a line a process", "每个进程一行"},
    {"rolling columns of nvidia-smi pmon: u utilisation, m memory", "滚动输出 nvidia-smi pmon 的列：u 利用率，m 显存"},
    {"between the samples of --stream", "--stream 的采样间隔"},
    {"end this process, which must be on a GPU; asks first", "结束这个进程（必须在 GPU 上）；会先询问"},
    {"the signal for it", "发送的信号"},
    {"do not ask", "不询问"},
    {"as many are needed; without it: all that are free", "需要这么多块；不给出时：列出所有空闲的"},
    {"so much memory must be free on each, whoever else is there; without it: nearly all, and no process",
     "每块须剩余这么多显存，不管上面还有谁；不给出时：几乎全空且没有进程"},
    {"with --memory: still no process of another user", "与 --memory 同用：仍不允许有其他用户的进程"},
    {"wait until there are enough, at most so long", "等到数量足够，至多等这么久"},
    {"without a limit", "不限"},
    {"with --wait: look so often", "与 --wait 同用：多久查看一次"},
    {"print UUIDs instead of numbers", "打印 UUID 而不是编号"},
    {"between snapshots", "快照之间的间隔"},
    {"end after 90s, 15m, 8h or 2d", "记录 90s、15m、8h 或 2d 后结束"},
    {"of the recording with its parts (FILE.1 to FILE.3); beyond it the oldest is dropped",
     "记录及其分段（FILE.1 到 FILE.3）的总大小；超出时丢弃最旧的"},
    {"the recording", "记录文件"},
    {"what 'gpuwright record' wrote", "“gpuwright record”写出的文件"},
    {"memory counts as held in idleness after so long without computing", "不计算这么久之后，所占显存算作闲置"},
    {"snapshots further apart than this leave a gap", "间隔超过这么久的两个快照之间算作空档"},
    {"once", "一次"},
    {"redrawn every two seconds", "每两秒刷新"},
    {"for a program", "供程序使用"},
    {"rolling columns, with PCIe traffic", "滚动的列，含 PCIe 流量"},
    {"what it looks like on a machine with GPUs", "在有 GPU 的机器上是什么样子"},
    {"all of them", "全部"},
    {"those on GPU 0, for a program", "GPU 0 上的进程，供程序使用"},
    {"end one, after a question", "询问后结束一个进程"},
    {"of this machine", "本机的"},
    {"what a program would see with it", "这样设置后程序会看到什么"},
    {"two free GPUs for what is started from this shell", "给从此 shell 启动的程序两块空闲 GPU"},
    {"one with 20 GiB free, also beside others", "一块剩余 20 GiB 的 GPU，可与他人共用"},
    {"wait up to an hour for four", "最多等一小时，直到有四块"},
    {"a night, every ten seconds", "记录一夜，每十秒一次"},
    {"watch it again", "回放"},
    {"of a recording", "一份记录的汇总"},
    {"for a program, with every process", "供程序使用，含每个进程"},
    {"3  no GPU answers: none was found, none has a driver, or library and kernel module of a driver differ",
     "3  没有 GPU 应答：没有找到、都没有驱动，或驱动的库与内核模块版本不一致"},
    {"128+N  ended by signal N", "128+N  被信号 N 结束"},
    {"0  done, also when no process uses a GPU", "0  完成，没有进程使用 GPU 时也是"},
    {"1  with --kill: the question was answered with no", "1  用 --kill 时：回答了“否”"},
    {"0  there are enough, and they are printed", "0  数量足够，已打印"},
    {"1  there are not enough", "1  数量不够"},
    {"3  no GPU answers: none was found, or none has a driver", "3  没有 GPU 应答：没有找到，或都没有驱动"},
    {"0  done, also when ended by Ctrl-C", "0  完成，用 Ctrl-C 结束时也是"},
    {"2  the file is no recording, or one of another machine", "2  文件不是记录，或是另一台机器的记录"},
    {"3  no GPU was found, or the file cannot be written", "3  没有找到 GPU，或文件无法写入"},
    {"0  done, also when the recording shows faults", "0  完成，记录中有故障时也是"},
    {"2  the file is no recording", "2  文件不是记录"},
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
    {"split the layers over N groups of GPUs", "把各层分给 N 组 GPU"},
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
    {"the smallest GPUs of the catalogue that hold it", "目录中放得下的最小 GPU"},
    {"candidates of --smallest-gpu, as 'gpuwright gpus --filter' takes them (default: boards, which leaves out "
     "laptops, Macs and modules; for training those of NVIDIA)",
     "--smallest-gpu 的候选范围，写法同 'gpuwright gpus --filter'（默认：板卡，不含笔记本、Mac 和模组；训练时只看 "
     "NVIDIA）"},
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
    {"the largest context, batch, number of GPU layers or (training) sequence that fits",
     "放得下的最大上下文、批大小、GPU 层数或（训练的）序列长度"},
    {"split every layer over N GPUs (default: all that are named)", "把每一层切分到 N 块 GPU（默认：所有列出的 GPU）"},
    {"llama.cpp, ollama, vllm, sglang or transformers (default: llama.cpp for GGUF, transformers for what vllm "
     "refuses, else vllm)",
     "llama.cpp、ollama、vllm、sglang 或 transformers（默认：GGUF 用 llama.cpp，vllm 不支持的用 transformers，其余用 "
     "vllm）"},
    {"what models of the usual sizes take, beside the guides' figures; or what quantisation costs",
     "常见规模的模型需要多少显存，与各种教程的数字并列；或量化的代价"},
    {"flash attention", "flash attention（快速注意力）"},
    {"layer or row", "按层（layer）或按行（row）切分"},
    {"ik_llama.cpp's -mla", "ik_llama.cpp 的 -mla"},
    {"attention implementation", "注意力的实现"},
    {"Reads the model's own files (headers only), predicts what takes the memory of each GPU under the named engine, "
     "and answers fits, tight or no. The peak is the largest of several instants (load, prefill, decode), and each "
     "figure is a range whose formula and source --explain prints.\n\nMODEL is a file (GGUF, safetensors, ONNX, "
     "config.json), a folder, hf://org/name, a preset (gpuwright model list) or a size such as 7B. Several models are "
     "placed on the same GPUs at once; settings of one of them follow its name: "
     "NAME,context=8192,format=Q4_K_M.\n\nWithout --gpu the smallest GPUs that hold the model are listed.",
     "读取模型自己的文件（只读头部），预测在指定引擎下每块 GPU "
     "的显存被什么占用，并回答：放得下、刚好放下还是放不下。峰值取若干时刻（加载、预填充、解码）中的最大者；每个数字都"
     "是一个区间，--explain 打印它的公式与出处。\n\nMODEL "
     "可以是文件（GGUF、safetensors、ONNX、config.json）、目录、hf://组织/名称、内置名称（gpuwright model list）或 7B "
     "这样的规模。可以同时把几个模型放到同一批 GPU "
     "上；某个模型自己的设置写在名称之后：NAME,context=8192,format=Q4_K_M。\n\n不给 --gpu 时，列出放得下该模型的最小 "
     "GPU。"},
    {"Llama 3.1 8B in vLLM on one RTX 4090", "在一块 RTX 4090 上用 vLLM 运行 Llama 3.1 8B"},
    {"a GGUF file in llama.cpp", "用 llama.cpp 运行一个 GGUF 文件"},
    {"the longest context that fits", "放得下的最长上下文"},
    {"which eight GPUs would hold it", "哪种 GPU 用八块能放下它"},
    {"fine-tune adapters on one RTX 4090", "在一块 RTX 4090 上微调适配器"},
    {"the fastest full fine-tuning that fits", "放得下的最快的全参数微调"},
    {"the files that realise it", "实现它的配置文件"},
    {"what a run measured beside the prediction, and keep it", "一次运行的实测与预测对照，并保存修正"},
    {"what 7B to 70B take, beside what guides say", "7B 到 70B 各需多少，与教程的说法并列"},
    {"two models on one GPU", "一块 GPU 上放两个模型"},
    {"1  it does not fit; with --strict also a tight fit; a log differs by more than 10 %",
     "1  放不下；加 --strict 时刚好放下也算；日志与预测相差超过 10 %"},
    // fit: its answers.
    {"fits", "放得下"},
    {"tight", "刚好放下"},
    {"no", "放不下"},
    {"{} of {} ({} to {})", "需要 {}，可用 {}（需要的区间 {} 到 {}）"},
    {"the peak is at: {}", "峰值出现在：{}"},
    {"; lowered by {}", "；可用这些降低：{}"},
    {"short by {}", "还差 {}"},
    {"the bytes fit, but the engine does not start as asked: see the notes", "容量够，但引擎按此设置无法启动，见说明"},
    {"the bytes fit, but the engine starts only with another setting: see the notes",
     "容量够，但引擎要改一项设置才能启动，见说明"},
    {"~: by a rule; no driver's figure is known", "~：按规则估算，没有驱动报告的数值"},
    {"boards only; --among 'vram>0' looks at laptops, Macs and modules, too",
     "只列板卡；--among 'vram>0' 也看笔记本、Mac 和模组"},
    {"{}: {} ({} to {})", "{}：{}（{} 到 {}）"},
    {"host memory: {}", "主机内存：{}"},
    {"here the memory ends", "显存到此为止"},
    {"What to change, the cheapest first", "可以怎样改，代价小的在前"},
    {"not enough alone", "单独不够"},
    {"then it fits", "之后放得下"},
    {"then it is tight", "之后刚好放下"},
    {"{}; saves {}, {} (costs: {})", "{}；省 {}，{}（代价：{}）"},
    {"not even the smallest {} fits", "最小的{}也放不下"},
    {"largest {}: {}", "最大的{}：{}"},
    {"context", "上下文"},
    {"batch", "批大小"},
    {"layers", "层数"},
    {"sequence", "序列长度"},
    {"no accelerator of the catalogue holds it", "目录中没有一块 GPU 放得下"},
    {"Smallest GPUs that hold it", "放得下的最小 GPU"},
    {"Smallest GPUs of which {} hold it", "{} 块即可放下的最小 GPU"},
    {"usable", "可用"},
    {"needed", "需要"},
    {"at most", "至多"},
    {"note: ", "注："},
    {"change", "改动"},
    {"saves", "省下"},
    {"peak", "峰值"},
    {"time", "时间"},
    {"verdict", "结论"},
    {"plan", "方案"},
    {"as asked: {}", "原样：{}"},
    {"From the plain job to the answer", "从原样到答案"},
    {"What the time of a step is made of: {} an undisturbed one (an estimate)",
     "一步的时间由什么组成：不受干扰时的 {}（估计）"},
    {"Other plans that fit", "其他放得下的方案"},
    {"load", "加载"},
    {"prefill", "预填充"},
    {"decode", "解码"},
    {"serving", "服务中"},
    {"profiling", "预运行"},
    {"view", "看图"},
    {"forward end", "前向结束"},
    {"backward", "反向"},
    {"optimizer step", "优化器更新"},
    {"all-gather", "收集权重"},
    {"evaluation", "评估"},
    {"kv cache tokens", "KV 缓存 token 数"},
    {"kv cache blocks", "KV 缓存块数"},
    {"max concurrency", "最大并发"},
    {"free", "空闲"},
    {"weights", "权重"},
    {"KV cache", "KV 缓存"},
    {"recurrent state", "循环状态"},
    {"compute buffer", "计算缓冲"},
    {"activations", "激活值"},
    {"vision tower", "视觉塔"},
    {"output buffer", "输出缓冲"},
    {"communication", "通信"},
    {"allocator slack", "分配器余量"},
    {"runtime", "运行时"},
    {"gradients", "梯度"},
    {"optimizer state", "优化器状态"},
    {"master weights", "主权重"},
    {"adapters", "适配器"},
    {"dequantised weights", "反量化的权重"},
    {"sharding buffers", "切分缓冲"},
    // fit: training.
    {"Training", "训练"},
    {"Training adapters", "训练适配器"},
    {"Training on several GPUs", "多块 GPU 上训练"},
    {"Configuration files", "配置文件"},
    {"fine-tune instead of serving", "不是部署，而是微调"},
    {"transformers, deepspeed, fsdp, torchtune, torchtitan, unsloth, litgpt, megatron or gpuwright",
     "transformers、deepspeed、fsdp、torchtune、torchtitan、unsloth、litgpt、megatron 或 gpuwright"},
    {"longest sample, padded or packed (default 2048)", "最长样本的 token 数，填充或打包之后（默认 2048）"},
    {"micro-batches of --batch sequences a step (default 1)", "每步累积几个微批，每个微批含 --batch 个序列（默认 1）"},
    {"samples are neither packed nor padded to one length", "样本既不打包，也不填充到同一长度"},
    {"how weights, gradients and states are kept", "权重、梯度与优化器状态以何种精度保存"},
    {"default adamw-fused", "优化器，默认 adamw-fused"},
    {"step each weight as its gradient arrives", "每个权重的梯度一到就更新它"},
    {"what is recomputed in backward", "反向传播时重算什么"},
    {"activations wait in host memory", "激活值存放在主机内存"},
    {"cross-entropy without the whole logits", "分块计算交叉熵，不生成完整的 logits"},
    {"norms and SwiGLU that keep less (Liger, unsloth)", "保留更少数据的归一化与 SwiGLU 内核（Liger、unsloth）"},
    {"torch.compile", "用 torch.compile 编译"},
    {"linears in float8", "线性层用 float8 计算"},
    {"auto: find the plan that fits and costs the least time", "auto：找出放得下且最省时间的方案"},
    {"sequences of one step over all GPUs, for --strategy (default 16)",
     "一步在所有 GPU 上的序列总数，供 --strategy 使用（默认 16）"},
    {"lora, qlora: methods that --strategy may fall back to", "lora、qlora：--strategy 可以退而采用的方法"},
    {"of the adapters (default 8)", "适配器的秩（默认 8）"},
    {"modules that get adapters, or all-linear (default: the engine's)",
     "加适配器的模块，或 all-linear（默认：由引擎决定）"},
    {"storage of the adapters (default f32)", "适配器的存储类型（默认 f32）"},
    {"embeddings and head are trained whole", "词嵌入与输出层整体训练"},
    {"dropout on the adapters' inputs", "适配器输入上的 dropout"},
    {"DeepSpeed ZeRO", "DeepSpeed ZeRO 的级别"},
    {"shard weights, gradients and states, or all but weights", "切分权重、梯度与状态，或除权重外的全部"},
    {"what lives in host memory", "哪些放在主机内存"},
    {"replicas (default: all GPUs that are left)", "副本数（默认：余下的所有 GPU）"},
    {"split every sequence over N GPUs", "把每个序列切分到 N 块 GPU"},
    {"split norms and dropouts beside tensor parallelism", "配合张量并行，归一化与 dropout 也切分"},
    {"several stages on each GPU", "每块 GPU 承担若干流水级"},
    {"GPUs of one machine (default 8)", "一台机器的 GPU 数（默认 8）"},
    {"ZeRO's reduce and all-gather buckets (default 5e8)", "ZeRO 归约与收集的桶大小（默认 5e8）"},
    {"ZeRO: one bucket instead of two", "ZeRO：只用一个桶，而不是两个"},
    {"FSDP: gather as far ahead as it goes", "FSDP：不限制提前收集的数量"},
    {"every GPU loads the whole model before it is shared out", "每块 GPU 先加载整个模型，再切分"},
    {"the files and the command that realise the answer", "输出实现该答案的文件与命令"},
    {"write the files of --emit there instead of printing them", "把 --emit 的文件写到该目录，而不是打印"},
    {"replace files that are there", "覆盖已有的文件"},
    {"judge what this DeepSpeed, accelerate, Trainer or LLaMA-Factory file, or this file with a `vllm serve` or "
     "`llama-server` command line, asks for",
     "评估该文件所要求的任务：DeepSpeed、accelerate、Trainer 或 LLaMA-Factory 的配置，或含有 `vllm "
     "serve`、`llama-server` 命令行的文件"},
    // explain.
    {"Why did it fail, and what exactly to change", "它为什么失败，究竟该改什么"},
    {"why a run failed", "一次运行为什么失败"},
    {"what the kernel says of the GPUs", "内核对 GPU 说了什么"},
    {"a folder of per-rank logs, for a program", "每个 rank 一份日志的目录，供程序使用"},
    {"a pod that does not start, in Chinese", "起不来的 pod，用中文说明"},
    // doctor.
    {"Is this machine set up right for its GPUs, and if not, what to change",
     "本机的 GPU 环境是否正确，不正确该改什么"},
    {"Looks at the machine from the ground up: bus, kernel module, driver, device nodes, fabric, hardware, system, "
     "containers, CUDA, Python frameworks, NCCL, Kubernetes and Slurm. The first layer that fails is the cause; what "
     "fails above it is named as its consequence. Each finding comes with what shows it and with the commands that "
     "mend it, for this distribution. What cannot be read is unknown, never a finding.\n\n"
     "Nothing is run and nothing is changed, unless with --apply: files are read, and NVIDIA's management library is "
     "asked. No GPU, Python or right of root is needed; root sees more.",
     "自底向上检查本机：总线、内核模块、驱动、设备节点、互联、硬件、系统、容器、CUDA、Python "
     "框架、NCCL、Kubernetes、Slurm。最先出错的一层是原因，其上各层的错误是后果。每条结论都附带依据，以及适用于本发行版"
     "的"
     "修复命令。读不到的视为未知，绝不当作错误。\n\n不运行任何程序，也不做任何改动（--apply "
     "除外）：只读取文件并询问 NVIDIA 管理库。不需要 GPU、Python 或 root 权限；以 root 运行能看到更多。"},
    {"is it fast: links, power, clocks, CPUs, data; advice in the order of gain",
     "是否够快：链路、功耗、频率、CPU、数据；建议按收益排序"},
    {"these checks alone: ids or groups (kmod.*), several with commas",
     "只做这些检查：名称或分组（kmod.*），多个用逗号分隔"},
    {"also list the checks that found nothing", "同时列出没有发现问题的检查"},
    {"list the checks there are", "列出全部检查"},
    {"from which severity on the exit code is 1", "从哪个严重级别起退出码为 1"},
    {"print a script that mends what was found, instead of the answer", "不打印结论，而是打印修复脚本"},
    {"run the safe steps of the fixes, each after a yes", "逐步执行修复中的安全步骤，每步先询问"},
    {"with --apply: do not ask", "配合 --apply：不再询问"},
    {"write what was looked at into a text file, without names and secrets, to send to somebody",
     "把检查过的内容写入文本文件（去除姓名与机密），便于发给他人"},
    {"look at a machine whose files were captured under DIR, or at a bundle",
     "检查 DIR 下采集的另一台机器，或一个 bundle 文件"},
    {"what is wrong with this machine", "本机有什么问题"},
    {"every check with what it saw", "每项检查及其所见"},
    {"what makes it slower than it has to be", "是什么让它不够快"},
    {"kernel module and driver alone, in Chinese", "只查内核模块和驱动，用中文回答"},
    {"a script to read and run", "一份可阅读并执行的脚本"},
    {"for somebody who helps; gpuwright doctor --root machine.txt reads it",
     "发给帮忙的人；对方用 gpuwright doctor --root machine.txt 查看"},
    {"0  nothing is wrong", "0  没有问题"},
    {"1  a finding of warning or above (see --fail-on)", "1  有警告或更严重的问题（见 --fail-on）"},
    {"Cause: {}", "原因：{}"},
    {"Above it, perhaps in consequence: {}", "上层问题（可能由此引起）：{}"},
    {"Warning: {}", "警告：{}"},
    {"Note: {}", "提示：{}"},
    {" (needs a restart)", "（需要重启）"},
    {"Nothing is wrong as far as can be told.", "就所能看到的而言，没有问题。"},
    {"Nothing could be checked: what the checks read is not there.", "什么都没能检查：检查所需的文件不存在。"},
    {"{} checks: {} right, {} wrong, {} that cannot be told, {} that do not apply",
     "{} 项检查：{} 项正常，{} 项有问题，{} 项无法判断，{} 项不适用"},
    {"Checks", "检查项"},
    {"ok", "正常"},
    {"wrong", "有问题"},
    {"unknown", "未知"},
    {"does not apply", "不适用"},
    {"{} written; read it before you send it: it is plain text.", "已写入 {}；它是纯文本，发送前请先查看。"},
    {"There is no step that is safe to be run for you; --fix prints all of them.",
     "没有可以安全代为执行的步骤；--fix 会打印全部步骤。"},
    {"Run it? [y/N/q] ", "执行吗？[y/N/q] "},
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
    // setup.
    {"Say what goes together for a GPU, and how to install it", "一块 GPU 该配什么、怎么装"},
    {"From a bare machine to one that trains: the driver's branch and kind of kernel modules, toolkit, PyTorch build "
     "(or TensorFlow, JAX), Python and image that go together for these GPUs on this distribution, and the commands "
     "in their order. What cannot be is refused, with the smallest change that makes it possible.\n\nIt prints and "
     "changes nothing. Without GPU it looks at the ones of this machine, and keeps a driver that is good enough.",
     "从裸机到能训练：在该发行版上与这些 GPU 相配的驱动分支和内核模块类型、工具包、PyTorch 构建（或 TensorFlow、JAX）、"
     "Python 和镜像，以及按顺序的命令。配不起来的会拒绝，并给出最小的改动。\n\n只打印，不改动任何东西。"
     "不写 GPU 时看本机的 GPU，驱动够用就保留。"},
    {"name of a GPU, as in gpuwright gpus (default: the ones that are here)",
     "GPU 的名称，同 gpuwright gpus（默认：本机的 GPU）"},
    {"Ubuntu 24.04, debian-12, rocky 9, ... (default: the one of this machine)",
     "Ubuntu 24.04、debian-12、rocky 9 等（默认：本机的发行版）"},
    {"PyTorch of that version; newest, or none", "指定 PyTorch 版本；newest 为最新，none 为不装"},
    {"TensorFlow, instead of PyTorch unless --torch is given, too",
     "装 TensorFlow 而不是 PyTorch；同时给出 --torch 则都装"},
    {"JAX, instead of PyTorch unless --torch is given, too", "装 JAX 而不是 PyTorch；同时给出 --torch 则都装"},
    {"CUDA of the framework's build and of the toolkit: 12.8 or cu128", "框架构建和工具包的 CUDA 版本：12.8 或 cu128"},
    {"a CUDA toolkit as well, to compile with nvcc", "同时装 CUDA 工具包，用 nvcc 编译"},
    {"Python of that version", "指定 Python 版本"},
    {"an NVIDIA driver that has to stay: 535.104.05, or a branch, 535",
     "必须保留的 NVIDIA 驱动：535.104.05，或分支 535"},
    {"work in containers: the host gets the driver and the engine, the rest is an image",
     "在容器中工作：主机只装驱动和容器引擎，其余在镜像里"},
    {"kind of CPU (default: this machine's, or what the GPU comes with)", "CPU 架构（默认：本机的，或该 GPU 所配的）"},
    {"print a bash script that does it; it goes on after the restart when it is run again",
     "打印可执行的 bash 脚本；重启后再次运行会接着做"},
    {"print a program that shows that the GPU computes", "打印验证 GPU 能计算的程序"},
    {"print everything that old guides got wrong", "打印旧教程的全部错误说法"},
    {"look for GPUs, driver and distribution under DIR instead of /", "在 DIR 而不是 / 下查找 GPU、驱动和发行版"},
    {"this machine, with the newest PyTorch that goes", "本机，装能用的最新 PyTorch"},
    {"another machine, with a compiler", "另一台机器，含编译工具"},
    {"a script for a GPU that newer wheels leave out", "为新 wheel 已不支持的 GPU 生成脚本"},
    {"containers: driver and engine on the host", "容器方式：主机只装驱动和引擎"},
    {"what goes with a driver that must stay", "驱动不能动时能装什么"},
    {"a program that shows that the driver works", "验证驱动可用的程序"},
    {"0  it goes together", "0  配得起来"},
    {"1  it does not; what must give is said", "1  配不起来；会说明该让步的是什么"},
    {"What goes together", "相配的一套"},
    {"How to get there", "安装步骤"},
    {"What old recipes got wrong", "旧教程错在哪里"},
    {"This does not go together:", "配不起来："},
    {"No change of what was asked for helps, only other hardware.", "改动要求也没有用，只能换硬件。"},
    {"What must give: one of these", "需要让步（任选其一）"},
    {"What must give", "需要让步"},
    {"{} on {}", "{}，{}"},
    {"{}, which is here and is enough", "{}，现有，够用"},
    {"branch {}, open kernel modules", "{} 分支，开源内核模块"},
    {"branch {}, proprietary kernel modules", "{} 分支，专有内核模块"},
    {" ({} or newer will do)", "（{} 或更新即可）"},
    {"{} for {}", "{}（{}）"},
    {"driver", "驱动"},
    {"with it", "配套"},
    {"toolkit", "工具包"},
    {"image", "镜像"},
    {"variable", "变量"},
    {"CUDA {}, with g++ {}", "CUDA {}，配 g++ {}"},
    {"{}, which uv brings", "{}（由 uv 提供）"},
    {"{} more: gpuwright setup --old-recipes", "还有 {} 条：gpuwright setup --old-recipes"},
    {"# then go on below", "# 然后继续下面的步骤"},
    // model.
    {"Describe a model: layers, caches, weights", "描述一个模型：各层、缓存、权重"},
    {"List the models that are known by name", "列出内置的模型名称"},
};

}  // namespace

std::span<const Translation> chinese() {
  return kChinese;
}

}  // namespace gpuwright::cli
