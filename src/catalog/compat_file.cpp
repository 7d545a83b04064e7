#include "catalog/compat_file.h"

#include <algorithm>

#include "base/embedded.h"
#include "base/file.h"
#include "base/rules/facts.h"
#include "catalog/compat.h"

namespace gpuwright::catalog {
namespace {

// Reads one file into the tables.
class CompatReader {
 public:
  CompatReader(const TomlRow& file, Compat& into) : file_(file), into_(into) {}

  Status read() {
    GW_TRY(read_source_names());
    GW_TRY(file_.rows("cuda", [this](const TomlRow& row) { return cuda(row); }));
    GW_TRY(file_.rows("cuda_major", [this](const TomlRow& row) { return cuda_major(row); }));
    GW_TRY(file_.rows("driver_branch", [this](const TomlRow& row) { return branch(row); }));
    GW_TRY(file_.rows("architecture", [this](const TomlRow& row) { return architecture(row); }));
    GW_TRY(file_.rows("host_compiler", [this](const TomlRow& row) { return compiler(row); }));
    GW_TRY(file_.rows("torch", [this](const TomlRow& row) { return torch(row); }));
    GW_TRY(file_.rows("tensorflow", [this](const TomlRow& row) { return tensorflow(row); }));
    GW_TRY(file_.rows("jax", [this](const TomlRow& row) { return jax(row); }));
    GW_TRY(file_.rows("amd", [this](const TomlRow& row) { return amd(row); }));
    return file_.rows("container", [this](const TomlRow& row) { return container(row); });
  }

 private:
  Status read_source_names() {
    const toml::table* names = file_.table()["sources"].as_table();
    if (names == nullptr) return {};
    for (const auto& [key, value] : *names) {
      const auto text = value.value_exact<std::string>();
      if (!text) return file_.wrong(fmt::format("sources.{} has to be a text", key.str()));
      source_names_[std::string(key.str())] = *text;
    }
    return {};
  }
  Status sourced(const TomlRow& row, Sourced& into) const {
    std::vector<std::string> keys = GW_TRY(row.texts("sources"));
    if (row.has("source")) keys.push_back(GW_TRY(row.text("source")));
    if (keys.empty()) return row.wrong("the row needs a source");
    for (const std::string& key : keys) {
      const auto known = source_names_.find(key);
      into.sources.push_back(known != source_names_.end() ? known->second : key);
    }
    into.verified = GW_TRY(row.flag("verified", true));
    return {};
  }
  static Status pythons(const TomlRow& row, std::string& oldest, std::string& newest) {
    const std::vector<std::string> range = GW_TRY(row.texts("python"));
    if (range.size() != 2) return row.wrong("python has to be the oldest and the newest version");
    oldest = range[0];
    newest = range[1];
    return {};
  }

