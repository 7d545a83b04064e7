#include "doctor/bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"
#include "doctor/capture.h"
#include "doctor/secret_text.h"

namespace gpuwright::doctor {
namespace {

constexpr std::size_t kMostFileBytes = 64 << 10, kMostBundleBytes = 16 << 20, kMostLogLines = 2000;

// Variables that the checks read; of others not even the name is told.
constexpr std::array<std::string_view, 23> kVariables = {
    "CUDA_",           "NVIDIA_",      "NCCL_",       "HIP_",  "ROCR_",        "HSA_",
    "LD_LIBRARY_PATH", "PYTORCH_",     "TORCH_",      "XLA_",  "TF_XLA_",      "TF_GPU_",
    "TF_FORCE_GPU_",   "TF_CPP_",      "JAX_",        "GLOO_", "SLURM_JOB_ID", "SLURM_JOB_GPUS",
    "SLURM_STEP_GPUS", "CONDA_PREFIX", "VIRTUAL_ENV", "HOME",  "PATH"};

// Lines of the kernel's log that say something of GPUs, their bus, or memory.
constexpr std::array<std::string_view, 14> kLogWords = {
    "NVRM", "nvidia",   "nouveau", "amdgpu",        "kfd",           "i915", "xe ",
    "Xid",  "pcieport", "AER",     "Out of memory", "Linux version", "DMAR", "PM: suspend"};

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return is_hex(c) || (c >= 'g' && c <= 'z') || (c >= 'G' && c <= 'Z') || c == '_';
}

// How many bytes at the begin are "10.0.0.1"; 0 where they are none. Versions of NVIDIA's libraries ("9.10.2.21") look
// the same: what begins below 16, but for the private 10, is taken for one.
std::size_t ipv4_at(std::string_view text) {
  std::size_t at = 0;
  for (int part = 0; part < 4; ++part) {
    const std::size_t begin = at;
    int value = 0;
    while (at < text.size() && is_digit(text[at]) && at - begin < 4) value = value * 10 + (text[at++] - '0');
    if (at == begin || value > 255) return 0;
    if (part == 0 && value < 16 && value != 10) return 0;
    if (part < 3 && (at == text.size() || text[at++] != '.')) return 0;
  }
  if (at < text.size() && (is_word(text[at]) || (text[at] == '.' && at + 1 < text.size() && is_digit(text[at + 1]))))
    return 0;
  return at;
}

// "a0:36:9f:12:34:56", and InfiniBand's longer ones.
std::size_t mac_at(std::string_view text) {
  std::size_t at = 0;
  int parts = 0;
  while (at + 1 < text.size() && is_hex(text[at]) && is_hex(text[at + 1])) {
    at += 2;
    ++parts;
    if (at == text.size() || text[at] != ':') break;
    ++at;
  }
  if (parts < 6) return 0;
  return at > 0 && text[at - 1] == ':' ? at - 1 : at;
}

// "fe80::a236:9fff:fe12:3456": at least two colons, one of them double, and nothing but hexadecimal digits between.
std::size_t ipv6_at(std::string_view text) {
  std::size_t at = 0, colons = 0, digits = 0;
  bool doubled = false;
  while (at < text.size() && (is_hex(text[at]) || text[at] == ':')) {
    if (text[at] == ':') {
      doubled = doubled || (at > 0 && text[at - 1] == ':');
      ++colons;
      digits = 0;
    } else if (++digits > 4) {
      return 0;
    }
    ++at;
  }
  return colons >= 2 && (doubled || colons == 7) && at > 4 ? at : 0;
}

std::size_t uuid_at(std::string_view text) {
  std::size_t prefix = 0;
  for (const std::string_view name : {"GPU-", "MIG-"})
    if (text.starts_with(name)) prefix = name.size();
  constexpr std::size_t kUuid = 36;
  if (prefix == 0 || text.size() < prefix + kUuid) return 0;
  for (std::size_t i = 0; i < kUuid; ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[prefix + i] != '-' : !is_hex(text[prefix + i])) return 0;
  }
  return prefix + kUuid;
}

std::size_t mail_at(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && (is_word(text[at]) || text[at] == '.' || text[at] == '-')) ++at;
  if (at == 0 || at == text.size() || text[at] != '@') return 0;
  const std::size_t host = ++at;
  bool dot = false;
  while (at < text.size() && (is_word(text[at]) || text[at] == '.' || text[at] == '-')) dot = text[at++] == '.' || dot;
  return at > host && dot ? at : 0;
}

// A name as a word of its own.
std::size_t name_at(std::string_view text, const std::string& name) {
  if (name.size() < 2 || !text.starts_with(name)) return 0;
  return name.size() == text.size() || !is_word(text[name.size()]) ? name.size() : 0;
}

