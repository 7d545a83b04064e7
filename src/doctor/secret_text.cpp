#include "doctor/secret_text.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace gpuwright::doctor {
namespace {

constexpr std::string_view kHidden = "(redacted)";

// Wherever they stand in a line; what follows is the secret.
constexpr std::array<std::string_view, 7> kWords = {"password", "passwd",  "passphrase", "token",
                                                    "secret",   "api_key", "apikey"};
// Too common for that: only as a part of a name to which something is assigned ("jwt_key=", "\"auth\": ").
constexpr std::array<std::string_view, 8> kParts = {"key",   "keys", "pass",       "cred",
                                                    "creds", "auth", "credential", "credentials"};

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_alnum(char c) {
  return is_upper(c) || is_digit(c) || (c >= 'a' && c <= 'z');
}
bool is_name(char c) {
  return is_alnum(c) || c == '_' || c == '-' || c == '.';
}

// "registry-auth", "jwt_key", "authToken": one of the name's parts is.
bool has_secret_part(std::string_view name) {
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = at;
    while (end < name.size() && is_alnum(name[end]) && (end == at || !is_upper(name[end]) || is_upper(name[end - 1])))
      ++end;
    const std::string part = lower(name.substr(at, end - at));
    if (std::find(kParts.begin(), kParts.end(), part) != kParts.end()) return true;
    at = std::max(end, at + 1);
    if (end < name.size() && !is_alnum(name[end])) at = end + 1;
  }
  return false;
}

// Behind the sign after the name from begin to end: where its secret value begins, or npos.
std::size_t value_of(std::string_view line, std::size_t begin, std::size_t end) {
  const std::string_view name = line.substr(begin, end - begin);
  const std::string low = lower(name);
  for (const std::string_view word : kWords)
    if (low.find(word) != std::string::npos) {
      const std::size_t sign = line.find_first_of("=: ", end);
      return sign == std::string_view::npos ? sign : sign + 1;
    }
  if (!has_secret_part(name)) return std::string_view::npos;
  const std::size_t sign = line.find_first_not_of("\"' ", end);
  const bool assigned = sign != std::string_view::npos && (line[sign] == '=' || line[sign] == ':');
  return assigned ? sign + 1 : std::string_view::npos;
}

std::size_t next_secret_value(std::string_view line, std::size_t from) {
  for (std::size_t at = from; at < line.size();) {
    std::size_t end = at;
    while (end < line.size() && is_name(line[end])) ++end;
    if (end > at)
      if (const std::size_t value = value_of(line, at, end); value != std::string_view::npos) return value;
    at = end + 1;
  }
  return std::string_view::npos;
}

struct Key {
  std::string_view begin;
  std::size_t least;        // further characters
  std::string_view beside;  // letters and digits, and these
  bool digit;               // one of them has to be a digit: such words are also written by people
};
constexpr std::array<Key, 17> kKeys = {{{"hf_", 16, "", false},
                                        {"ghp_", 8, "", false},
                                        {"gho_", 8, "", false},
                                        {"ghu_", 8, "", false},
                                        {"ghs_", 8, "", false},
                                        {"ghr_", 8, "", false},
                                        {"github_pat_", 8, "_", false},
                                        {"glpat-", 8, "_-.", false},
                                        {"nvapi-", 4, "_-", false},
                                        {"sk-", 16, "_-", true},
                                        {"AKIA", 12, "", false},
                                        {"ASIA", 12, "", false},
                                        {"xoxa-", 8, "-", false},
                                        {"xoxb-", 8, "-", false},
                                        {"xoxp-", 8, "-", false},
                                        {"xoxs-", 8, "-", false},
                                        {"eyJ", 12, "_-.=+", false}}};

// From a place on, up to one of the signs that end a word there.
std::string hide_after(std::string line, std::string_view begin, std::string_view ends) {
  for (std::size_t at = line.find(begin); at != std::string::npos; at = line.find(begin, at)) {
    const bool inside = at > 0 && is_name(line[at - 1]);
    at += begin.size();
    const std::size_t end = std::min(line.find_first_of(ends, at), line.size());
    if (inside || end == at || std::string_view(line).substr(at, kHidden.size()) == kHidden) continue;
    line.replace(at, end - at, kHidden);
  }
  return line;
}

}  // namespace

bool tells_a_secret(std::string_view name) {
  const std::string low = lower(name);
  for (const std::string_view word : {"key", "token", "secret", "pass", "cred", "auth"})
    if (low.find(word) != std::string::npos) return true;
  return false;
}