  Status cuda(const TomlRow& row) {
    CudaRelease release;
    release.version = GW_TRY(row.version("version"));
    release.driver = GW_TRY(row.version("driver"));
    GW_TRY(sourced(row, release));
    into_.cuda.push_back(std::move(release));
    return {};
  }
  Status cuda_major(const TomlRow& row) {
    CudaMajor major;
    major.major = GW_TRY(row.integer("major", 1, 99));
    major.driver = GW_TRY(row.version("driver"));
    GW_TRY(sourced(row, major));
    into_.cuda_majors.push_back(std::move(major));
    return {};
  }
  Status branch(const TomlRow& row) {
    DriverBranch branch;
    branch.branch = GW_TRY(row.integer("branch", 100, 9999));
    const std::string kind = GW_TRY(row.text("kind"));
    if (kind == "long-term")
      branch.kind = Support::long_term;
    else if (kind == "new-feature")
      branch.kind = Support::new_feature;
    else if (kind == "legacy")
      branch.kind = Support::legacy;
    else if (kind != "production")
      return row.wrong(fmt::format("there is no kind of branch \"{}\"", kind));
    branch.end = GW_TRY(row.version("end"));
    for (const std::string& flavour : GW_TRY(row.texts("flavours"))) {
      branch.open |= flavour == "open";
      branch.proprietary |= flavour == "proprietary";
    }
    if (!branch.open && !branch.proprietary) return row.wrong("flavours has to name open, proprietary or both");
    branch.oldest = GW_TRY(row.version("oldest"));
    branch.cuda = GW_TRY(row.version("cuda"));
    GW_TRY(sourced(row, branch));
    into_.branches.push_back(std::move(branch));
    return {};
  }
  Status architecture(const TomlRow& row) {
    ArchitectureWindow window;
    window.capability = GW_TRY(row.version("capability"));
    window.name = GW_TRY(row.text("name"));
    window.first_cuda = GW_TRY(row.version("first_cuda"));
    window.last_cuda = GW_TRY(row.optional_version("last_cuda"));
    window.first_driver = GW_TRY(row.optional_integer("first_driver", 100, 9999));
    window.last_driver = GW_TRY(row.optional_integer("last_driver", 100, 9999));
    const std::string modules = GW_TRY(row.text("modules"));
    if (modules == "open")
      window.modules = Modules::open;
    else if (modules == "proprietary")
      window.modules = Modules::proprietary;
    else if (modules != "both")
      return row.wrong(fmt::format("modules cannot be \"{}\"", modules));
    window.own_code = GW_TRY(row.flag("own_code", false));
    GW_TRY(sourced(row, window));
    into_.architectures.push_back(std::move(window));
    return {};
  }
  Status compiler(const TomlRow& row) {
    HostCompiler compiler;
    compiler.cuda = GW_TRY(row.version("cuda"));
    compiler.gcc = GW_TRY(row.integer("gcc", 3, 99));
    GW_TRY(sourced(row, compiler));
    into_.compilers.push_back(std::move(compiler));
    return {};
  }
  static Result<TorchBuild> build(const TomlRow& row) {
    TorchBuild build;
    build.tag = GW_TRY(row.text("tag"));
    const auto cuda = cuda_of_tag(build.tag);
    if (!cuda) return row.wrong(fmt::format("\"{}\" is not a tag as cu128", build.tag));
    build.cuda = *cuda;
    build.cudnn = GW_TRY(row.version("cudnn"));
    build.nccl = GW_TRY(row.optional_version("nccl"));
    build.archs = GW_TRY(row.texts("archs"));
    if (build.archs.empty()) return row.wrong("a build needs archs");
    build.arm_archs = GW_TRY(row.texts("arm_archs"));
    build.ptx = GW_TRY(row.optional_version("ptx"));
    build.experimental = GW_TRY(row.flag("experimental", false));
    if (row.has("cxx11_abi")) build.cxx11_abi = GW_TRY(row.flag("cxx11_abi", true));
    build.verified = GW_TRY(row.flag("verified", true));
    return build;
  }
  Status torch(const TomlRow& row) {
    TorchRelease release;
    release.version = GW_TRY(row.version("version"));
    release.newest = GW_TRY(row.version("newest"));
    GW_TRY(pythons(row, release.oldest_python, release.newest_python));
    release.vision = GW_TRY(row.optional_version("vision"));
    release.audio = GW_TRY(row.optional_version("audio"));
    release.default_tag = GW_TRY(row.text("default"));
    release.rocm = GW_TRY(row.optional_version("rocm"));
    GW_TRY(row.rows("builds", [&release](const TomlRow& inner) -> Status {
      release.builds.push_back(GW_TRY(build(inner)));
      return {};
    }));
    if (release.build(release.default_tag) == nullptr) return row.wrong("default is none of the builds");
    GW_TRY(sourced(row, release));
    into_.torch.push_back(std::move(release));
    return {};
  }
  Status tensorflow(const TomlRow& row) {
    TensorflowRelease release;
    release.version = GW_TRY(row.version("version"));
    release.newest = GW_TRY(row.version("newest"));
    GW_TRY(pythons(row, release.oldest_python, release.newest_python));
    release.cuda = GW_TRY(row.version("cuda"));
    release.cudnn = GW_TRY(row.version("cudnn"));
    release.archs = GW_TRY(row.texts("archs"));
    release.ptx = GW_TRY(row.optional_version("ptx"));
    release.brings_cuda = GW_TRY(row.flag("brings_cuda", false));
    GW_TRY(sourced(row, release));
    into_.tensorflow.push_back(std::move(release));
    return {};
  }
  Status jax(const TomlRow& row) {
    JaxExtra extra;
    extra.extra = GW_TRY(row.text("extra"));
    extra.cuda = GW_TRY(row.version("cuda"));
    extra.cudnn = GW_TRY(row.version("cudnn"));
    extra.oldest = GW_TRY(row.version("oldest"));
    GW_TRY(pythons(row, extra.oldest_python, extra.newest_python));
    GW_TRY(sourced(row, extra));
    into_.jax.push_back(std::move(extra));
    return {};
  }
  Status amd(const TomlRow& row) {
    AmdTarget target;
    target.gfx = GW_TRY(row.text("gfx"));
    target.rocm = GW_TRY(row.optional_version("rocm"));
    target.override_version = GW_TRY(row.optional_version("override"));
    GW_TRY(sourced(row, target));
    into_.amd.push_back(std::move(target));
    return {};
  }
  Status container(const TomlRow& row) {
    ContainerNeeds needs;
    needs.vendor = GW_TRY(row.text("vendor"));
    needs.host_packages = GW_TRY(row.texts("host_packages"));
    needs.devices = GW_TRY(row.texts("devices"));
    needs.options = GW_TRY(row.texts("options"));
    needs.environment = GW_TRY(row.texts("environment"));
    needs.cdi = GW_TRY(row.optional_text("cdi")).value_or("");
    GW_TRY(sourced(row, needs));
    into_.containers.push_back(std::move(needs));
    return {};
  }

