// Every tests/hosts/*.txt is a host as doctor may meet it. Its first lines say what has to come out:
//   # cause: kmod.nouveau           the first cause; "none" for a host where nothing is wrong
//   # also: drv.mismatch            fatal consequences and warnings, each named; any order
//   # notes: drv.branch             what is only worth knowing
//   # perf: perf.power pci.link     what doctor --perf finds, of any severity
// and nothing else may be found. Files without "# cause" are bases of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/text.h"
#include "doctor/archive.h"
#include "doctor/capture.h"
#include "doctor/doctor.h"
#include "doctor/testing/elf_builder.h"

namespace gpuwright::doctor {
namespace {

struct Expected {
  std::string file;
  std::string cause;
  std::set<std::string> also, notes, performance;
};

void PrintTo(const Expected& expected, std::ostream* out) {
  *out << std::filesystem::path(expected.file).filename();
}

std::vector<Expected> expected_hosts() {
  std::vector<Expected> all;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(GPUWRIGHT_SOURCE_DIR) + "/tests/hosts")) {
    if (entry.path().extension() != ".txt") continue;
    Expected one{entry.path().string(), "", {}, {}, {}};
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line) && !line.starts_with("== ");) {
      if (line.starts_with("# cause: ")) one.cause = trim(std::string_view(line).substr(9));
      for (const auto& [head, ids] :
           {std::pair{"# also: ", &one.also}, {"# notes: ", &one.notes}, {"# perf: ", &one.performance}})
        if (line.starts_with(head))
          for (const auto id : split(std::string_view(line).substr(std::string_view(head).size()), ' '))
            if (!trim(id).empty()) ids->emplace(trim(id));
    }
    if (!one.cause.empty()) all.push_back(std::move(one));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.file < b.file; });
  return all;
}

// A file "@elf soname=libx.so.1 ..." is a library of that description.
void build_libraries(Archive& archive) {
  for (auto& [path, entry] : archive)
    if (entry.text.starts_with("@elf ")) entry.text = testing::build_elf_from(trim(entry.text));
}

class Hosts : public ::testing::TestWithParam<Expected> {};

TEST_P(Hosts, HasExactlyTheFindingsThatItsHeadNames) {
  auto archive = read_archive(GetParam().file);
  ASSERT_TRUE(archive) << archive.error().message();
  build_libraries(*archive);
  const auto unpacked = UnpackedHost::unpack(*archive);
  ASSERT_TRUE(unpacked) << unpacked.error().message();
  const auto host = Host::open(unpacked->root());
  ASSERT_TRUE(host) << host.error().message();
  const auto snapshot = captured_snapshot(*host);
  ASSERT_TRUE(snapshot) << snapshot.error().message();
  static const auto catalog = catalog::Catalog::load();
  static const auto book = ProblemBook::load();
  ASSERT_TRUE(catalog);
  ASSERT_TRUE(book) << book.error().message();
  const Machine machine(*host, *catalog, *snapshot ? &**snapshot : nullptr);
  const Diagnosis diagnosis = diagnose(machine, *book, {});

  std::set<std::string> also, notes, performance;
  std::string causes;
  for (const Finding& finding : diagnosis.findings) {
    EXPECT_EQ(finding.title.find('?'), std::string::npos) << finding.id << ": " << finding.title;
    if (finding.severity < Severity::warning) {
      notes.insert(finding.id);
      continue;
    }
    if (&finding != diagnosis.first_cause()) also.insert(finding.id);
    if (finding.severity == Severity::fatal && finding.role == Role::cause) causes += finding.id;
    for (const Fix& fix : finding.fixes)
      for (const std::string& command : fix.commands) EXPECT_EQ(command.find("{"), std::string::npos) << command;
  }
  const Finding* first = diagnosis.first_cause();
  EXPECT_EQ(first == nullptr ? "none" : first->id, GetParam().cause);
  if (first != nullptr && first->severity == Severity::fatal) {
    EXPECT_EQ(causes, GetParam().cause);
  }
  EXPECT_THAT(also, ::testing::ElementsAreArray(GetParam().also));
  EXPECT_THAT(notes, ::testing::ElementsAreArray(GetParam().notes));
  if (GetParam().performance.empty()) return;
  DiagnosisOptions perf;
  perf.performance = true;
  for (const Finding& finding : diagnose(machine, *book, perf).findings) performance.insert(finding.id);
  EXPECT_THAT(performance, ::testing::ElementsAreArray(GetParam().performance));
}

TEST(HostsTogether, EveryFatalProblemHasItsHost) {
  const auto book = ProblemBook::load();
  ASSERT_TRUE(book) << book.error().message();
  std::set<std::string> shown;
  for (const Expected& host : expected_hosts()) {
    shown.insert(host.cause);
    shown.insert(host.also.begin(), host.also.end());
  }
  for (const auto& problem : book->problems())
    EXPECT_TRUE(problem->severity != Severity::fatal || shown.contains(problem->id)) << problem->id;
}

std::string name_of(const ::testing::TestParamInfo<Expected>& host) {
  std::string name = std::filesystem::path(host.param.file).stem().string();
  for (char& c : name)
    if (c == '-' || c == '.') c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Captured, Hosts, ::testing::ValuesIn(expected_hosts()), name_of);

}  // namespace
}  // namespace gpuwright::doctor