std::size_t key_at(std::string_view text) {
  for (const Key& key : kKeys) {
    if (!text.starts_with(key.begin)) continue;
    std::size_t end = key.begin.size();
    bool digit = false;
    while (end < text.size() && (is_alnum(text[end]) || key.beside.find(text[end]) != std::string_view::npos))
      digit = is_digit(text[end++]) || digit;
    if (end >= key.begin.size() + key.least && (digit || !key.digit)) return end;
  }
  return 0;
}

// "/data/home/", "/mnt/home/" and the like end with one of these.
HomeName home_name_at(std::string_view text) {
  for (const std::string_view folder : {"/home/", "/Users/", "/scratch/"}) {
    if (!text.starts_with(folder)) continue;
    std::size_t end = folder.size();
    while (end < text.size() && (is_name(text[end]) || text[end] == '+' || text[end] == '@' || text[end] < 0)) ++end;
    if (text.substr(folder.size(), end - folder.size()).find_first_not_of('.') != std::string_view::npos)
      return {folder.size(), end};
  }
  return {};
}

std::string without_secret_values(std::string_view line) {
  std::string result;
  std::size_t done = 0;
  for (std::size_t from = 0;;) {
    std::size_t value = next_secret_value(line, from);
    if (value == std::string_view::npos) break;
    const std::size_t sign = value;
    value = line.find_first_not_of(" =:", value);
    if (value == std::string_view::npos) break;
    from = value + 1;
    if (line[value] == '{') continue;  // its members have names of their own
    std::size_t end = std::string_view::npos;
    if (line[value] == '"' || line[value] == '\'')
      for (end = value + 1; end < line.size() && line[end] != line[value];) end += line[end] == '\\' ? 2 : 1;
    if (end >= line.size()) return result + std::string(line.substr(done, sign - done)) + " " + std::string(kHidden);
    result += std::string(line.substr(done, value + 1 - done)) + std::string(kHidden);
    done = end;
    from = end + 1;
  }
  return result + std::string(line.substr(done));
}

std::string without_serial_numbers(std::string_view line) {
  std::string result(line);
  constexpr std::size_t kLeast = 6;
  for (std::size_t at = 0; (at = lower(result).find("serial", at)) != std::string::npos;) {
    at += 6;
    std::size_t begin = at;
    for (const std::string_view word : {"number", "num", "no"})
      if (const std::size_t gap = result.find_first_not_of(" _", at);
          gap != std::string::npos && lower(result.substr(gap, word.size())) == word) {
        begin = gap + word.size();
        break;
      }
    const std::size_t value = result.find_first_not_of(" .#:=\"'", begin);
    if (value == std::string::npos || value == begin) continue;
    std::size_t end = value;
    while (end < result.size() && is_alnum(result[end])) ++end;
    const auto digits = std::count_if(result.begin() + static_cast<std::ptrdiff_t>(value),
                                      result.begin() + static_cast<std::ptrdiff_t>(end), is_digit);
    if (end - value < kLeast || digits < 4) continue;
    result.replace(value, end - value, kHidden);
    at = value + kHidden.size();
  }
  return result;
}

// "NVRM: Xid (...): 31, pid=99, name=python3, ...", "Out of memory: Killed process 7 (python3)", "task=python3,pid=7",
// "CPU: 3 PID: 7 Comm: python3", "amdgpu: ... Process python3 pid 7 thread python3:cs0 pid 8".
std::string without_process_names(std::string_view line) {
  std::string result = hide_after(std::string(line), "name=", ",\n");
  result = hide_after(std::move(result), "task=", ",\n");
  result = hide_after(std::move(result), "Comm: ", " \n");
  if (result.find(" pid ") != std::string::npos)
    for (const std::string_view word : {"Process ", "process ", "thread "}) {
      const std::size_t at = result.find(word);
      const std::size_t end = at == std::string::npos ? at : result.find(" pid ", at);
      const std::size_t begin = at + word.size();
      if (end != std::string::npos && end > begin) result.replace(begin, end - begin, kHidden);
    }
  const std::size_t killed = result.find("illed process ");
  const std::size_t open = killed == std::string::npos ? killed : result.find('(', killed);
  const std::size_t close = open == std::string::npos ? open : result.find(')', open);
  if (close != std::string::npos) result.replace(open, close + 1 - open, kHidden);
  return result;
}

}  // namespace gpuwright::doctor