  const TomlRow& file_;
  Compat& into_;
  std::map<std::string, std::string> source_names_;
};

// Of rows with the same key the last stays, in the place of the first.
template <class Row, class Key>
void keep_last(std::vector<Row>& rows, Key Row::*key) {
  std::vector<Row> kept;
  for (Row& row : rows) {
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const Row& one) { return one.*key == row.*key; });
    if (same != kept.end())
      *same = std::move(row);
    else
      kept.push_back(std::move(row));
  }
  rows = std::move(kept);
}

Status read_into(Compat& compat, std::string_view text, std::string_view name) {
  const toml::table root = GW_TRY(parse_toml_file(text, name));
  GW_TRY(CompatReader(TomlRow(root, name), compat).read());
  keep_last(compat.cuda, &CudaRelease::version);
  keep_last(compat.cuda_majors, &CudaMajor::major);
  keep_last(compat.branches, &DriverBranch::branch);
  keep_last(compat.architectures, &ArchitectureWindow::capability);
  keep_last(compat.compilers, &HostCompiler::cuda);
  keep_last(compat.torch, &TorchRelease::version);
  keep_last(compat.tensorflow, &TensorflowRelease::version);
  keep_last(compat.jax, &JaxExtra::extra);
  keep_last(compat.amd, &AmdTarget::gfx);
  keep_last(compat.containers, &ContainerNeeds::vendor);
  return {};
}

template <class Row>
void sort_by_version(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& left, const Row& right) { return compare_versions(left.version, right.version) < 0; });
}

void sort_all(Compat& compat) {
  sort_by_version(compat.cuda);
  sort_by_version(compat.torch);
  sort_by_version(compat.tensorflow);
  std::stable_sort(compat.branches.begin(), compat.branches.end(),
                   [](const DriverBranch& left, const DriverBranch& right) { return left.branch < right.branch; });
}

}  // namespace

Result<Compat> Compat::from_toml(std::string_view text, std::string_view name) {
  Compat compat;
  GW_TRY(read_into(compat, text, name));
  sort_all(compat);
  return compat;
}

Status Compat::overlay(std::string_view text, std::string_view name) {
  Compat changed = *this;
  GW_TRY(read_into(changed, text, name));
  sort_all(changed);
  *this = std::move(changed);
  return {};
}

Result<Compat> Compat::load() {
  const auto builtin = embedded_data("compat.toml");
  if (!builtin) return fail(ErrorCode::internal, "the compatibility tables were not built in");
  Compat compat = GW_TRY(from_toml(*builtin, "compat.toml (built in)"));
  const std::string directory = config_directory();
  const std::string own = directory + "/compat.toml";
  if (directory.empty() || !path_exists(own)) return compat;
  constexpr std::int64_t kMostBytes = 4 << 20;
  GW_TRY(compat.overlay(GW_TRY(read_file(own, kMostBytes)), own));
  return compat;
}

}  // namespace gpuwright::catalog
