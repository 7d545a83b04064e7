// What pip, conda and packages leave beside an installed Python package: its name, version and requirements.
// Formats: packaging.python.org, "Recording installed projects" (dist-info), "Core metadata", "Name normalization",
// "Dependency specifiers"; setuptools' egg-info.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwright::doctor {

struct Package {
  std::string name;     // normalised: "nvidia-cudnn-cu12"
  std::string version;  // "2.7.0+cu126"
  std::string folder;   // ".../torch-2.7.0+cu126.dist-info"
};

// "Flash_Attn" -> "flash-attn"
std::string normalised_name(std::string_view name);

// From the name of an entry of site-packages; nothing for what is none.
std::optional<Package> package_named(const std::string& site, std::string_view entry);

struct Requirement {
  std::string name;       // normalised
  std::string specifier;  // "==9.5.1.17", ">=1.2,<2", empty
  std::string marker;     // "platform_system == \"Linux\""
  bool optional = false;  // of an extra
  // The version of "==VERSION"; nothing for other specifiers and for "==1.*".
  std::optional<std::string> pin() const;
};
std::optional<Requirement> parse_requirement(std::string_view text);
// Requires-Dist of a METADATA file, at most 512; what stands behind the headers is not looked at.
std::vector<Requirement> requirements_in(std::string_view metadata);

// "cu126" of "2.7.0+cu126", empty where there is none.
std::string_view local_tag(std::string_view version);
// "2.7.0" of "2.7.0+cu126"
std::string_view public_version(std::string_view version);
// "2.7" of "2.7.0+cu126", "1.12" of "1.12.1"
std::string_view minor_version(std::string_view version);
// Whether a version meets ">=1.2,!=1.3,<2", "==2.7.*", "~=1.4.2": nothing where the specifier is not understood.
std::optional<bool> meets(std::string_view version, std::string_view specifier);

}  // namespace gpuwright::doctor
