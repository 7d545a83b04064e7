#include "cli/fit_emit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/file.h"

namespace gpuwright::cli {
namespace {

using testing::HasSubstr;

fit::Emission emission() {
  return {{{"a.yaml", "a: 1\n"}, {"b.json", "{}\n"}}, "run a.yaml\n", {"One note."}};
}

std::string fresh_folder() {
  std::string name = testing::TempDir() + "fit_emit_XXXXXX";
  return mkdtemp(name.data()) == nullptr ? "" : name;
}

TEST(WriteEmission, ReplacesNothingUnasked) {
  const std::string folder = fresh_folder();
  ASSERT_FALSE(folder.empty());
  ASSERT_TRUE(write_file_atomically(folder + "/b.json", "mine"));
  const Status refused = write_emission(emission(), folder, false);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("b.json is there already"));
  EXPECT_FALSE(path_exists(folder + "/a.yaml"));
  EXPECT_EQ(*read_file(folder + "/b.json", 100), "mine");
  ASSERT_TRUE(write_emission(emission(), folder, true));
  EXPECT_EQ(*read_file(folder + "/b.json", 100), "{}\n");
  EXPECT_EQ(*read_file(folder + "/a.yaml", 100), "a: 1\n");
  EXPECT_THAT(write_emission(emission(), folder + "/a.yaml", true).error().message(), HasSubstr("no folder"));
  ASSERT_TRUE(write_emission(emission(), folder + "/made/for/it", false));
  EXPECT_TRUE(path_exists(folder + "/made/for/it/a.yaml"));
}

TEST(PrintEmission, ShowsFilesCommandAndNotes) {
  std::ostringstream out, err;
  const Console console{out, err};
  print_emission(emission(), "", console);
  EXPECT_EQ(out.str(), "# a.yaml\na: 1\n\n# b.json\n{}\n\n# run\nrun a.yaml\n# One note.\n");
  std::ostringstream written;
  print_emission(emission(), "dir", Console{written, err});
  EXPECT_EQ(written.str(), "wrote dir/a.yaml\nwrote dir/b.json\n# run\nrun a.yaml\n# One note.\n");
  EXPECT_EQ(to_json(emission()).find("files")->items().size(), 2u);
}

}  // namespace
}  // namespace gpuwright::cli
