#include "doctor/host.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "device/sysfs/attribute.h"
#include "doctor/host_state.h"

namespace gpuwright::doctor {
namespace {

constexpr int kMostLinks = 40;  // as Linux has it
constexpr std::int64_t kMostHostFileBytes = 16 << 20;

bool is_plain_component(std::string_view name) {
  return !name.empty() && name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string path;
  for (const std::string& part : parts) path += "/" + part;
  return path.empty() ? "/" : path;
}

// Components yet to be walked, the next one last.
void push_components(std::string_view path, std::vector<std::string>& pending) {
  const auto parts = split(path, '/');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part)
    if (!part->empty() && *part != ".") pending.emplace_back(*part);
}

}  // namespace

// Walks the path from the root on, as the kernel would in a chroot: an absolute link starts again at the root, ".."
// stays below it. A missing component ends the walk.
Place Host::State::locate(std::string_view path, bool follow_last) const {
  Place place;
  if (path.find('\0') != std::string_view::npos || path.size() > 4096) {
    place.error = ENAMETOOLONG;
    return place;
  }
  if (root.empty()) return locate_here(std::string(path), follow_last);
  std::vector<std::string> done, pending;
  push_components(path, pending);
  place.real = root;
  if (::lstat(root.c_str(), &place.status) != 0) place.error = errno;
  for (int links = 0; place.error == 0 && !pending.empty();) {
    const std::string name = std::move(pending.back());
    pending.pop_back();
    if (name == "..") {
      if (!done.empty()) done.pop_back();
      continue;
    }
    done.push_back(name);
    const std::string real = root + joined(done);
    if (::lstat(real.c_str(), &place.status) != 0) {
      place.error = errno;
      break;
    }
    if (!S_ISLNK(place.status.st_mode) || (pending.empty() && !follow_last)) continue;
    const auto target = device::read_link(real);
    if (!target || ++links > kMostLinks) {
      place.error = links > kMostLinks ? ELOOP : EACCES;
      break;
    }
    done.pop_back();
    if (target->starts_with('/')) done.clear();
    push_components(*target, pending);
  }
  place.path = joined(done);
  place.real = done.empty() ? root : root + place.path;
  if (place.error == 0 && ::lstat(place.real.c_str(), &place.status) != 0) place.error = errno;
  return place;
}

Place Host::State::locate_here(const std::string& path, bool follow_last) const {
  Place place;
  place.path = place.real = path;
  if ((follow_last ? ::stat : ::lstat)(path.c_str(), &place.status) != 0) place.error = errno;
  return place;
}

void Host::State::remember(std::string_view path, const Place& place) const {
  constexpr std::size_t kMostRemembered = 65536;
  if (seen.size() >= kMostRemembered) return;
  Seen what = Seen::absent;
  if (place.error == EACCES || place.error == EPERM)
    what = Seen::forbidden;
  else if (place.error == 0)
    what = S_ISREG(place.status.st_mode)   ? Seen::file
           : S_ISDIR(place.status.st_mode) ? Seen::folder
           : S_ISLNK(place.status.st_mode) ? Seen::link
                                           : Seen::device;
  seen.insert_or_assign(std::string(path), what);
}

Result<Host> Host::open(const std::string& root) {
  auto state = std::make_unique<State>();
  state->root = root == "/" ? "" : root;
  while (state->root.ends_with('/')) state->root.pop_back();
  if (state->root.empty()) {
    state->read_this_machine();
    return Host(std::move(state));
  }
  if (!gpuwright::is_directory(state->root)) {
    GW_TRY(check_path(state->root));
    return fail_at(ErrorCode::bad_input, {root, {}, {}}, "is no folder that holds a machine's files");
  }
  const Place file = state->locate("/gpuwright-host.json", true);
  if (file.error == 0) {
    const std::string text = GW_TRY(read_file(file.real, kMostHostFileBytes));
    state->captured = GW_TRY(parse_json(text, "gpuwright-host.json"));
    GW_TRY(state->read_captured());
  }
  return Host(std::move(state));
}

Host::Host(std::unique_ptr<State> state) : state_(std::move(state)) {}
Host::~Host() = default;
Host::Host(Host&&) noexcept = default;
Host& Host::operator=(Host&&) noexcept = default;

