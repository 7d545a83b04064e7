// What no file holds: of this machine from the system, of a captured one from its gpuwright-host.json.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "device/sysfs/attribute.h"
#include "doctor/host_state.h"

extern char** environ;

namespace gpuwright::doctor {
namespace {

constexpr std::array<std::pair<std::string_view, int>, 4> kLimits = {
    {{"memlock", RLIMIT_MEMLOCK}, {"nofile", RLIMIT_NOFILE}, {"as", RLIMIT_AS}, {"stack", RLIMIT_STACK}}};
constexpr std::size_t kMostProcesses = 65536;

tl::unexpected<Error> wrong_member(std::string_view name, std::string_view expected) {
  return fail_at(ErrorCode::bad_input, {"gpuwright-host.json", {}, {}},
                 fmt::format("\"{}\" has to be {}", name, expected), "its format is in docs/doctor.md");
}

std::optional<std::int64_t> number_of(const Json& object, std::string_view key) {
  const Json* member = object.find(key);
  return member == nullptr ? std::nullopt : member->as_int();
}

// "0666", as chmod takes it.
std::optional<unsigned> octal(std::string_view text) {
  unsigned mode = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (error != std::errc() || end != text.data() + text.size() || mode > 07777) return std::nullopt;
  return mode;
}

Result<Node> captured_node(std::string_view path, const Json& row) {
  Node node;
  node.is_device = true;
  const Json* text = row.find("mode");
  const auto mode = text != nullptr && text->is_string() ? octal(*text->as_string()) : std::nullopt;
  if (!mode) return wrong_member(fmt::format("nodes/{}/mode", path), "a text such as \"0666\"");
  node.mode = *mode;
  node.owner = number_of(row, "owner").value_or(0);
  node.group = number_of(row, "group").value_or(0);
  node.major = number_of(row, "major").value_or(0);
  node.minor = number_of(row, "minor").value_or(0);
  return node;
}

std::vector<std::string> texts_of(const Json& array) {
  std::vector<std::string> texts;
  for (const Json& item : array.items())
    if (const auto text = item.as_string()) texts.emplace_back(*text);
  return texts;
}

}  // namespace

void Host::State::read_this_machine() {
  environment.emplace();
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) environment->emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  utsname names{};
  if (::uname(&names) == 0) {
    kernel_release = names.release;
    machine = names.machine;
  }
  user = static_cast<std::int64_t>(::geteuid());
  std::array<gid_t, 1024> ids;
  const int count = ::getgroups(static_cast<int>(ids.size()), ids.data());
  if (count >= 0) {
    groups.emplace(ids.begin(), ids.begin() + count);
    groups->push_back(static_cast<std::int64_t>(::getegid()));
  }
  std::error_code error;
  const auto here = std::filesystem::current_path(error);
  if (!error) working_directory = here.string();
  for (const auto& [name, number] : kLimits) {
    rlimit limit{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(number), &limit) != 0) continue;
    limits[std::string(name)] = {
        limit.rlim_cur == RLIM_INFINITY ? std::nullopt : std::optional(static_cast<std::int64_t>(limit.rlim_cur))};
  }
}

