#include "fit/emit/config_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"

namespace gpuwright::fit {
namespace {

constexpr int kDeepest = 16;
constexpr int kMostValues = 5'000;

class Parser {
 public:
  Parser(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Result<ConfigNode> document() {
    if (!GW_TRY(skip_to_content())) return fault("the file holds no settings");
    if (rest().substr(0, 3) == "---") {
      at_ += 3;
      if (!GW_TRY(skip_to_content())) return fault("the file holds no settings");
    }
    ConfigNode root = peek() == '{' ? GW_TRY(flow(0)) : GW_TRY(block(0));
    if (!root.is_map()) return fault("settings as 'key: value' are expected");
    const bool more = GW_TRY(skip_to_content());
    if (more && rest().substr(0, 3) == "---") return fault("a second document is not read");
    if (more && trim(rest()) != "...") return fault("this stands outside of every key");
    return root;
  }

 private:
  tl::unexpected<Error> fault(std::string what) const {
    return fail_at(ErrorCode::bad_input, {std::string(name_), line_, std::nullopt}, std::move(what));
  }
  bool ended() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  std::string_view rest() const { return text_.substr(at_); }
  std::string_view rest_of_line() const { return rest().substr(0, rest().find('\n')); }
  std::size_t column() const { return at_ - line_start_; }
  void next_line() {
    ++at_;
    ++line_;
    line_start_ = at_;
  }
  static bool is_blank(char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; }

  // Blanks, comments and line ends are passed over; false at the end of the text.
  Result<bool> skip_to_content() {
    while (!ended()) {
      if (peek() == '\n') {
        next_line();
      } else if (is_blank(peek())) {
        ++at_;
      } else if (peek() == '#' && (at_ == line_start_ || is_blank(text_[at_ - 1]))) {
        at_ += rest_of_line().size();
      } else {
        return true;
      }
    }
    return false;
  }

  Result<ConfigNode> node(ConfigNode::Kind kind) {
    if (++values_ > kMostValues) return fault("the file holds too many values");
    ConfigNode made;
    made.kind = kind;
    made.line = line_;
    return made;
  }

  bool at_list_item() const {
    return peek() == '-' && (is_blank(peek(1)) || peek(1) == '\n' || at_ + 1 == text_.size());
  }

  Result<ConfigNode> block(int depth) {
    if (depth > kDeepest) return fault("the file is nested too deeply");
    if (text_.substr(line_start_, column()).find('\t') != std::string_view::npos)
      return fault("a tab indents this line; YAML wants blanks");
    return at_list_item() ? block_list(depth) : block_map(depth);
  }

  // Whether another member or item stands at this column; an error when the line is indented more.
  Result<bool> continues(std::size_t at_column) {
    if (!GW_TRY(skip_to_content()) || column() < at_column) return false;
    if (column() > at_column) return fault("this line is indented more than the ones it belongs to");
    return rest().substr(0, 3) != "---" && rest().substr(0, 3) != "...";
  }

  Result<ConfigNode> block_map(int depth) {
    ConfigNode map = GW_TRY(node(ConfigNode::Kind::map));
    const std::size_t start = column();
    do {
      if (at_list_item()) break;
      const std::int64_t line = line_;
      std::string key = GW_TRY(block_key());
      if (map.find(key) != nullptr) return fault(fmt::format("the key '{}' stands twice", key));
      ConfigNode value = GW_TRY(block_value(start, true, depth));
      value.line = line;
      map.members.push_back({std::move(key), std::move(value)});
    } while (GW_TRY(continues(start)));
    return map;
  }

  Result<ConfigNode> block_list(int depth) {
    ConfigNode list = GW_TRY(node(ConfigNode::Kind::list));
    const std::size_t start = column();
    do {
      if (!at_list_item()) break;
      ++at_;
      while (is_blank(peek())) ++at_;
      const bool inline_map = !is_flow_start() && looks_like_key(rest_of_line());
      list.items.push_back(inline_map ? GW_TRY(block(depth + 1)) : GW_TRY(block_value(start, false, depth)));
    } while (GW_TRY(continues(start)));
    return list;
  }

  static bool looks_like_key(std::string_view line) {
    const std::size_t colon = line.find(':');
    return colon != line.npos && (colon + 1 == line.size() || is_blank(line[colon + 1]));
  }

  Result<std::string> block_key() {
    std::string key;
    if (peek() == '"' || peek() == '\'') {
      key = GW_TRY(quoted());
      while (is_blank(peek())) ++at_;
    } else {
      if (std::string_view("?&*!|>%@`[]{},").find(peek()) != std::string_view::npos)
        return fault("this form of YAML is not read; write 'key: value'");
      const std::string_view line = rest_of_line();
      std::size_t colon = line.find(':');
      while (colon != line.npos && colon + 1 < line.size() && !is_blank(line[colon + 1]))
        colon = line.find(':', colon + 1);
      if (colon == line.npos) return fault("a key and a colon are expected");
      key = std::string(trim(line.substr(0, colon)));
      at_ += colon;
    }
    if (peek() != ':') return fault("a colon is expected after the key");
    ++at_;
    return key;
  }

  bool is_flow_start() const { return std::string_view("[{\"'").find(peek()) != std::string_view::npos && !ended(); }

  // What stands behind "key:" or "-": on the same line, or indented under it.
  Result<ConfigNode> block_value(std::size_t parent_column, bool under_key, int depth) {
    while (is_blank(peek())) ++at_;
    if (peek() == '#' && at_ > line_start_ && is_blank(text_[at_ - 1])) at_ += rest_of_line().size();
    if (ended() || peek() == '\n') {
      ConfigNode nothing = GW_TRY(node(ConfigNode::Kind::null));
      if (!GW_TRY(skip_to_content())) return nothing;
      // A "-" at its key's own column belongs to the key; under another "-" it is the next item.
      if (column() > parent_column || (under_key && column() == parent_column && at_list_item()))
        return block(depth + 1);
      return nothing;
    }
    if (is_flow_start()) {
      ConfigNode value = GW_TRY(flow(depth + 1));
      const std::string_view after = trim(rest_of_line());
      if (!after.empty() && after.front() != '#') return fault("this stands behind the value");
      at_ += rest_of_line().size();
      return value;
    }
    if (std::string_view("&*!|>%@`").find(peek()) != std::string_view::npos)
      return fault("this form of YAML (anchor, tag or block text) is not read");
    return plain(rest_of_line());
  }

  Result<ConfigNode> plain(std::string_view span) {
    for (std::size_t i = 1; i < span.size(); ++i)
      if (span[i] == '#' && is_blank(span[i - 1])) span = span.substr(0, i);
    at_ += span.size();
    return plain_scalar(trim(span));
  }

  Result<ConfigNode> plain_scalar(std::string_view word) {
    const bool is_null = word.empty() || word == "~" || word == "null" || word == "Null" || word == "NULL";
    ConfigNode made = GW_TRY(node(is_null ? ConfigNode::Kind::null : ConfigNode::Kind::scalar));
    if (!is_null) made.text = std::string(word);
    return made;
  }

  Result<ConfigNode> flow(int depth) {
    if (depth > kDeepest) return fault("the file is nested too deeply");
    if (peek() == '[') return flow_list(depth);
    if (peek() == '{') return flow_map(depth);
    if (peek() == '"' || peek() == '\'') {
      ConfigNode made = GW_TRY(node(ConfigNode::Kind::scalar));
      made.text = GW_TRY(quoted());
      made.quoted = true;
      return made;
    }
    return flow_plain(",]}[{\n");
  }

  Result<ConfigNode> flow_plain(std::string_view stops) {
    std::size_t length = 0;
    while (at_ + length < text_.size() && stops.find(peek(length)) == stops.npos) ++length;
    const std::string_view word = rest().substr(0, length);
    if (trim(word).empty()) return fault("a value is expected");
    at_ += length;
    return plain_scalar(trim(word));
  }

  // The next item's start, or the closing bracket, which is consumed (then false).
  Result<bool> flow_next(char closing, bool first) {
    if (!GW_TRY(skip_to_content())) return fault(fmt::format("'{}' is missing", closing));
    if (peek() == closing) return ++at_, false;
    if (first) return true;
    if (peek() != ',') return fault(fmt::format("',' or '{}' is expected", closing));
    ++at_;
    if (!GW_TRY(skip_to_content())) return fault(fmt::format("'{}' is missing", closing));
    if (peek() == closing) return ++at_, false;
    return true;
  }

  Result<ConfigNode> flow_list(int depth) {
    ConfigNode list = GW_TRY(node(ConfigNode::Kind::list));
    ++at_;
    while (GW_TRY(flow_next(']', list.items.empty()))) list.items.push_back(GW_TRY(flow(depth + 1)));
    return list;
  }

  Result<ConfigNode> flow_map(int depth) {
    ConfigNode map = GW_TRY(node(ConfigNode::Kind::map));
    ++at_;
    while (GW_TRY(flow_next('}', map.members.empty()))) {
      const std::int64_t line = line_;
      const bool in_quotes = peek() == '"' || peek() == '\'';
      std::string key = in_quotes ? GW_TRY(quoted()) : GW_TRY(flow_plain(":,]}[{\n")).text;
      if (!GW_TRY(skip_to_content()) || peek() != ':') return fault("a colon is expected after the key");
      ++at_;
      if (map.find(key) != nullptr) return fault(fmt::format("the key '{}' stands twice", key));
      if (!GW_TRY(skip_to_content())) return fault("a value is expected");
      ConfigNode value = GW_TRY(flow(depth + 1));
      value.line = line;
      map.members.push_back({std::move(key), std::move(value)});
    }
    return map;
  }

  Result<std::string> quoted() {
    const char quote = peek();
    std::string text;
    for (++at_; !ended() && peek() != '\n'; ++at_) {
      if (peek() == quote) {
        ++at_;
        if (quote == '"' || peek() != '\'') return text;
        text += '\'';
      } else if (quote == '"' && peek() == '\\') {
        ++at_;
        text += GW_TRY(escaped());
      } else {
        text += peek();
      }
    }
    return fault("the closing quote is missing on this line");
  }

  Result<std::string> escaped() {
    constexpr std::string_view kNames = "\"\\/bfnrt0e";
    constexpr char kBytes[] = {'"', '\\', '/', '\b', '\f', '\n', '\r', '\t', '\0', '\x1b'};
    const std::size_t index = kNames.find(peek());
    if (!ended() && index != kNames.npos) return std::string(1, kBytes[index]);
    if (peek() == 'u' && at_ + 4 < text_.size()) {
      // Left to the JSON reader, which knows surrogates: the escape alone, or with the one that completes it.
      std::size_t length = 5;
      if (rest().substr(5, 2) == "\\u" && (peek(1) == 'd' || peek(1) == 'D') && at_ + 10 < text_.size()) length = 11;
      const auto json = parse_json(fmt::format("[\"\\{}\"]", rest().substr(0, length)), name_);
      if (json && json->items().size() == 1 && json->items().front().as_string()) {
        at_ += length - 1;
        return std::string(*json->items().front().as_string());
      }
    }
    return fault("this escape is not read");
  }

  std::string_view text_;
  std::string_view name_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  std::int64_t line_ = 1;
  int values_ = 0;
};

}  // namespace

const ConfigNode* ConfigNode::find(std::string_view key) const {
  for (const ConfigMember& member : members)
    if (member.key == key) return &member.value;
  return nullptr;
}

std::optional<bool> ConfigNode::as_bool() const {
  if (!is_scalar()) return std::nullopt;
  const std::string word = lower(text);
  if (word == "true" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "no" || word == "off") return false;
  return std::nullopt;
}

std::optional<std::int64_t> ConfigNode::as_int() const {
  if (!is_scalar()) return std::nullopt;
  if (const auto whole = to_integer(text)) return whole;
  const auto number = to_number(text);
  constexpr double kLargestExact = 9007199254740992.0;  // 2^53
  if (!number || std::abs(*number) > kLargestExact || std::floor(*number) != *number) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::optional<double> ConfigNode::as_double() const {
  return is_scalar() ? to_number(text) : std::nullopt;
}

std::optional<std::string_view> ConfigNode::as_string() const {
  return is_scalar() ? std::optional<std::string_view>(text) : std::nullopt;
}

Result<ConfigNode> parse_config(std::string_view text, std::string_view name) {
  const Location where{std::string(name), std::nullopt, std::nullopt};
  if (text.size() > static_cast<std::size_t>(kLargestConfig))
    return fail_at(ErrorCode::bad_input, where, "the file is larger than a configuration can be (1 MiB)");
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  if (trim(text).substr(0, 1) == "{") {
    // Strict JSON first: its reader's errors are the better ones. The tree with lines is then built as flow YAML.
    JsonLimits limits;
    limits.max_bytes = kLargestConfig;
    limits.max_depth = kDeepest;
    limits.max_values = kMostValues;
    GW_TRY(parse_json(text, name, limits));
  }
  return Parser(text, name).document();
}

}  // namespace gpuwright::fit
