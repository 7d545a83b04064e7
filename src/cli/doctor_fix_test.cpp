#include "cli/doctor_fix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

namespace gpuwright::cli {
namespace {

using ::testing::HasSubstr;

Finding finding_with(std::vector<Fix> fixes, Role role = Role::cause) {
  Finding finding;
  finding.id = "kmod.loaded";
  finding.severity = Severity::fatal;
  finding.role = role;
  finding.title = "not loaded";
  finding.fixes = std::move(fixes);
  return finding;
}

Fix fix_with(std::vector<std::string> commands, bool safe) {
  Fix fix;
  fix.text = "load it";
  fix.commands = std::move(commands);
  fix.safe = safe;
  return fix;
}

class Apply : public ::testing::Test {
 protected:
  Apply() : folder_(std::filesystem::path(::testing::TempDir()) / ("gpuwright_apply_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Apply() override { std::filesystem::remove_all(folder_); }
  std::string touch(const std::string& name) const { return "touch '" + (folder_ / name).string() + "'"; }
  bool done(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  std::filesystem::path folder_;
  std::ostringstream out_, err_;
  Console console_{out_, err_};
};

TEST_F(Apply, RunsTheSafeStepsOfCausesAlone) {
  doctor::Diagnosis diagnosis;
  diagnosis.findings = {finding_with({fix_with({touch("safe")}, true), fix_with({touch("risky")}, false)}),
                        finding_with({fix_with({touch("consequence")}, true)}, Role::consequence)};
  const auto code = apply_fixes(diagnosis, true, console_);
  ASSERT_TRUE(code) << code.error().message();
  EXPECT_EQ(*code, kDone);
  EXPECT_TRUE(done("safe"));
  EXPECT_FALSE(done("risky") || done("consequence"));
}

TEST_F(Apply, EndsAtTheStepThatFails) {
  doctor::Diagnosis diagnosis;
  diagnosis.findings = {finding_with({fix_with({"exit 7", touch("after")}, true)})};
  const auto code = apply_fixes(diagnosis, true, console_);
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().message(), HasSubstr("exit code 7"));
  EXPECT_FALSE(done("after"));
}

TEST_F(Apply, LeavesRestartsAndWhatOnlyTheReaderKnows) {
  doctor::Diagnosis diagnosis;
  diagnosis.findings = {finding_with({fix_with({"sudo reboot", "docker run IMAGE", "export X=1"}, true)})};
  const auto code = apply_fixes(diagnosis, true, console_);
  ASSERT_TRUE(code);
  EXPECT_THAT(out_.str(), HasSubstr("no step that is safe"));
}

TEST_F(Apply, AsksOnlyAtATerminal) {
  if (::isatty(STDIN_FILENO) == 1) GTEST_SKIP() << "there is somebody to ask";
  doctor::Diagnosis diagnosis;
  diagnosis.findings = {finding_with({fix_with({touch("safe")}, true)})};
  EXPECT_FALSE(apply_fixes(diagnosis, false, console_));
  EXPECT_FALSE(done("safe"));
}

}  // namespace
}  // namespace gpuwright::cli