class Redactor {
 public:
  explicit Redactor(const Secrets& secrets) : secrets_(secrets) {}

  std::string line(std::string_view text) { return words(without_serial_numbers(without_secret_values(text))); }

  // For what is no line of its own, such as a text of JSON.
  std::string words(std::string_view text) {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
      if (const HomeName home = home_name_at(text.substr(at)); home.end > 0) {
        result += std::string(text.substr(at, home.begin)) +
                  person(std::string(text.substr(at + home.begin, home.end - home.begin)));
        at += home.end;
        continue;
      }
      if (const std::size_t length =
              at == 0 || text[at - 1] == '_' || !is_word(text[at - 1]) ? key_at(text.substr(at)) : 0) {
        result += "(redacted)";
        at += length;
        continue;
      }
      const bool begins = at == 0 || !is_word(text[at - 1]);
      const auto [length, other] = begins ? replacement(text.substr(at)) : std::pair<std::size_t, std::string>{0, ""};
      if (length > 0 && !(at > 0 && (text[at - 1] == '.' || text[at - 1] == ':'))) {
        result += other;
        at += length;
      } else {
        result += text[at++];
      }
    }
    return result;
  }

 private:
  std::pair<std::size_t, std::string> replacement(std::string_view rest) {
    if (const std::size_t length = uuid_at(rest)) return {length, uuid(std::string(rest.substr(0, length)))};
    if (const std::size_t length = mail_at(rest)) return {length, "name@example.org"};
    if (const std::size_t length = mac_at(rest)) return {length, "02:00:00:00:00:00"};
    if (const std::size_t length = ipv6_at(rest)) return {length, "2001:db8::1"};
    if (const std::size_t length = ipv4_at(rest)) return {length, "192.0.2.1"};
    if (const std::size_t length = name_at(rest, secrets_.hostname)) return {length, "host"};
    if (const std::size_t length = name_at(rest, secrets_.user)) return {length, "user"};
    return {0, ""};
  }

  // The user is "user", everybody else "user2", "user3"...
  std::string person(const std::string& name) {
    if (name == secrets_.user || name == "user") return "user";
    return fmt::format("user{}", people_.emplace(name, people_.size() + 2).first->second);
  }

  std::string uuid(const std::string& text) {
    const auto [known, added] = uuids_.emplace(text, uuids_.size() + 1);
    return fmt::format("{}00000000-0000-0000-0000-{:012d}", text.substr(0, 4), known->second);
  }

  const Secrets& secrets_;
  std::map<std::string, std::size_t> uuids_, people_;
};

std::string redacted_by(Redactor& redactor, std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    result += redactor.line(text.substr(at, end - at));
    if (end == std::string_view::npos) break;
    result += '\n';
    at = end + 1;
  }
  return result;
}

// Of the files that list all packages only what has to do with GPUs.
std::string relevant(const Host& host, const std::string& path) {
  if (path != "/var/lib/dpkg/status" && path != "/var/log/apt/history.log")
    return host.text(path, kMostFileBytes).value_or("");
  const auto text = host.text(path, 32 << 20);
  std::string kept;
  std::size_t at = 0;
  while (text && at < text->size()) {
    const std::size_t end = text->find("\n\n", at);
    const std::string_view paragraph = std::string_view(*text).substr(at, end - at);
    for (const std::string_view word : {"nvidia", "libcu", "cuda", "nccl", "rocm"})
      if (paragraph.find(word) != std::string_view::npos) {
        kept += std::string(paragraph) + "\n\n";
        break;
      }
    if (end == std::string::npos || kept.size() > kMostFileBytes) break;
    at = end + 2;
  }
  return kept;
}

Secrets secrets_of(const Host& host) {
  Secrets secrets;
  secrets.user = host.variable("USER").value_or("");
  const std::string home = host.variable("HOME").value_or("");
  if (secrets.user.empty() && home.starts_with("/home/")) secrets.user = home.substr(6, home.find('/', 6) - 6);
  if (secrets.user == "root") secrets.user.clear();
  secrets.hostname = host.value("/proc/sys/kernel/hostname").value_or("");
  if (secrets.hostname == "localhost") secrets.hostname.clear();
  return secrets;
}

bool starts_with_any(std::string_view name, const auto& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view one) { return name.starts_with(one); });
}

Json variables(const Host& host, Redactor& redactor) {
  Json env = Json::object();
  for (const auto& [name, value] : host.environment())
    if (starts_with_any(name, kVariables) && !tells_a_secret(name)) env.set(name, redacted_by(redactor, value));
  if (host.variable("KUBERNETES_SERVICE_HOST")) env.set("KUBERNETES_SERVICE_HOST", "192.0.2.1");
  return env;
}

