// Text for people in the languages that data files hold.
#pragma once

#include <string>
#include <string_view>

namespace gpuwright {

struct Words {
  std::string en, zh;  // zh may be empty: it falls back to en
  const std::string& in(std::string_view language) const { return language == "zh" && !zh.empty() ? zh : en; }
};

}  // namespace gpuwright