bool Host::is_live() const {
  return state_->root.empty();
}
const std::string& Host::root() const {
  return state_->root;
}

Access Host::access(std::string_view path) const {
  const Place place = state_->look(path, true);
  if (state_->nodes && state_->nodes->contains(path)) return Access::present;
  switch (place.error) {
    case 0:
      return Access::present;
    case ENOENT:
    case ENOTDIR:
    case ENXIO:
      return Access::absent;
    case EACCES:
    case EPERM:
      return Access::forbidden;
    default:
      return Access::unreadable;
  }
}

bool Host::is_directory(std::string_view path) const {
  const Place place = state_->look(path, true);
  return place.error == 0 && S_ISDIR(place.status.st_mode);
}

std::optional<std::string> Host::text(std::string_view path, std::size_t most) const {
  const Place place = state_->look(path, true);
  if (place.error != 0 || !S_ISREG(place.status.st_mode)) return std::nullopt;
  device::FileText file = device::read_start(place.real, most);
  if (!file) return std::nullopt;
  return std::move(file.text);
}

std::optional<std::string> Host::value(std::string_view path) const {
  const auto whole = text(path, 4096);
  if (!whole) return std::nullopt;
  std::string trimmed(trim(*whole));
  if (trimmed.empty()) return std::nullopt;
  return trimmed;
}

std::optional<std::int64_t> Host::integer(std::string_view path) const {
  const auto text = value(path);
  if (!text) return std::nullopt;
  if (!text->starts_with("0x")) return to_integer(*text);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data() + 2, text->data() + text->size(), number, 16);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return number;
}

std::optional<std::int64_t> Host::size(std::string_view path) const {
  const Place place = state_->look(path, true);
  if (place.error != 0 || !S_ISREG(place.status.st_mode)) return std::nullopt;
  return static_cast<std::int64_t>(place.status.st_size);
}

std::vector<std::string> Host::names(std::string_view path, std::size_t most) const {
  const Place place = state_->look(path, true);
  std::vector<std::string> names;
  if (place.error == 0 && S_ISDIR(place.status.st_mode)) names = device::names_in(place.real, most);
  std::erase_if(names, [](const std::string& name) { return !is_plain_component(name); });
  if (state_->nodes) state_->add_captured_names(path, names);
  return names;
}

std::optional<std::string> Host::link(std::string_view path) const {
  const Place place = state_->look(path, false);
  if (place.error != 0 || !S_ISLNK(place.status.st_mode)) return std::nullopt;
  return device::read_link(place.real).optional();
}

std::optional<std::string> Host::link_name(std::string_view path) const {
  const auto target = link(path);
  if (!target) return std::nullopt;
  return target->substr(target->find_last_of('/') + 1);
}

std::optional<std::string> Host::resolve(std::string_view path) const {
  const Place place = state_->look(path, true);
  if (place.error != 0) return std::nullopt;
  if (!is_live()) return place.path;
  std::error_code error;
  const auto real = std::filesystem::canonical(place.real, error);
  if (error) return std::nullopt;
  return real.string();
}

Result<std::unique_ptr<ByteSource>> Host::bytes(std::string_view path) const {
  const Place place = state_->look(path, true);
  if (place.error != 0) return fail_at(ErrorCode::not_found, {std::string(path), {}, {}}, "cannot be opened");
  return open_file(place.real);
}

std::optional<Node> Host::node(std::string_view path) const {
  const Place place = state_->look(path, true);
  if (state_->nodes) {
    const auto captured = state_->nodes->find(path);
    if (captured != state_->nodes->end()) return captured->second;
  }
  if (place.error != 0) return std::nullopt;
  const struct stat& status = place.status;
  return Node{S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode), status.st_mode & 07777u,
              static_cast<std::int64_t>(status.st_uid),           static_cast<std::int64_t>(status.st_gid),
              static_cast<std::int64_t>(major(status.st_rdev)),   static_cast<std::int64_t>(minor(status.st_rdev))};
}

const std::map<std::string, Host::Seen, std::less<>>& Host::looked_at() const {
  return state_->seen;
}

}  // namespace gpuwright::doctor
