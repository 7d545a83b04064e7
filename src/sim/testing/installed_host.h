// For tests of what the simulated library answers: a host from TOML, installed while the object lives.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/nvml_functions.h"
#include "sim/host.h"
#include "sim/nvml.h"

namespace gpuwright::sim {

class InstalledHost {
 public:
  explicit InstalledHost(std::shared_ptr<Host> host) : host_(std::move(host)) { install_nvml(host_); }
  static InstalledHost built_in(const std::string& name) { return InstalledHost(Host::from_scenario(name).value()); }
  static InstalledHost from(std::string_view toml) {
    auto host = Host::from_toml(toml, "test.toml");
    EXPECT_TRUE(host.has_value()) << (host ? "" : host.error().message());
    return InstalledHost(std::move(host).value());
  }
  ~InstalledHost() {
    if (host_ != nullptr) install_nvml(nullptr);
  }
  InstalledHost(InstalledHost&& other) noexcept = default;

  Host& operator*() const { return *host_; }
  Host* operator->() const { return host_.get(); }

 private:
  std::shared_ptr<Host> host_;
};

// The function of that name with the type that its declaration says: call<nvml::Return(unsigned*)>("...", &count).
template <class Type, class... Arguments>
nvml::Return call(std::string_view name, Arguments... arguments) {
  void* symbol = nvml_symbol(name);
  return symbol == nullptr ? nvml::kFunctionNotFound : reinterpret_cast<Type*>(symbol)(arguments...);
}

#define GW_TYPE(function, arguments) using function##_type = nvml::Return arguments;
GW_NVML_FUNCTIONS(GW_TYPE)
#undef GW_TYPE
// NVML(nvmlDeviceGetCount_v2, &count) calls it as a client that found it by dlsym.
#define NVML(function, ...) \
  ::gpuwright::sim::call<::gpuwright::sim::function##_type>(#function __VA_OPT__(, ) __VA_ARGS__)

inline nvml::Device handle(unsigned index) {
  nvml::Device device = nullptr;
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2, index, &device), nvml::kSuccess) << index;
  return device;
}

}  // namespace gpuwright::sim
