// Test help: a file tree of its own under the temporary folder, gone when the object is.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace gpuwright::device::testing {

class Tree {
 public:
  Tree() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(::testing::TempDir()) / (std::string("gpuwright_tree_") + std::to_string(::getpid()) +
                                                           "_" + test->test_suite_name() + "_" + test->name());
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  std::string root() const { return root_.string(); }
  std::filesystem::path path(const std::string& name) const { return root_ / name; }

  // The bytes as they are: a sysfs attribute ends with a newline, which the caller writes.
  Tree& file(const std::string& name, const std::string& bytes) {
    std::filesystem::create_directories(path(name).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
    return *this;
  }
  Tree& folder(const std::string& name) {
    std::filesystem::create_directories(path(name));
    return *this;
  }
  Tree& link(const std::string& name, const std::string& target) {
    std::filesystem::create_directories(path(name).parent_path());
    std::filesystem::remove(path(name));
    std::filesystem::create_symlink(target, path(name));
    return *this;
  }
  Tree& fifo(const std::string& name) {
    std::filesystem::create_directories(path(name).parent_path());
    std::filesystem::remove(path(name));
    EXPECT_EQ(::mkfifo(path(name).c_str(), 0644), 0);
    return *this;
  }
  // So many zero bytes that take no room on the disk.
  Tree& sparse(const std::string& name, std::uintmax_t bytes) {
    file(name, "");
    std::filesystem::resize_file(path(name), bytes);
    return *this;
  }
  Tree& remove(const std::string& name) {
    std::filesystem::remove_all(path(name));
    return *this;
  }

 private:
  std::filesystem::path root_;
};

}  // namespace gpuwright::device::testing