Json log_lines(const Host& host, Redactor& redactor) {
  Json lines = Json::array();
  std::size_t kept = 0;
  for (const std::string& line : host.kernel_log()->lines) {
    const bool wanted = std::any_of(kLogWords.begin(), kLogWords.end(),
                                    [&](std::string_view word) { return line.find(word) != std::string::npos; });
    if (wanted && ++kept <= kMostLogLines) lines.push(redactor.line(without_process_names(line)));
  }
  return lines;
}

Json node_rows(const Host& host) {
  Json nodes = Json::object();
  for (const auto& [path, seen] : host.looked_at()) {
    const auto node = path.starts_with("/dev/") ? host.node(path) : std::nullopt;
    if (node && node->is_device)
      nodes.set(path, Json()
                          .set("mode", fmt::format("{:04o}", node->mode))
                          .set("owner", node->owner)
                          .set("group", node->group)
                          .set("major", node->major)
                          .set("minor", node->minor));
  }
  return nodes;
}

// Processes that the checks ask for; of others not even the name is told.
Json process_names(const Host& host) {
  Json names = Json::array();
  constexpr std::array<std::string_view, 6> kKnown = {"nv-", "nvidia-", "kubelet", "slurmd", "dockerd", "containerd"};
  const auto processes = host.processes();
  for (const std::string& name : *processes)
    if (starts_with_any(name, kKnown)) names.push(name);
  return names;
}

Json host_file(const Machine& machine, Redactor& redactor) {
  const Host& host = machine.host();
  Json file = Json::object();
  if (const auto release = host.kernel_release()) file.set("kernel_release", *release);
  if (const auto kind = host.machine()) file.set("machine", *kind);
  if (const auto user = host.user()) file.set("user", *user);
  if (const auto groups = host.groups()) {
    Json list = Json::array();
    for (const std::int64_t group : *groups) list.push(group);
    file.set("groups", std::move(list));
  }
  if (host.environment_known()) file.set("env", variables(host, redactor));
  Json limits = Json::object(), spaces = Json::object();
  for (const char* name : {"memlock", "nofile", "as", "stack"})
    if (const auto limit = host.limit(name)) limits.set(name, limit->value);
  for (const char* path : {"/dev/shm", "/tmp"})
    if (const auto space = host.space(path))
      spaces.set(path, Json().set("total_bytes", space->total.count).set("free_bytes", space->free.count));
  file.set("limits", std::move(limits)).set("space", std::move(spaces)).set("nodes", node_rows(host));
  if (host.kernel_log()) file.set("kernel_log", log_lines(host, redactor));
  if (host.processes()) file.set("processes", process_names(host));
  if (machine.snapshot() != nullptr) capture(*machine.snapshot(), file);
  return file;
}

}  // namespace

std::string redacted(std::string_view text, const Secrets& secrets) {
  Redactor redactor(secrets);
  return redacted_by(redactor, text);
}

Archive bundle(const Machine& machine) {
  const Host& host = machine.host();
  const Secrets secrets = secrets_of(host);
  Redactor redactor(secrets);
  Archive archive;
  std::size_t bytes = 0;
  const std::vector<std::pair<std::string, Host::Seen>> paths(host.looked_at().begin(),
                                                              host.looked_at().end());  // reading adds to it
  for (const auto& [path, seen] : paths) {
    if (!path.starts_with('/') || path.find("..") != std::string::npos || path.find("//") != std::string::npos ||
        path.find("/./") != std::string::npos || path.ends_with("/.") || path.size() < 2)
      continue;
    const std::string name = redactor.line(path);
    if (seen == Host::Seen::folder && host.names(path, 1).empty()) archive[name] = {ArchiveEntry::Kind::folder, ""};
    if (seen == Host::Seen::link)
      archive[name] = {ArchiveEntry::Kind::link, redactor.line(host.link(path).value_or(""))};
    if (seen != Host::Seen::file || bytes > kMostBundleBytes) continue;
    const std::string text = relevant(host, path);
    const bool binary = text.starts_with(
                            "\x7f"
                            "ELF") ||
                        !is_utf8(text) || text.find('\0') != std::string::npos;
    // Of libraries the names tell; of small binary files (configuration space, firmware variables) the bytes.
    constexpr std::size_t kSmall = 4096;
    archive[name] = {ArchiveEntry::Kind::file, !binary                 ? redacted_by(redactor, text)
                                               : text.size() <= kSmall ? text
                                                                       : std::string()};
    bytes += archive[name].text.size();
  }
  archive["/gpuwright-host.json"] = {ArchiveEntry::Kind::file, host_file(machine, redactor).dump() + "\n"};
  return archive;
}

}  // namespace gpuwright::doctor