Status Host::State::read_captured() {
  if (!captured.is_object()) return wrong_member("", "an object");
  if (const Json* env = captured.find("env")) {
    if (!env->is_object()) return wrong_member("env", "an object of texts");
    environment.emplace();
    for (const auto& [name, value] : env->members())
      if (const auto text = value.as_string()) environment->emplace(name, *text);
  }
  const auto text_of = [&](std::string_view name) -> std::optional<std::string> {
    const Json* member = captured.find(name);
    if (member == nullptr || !member->is_string()) return std::nullopt;
    return std::string(*member->as_string());
  };
  kernel_release = text_of("kernel_release");
  machine = text_of("machine");
  user = number_of(captured, "user");
  working_directory = text_of("working_directory").value_or("/");
  if (const Json* list = captured.find("groups")) {
    groups.emplace();
    for (const Json& item : list->items())
      if (const auto number = item.as_int()) groups->push_back(*number);
  }
  if (const Json* table = captured.find("nodes")) {
    nodes.emplace();
    for (const auto& [path, row] : table->members()) nodes->emplace(path, GW_TRY(captured_node(path, row)));
  }
  if (const Json* table = captured.find("space"))
    for (const auto& [path, row] : table->members())
      spaces[path] = {Bytes{number_of(row, "total_bytes").value_or(0)},
                      Bytes{number_of(row, "free_bytes").value_or(0)}};
  if (const Json* table = captured.find("limits"))
    for (const auto& [name, value] : table->members()) limits[name] = {value.as_int()};  // null: unlimited
  if (const Json* list = captured.find("processes")) processes = texts_of(*list);
  if (const Json* list = captured.find("kernel_log")) log = KernelLog{"kernel log", texts_of(*list)};
  return {};
}

// Device nodes cannot be kept in a captured folder without rights: they stand in the file, and are listed from there.
void Host::State::add_captured_names(std::string_view folder, std::vector<std::string>& names) const {
  const std::string prefix = std::string(folder) + (folder.ends_with('/') ? "" : "/");
  std::set<std::string> all(names.begin(), names.end());
  for (auto node = nodes->lower_bound(prefix); node != nodes->end() && node->first.starts_with(prefix); ++node) {
    const std::string rest = node->first.substr(prefix.size());
    all.insert(rest.substr(0, rest.find('/')));
  }
  names.assign(all.begin(), all.end());
}

bool Host::environment_known() const {
  return state_->environment.has_value();
}

const std::map<std::string, std::string, std::less<>>& Host::environment() const {
  static const std::map<std::string, std::string, std::less<>> none;
  return state_->environment ? *state_->environment : none;
}

std::optional<std::string> Host::variable(std::string_view name) const {
  const auto found = environment().find(name);
  return found == environment().end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> Host::kernel_release() const {
  return state_->kernel_release ? state_->kernel_release : value("/proc/sys/kernel/osrelease");
}
std::optional<std::string> Host::machine() const {
  return state_->machine;
}
std::optional<std::int64_t> Host::user() const {
  return state_->user;
}
std::optional<std::vector<std::int64_t>> Host::groups() const {
  return state_->groups;
}
std::string Host::working_directory() const {
  return state_->working_directory;
}

std::optional<Space> Host::space(std::string_view path) const {
  if (!is_live()) {
    const auto found = state_->spaces.find(path);
    return found == state_->spaces.end() ? std::nullopt : std::optional(found->second);
  }
  struct statvfs status {};
  if (::statvfs(std::string(path).c_str(), &status) != 0 || status.f_blocks == 0) return std::nullopt;
  const auto bytes = [&](std::uint64_t blocks) {
    return Bytes{checked_multiply(static_cast<std::int64_t>(blocks), static_cast<std::int64_t>(status.f_frsize))
                     .value_or(INT64_MAX)};
  };
  Space space{bytes(status.f_blocks), bytes(status.f_bavail)};
  state_->spaces[std::string(path)] = space;
  return space;
}

std::optional<Limit> Host::limit(std::string_view name) const {
  const auto found = state_->limits.find(name);
  return found == state_->limits.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::vector<std::string>> Host::processes() const {
  if (!is_live() || state_->processes_read) return state_->processes;
  state_->processes_read = true;
  std::set<std::string> names;
  for (const std::string& pid : device::numbered_in("/proc", "", kMostProcesses))
    if (const auto name = device::read_attribute("/proc/" + pid + "/comm")) names.insert(*name);
  if (!names.empty()) state_->processes.emplace(names.begin(), names.end());
  return state_->processes;
}

const Json* Host::captured(std::string_view name) const {
  return state_->captured.find(name);
}

}  // namespace gpuwright::doctor
