#include "cli/run/listener.h"

#include <algorithm>
#include <utility>

namespace gpuwright::cli {
namespace {

constexpr std::size_t kLongestLine = 64 << 10;  // longer ones are cut
constexpr std::size_t kMostWaiting = 8 << 20;   // then who adds waits
constexpr std::size_t kWorthWaking = 64 << 10;  // less may wait for the end: nobody asks before
constexpr std::size_t kFirst = 256 << 10, kLast = 1 << 20;

}  // namespace

void LineMerger::add(std::size_t output, std::string_view bytes, std::string& onto) {
  std::string& begun = begun_[output];
  std::size_t end = bytes.rfind('\n');
  // Progress bars go back to the begin of their line instead of ending it.
  if (end == std::string_view::npos && bytes.size() > 1) end = bytes.substr(0, bytes.size() - 1).rfind('\r');
  if (end != std::string_view::npos) {
    onto += begun;
    onto += bytes.substr(0, end + 1);
    begun.clear();
    bytes.remove_prefix(end + 1);
  }
  begun += bytes;
  if (begun.size() < kLongestLine) return;
  onto += begun;
  begun.clear();
}

void LineMerger::finish(std::string& onto) {
  for (std::string& begun : begun_) {
    if (begun.empty()) continue;
    onto += begun;
    if (begun.back() != '\n') onto += '\n';
    begun.clear();
  }
}

void TextEnds::add(std::string_view bytes) {
  const std::size_t room = std::min(kFirst - first_.size(), bytes.size());
  first_ += bytes.substr(0, room);
  bytes.remove_prefix(room);
  if (bytes.size() > kLast) bytes.remove_prefix(bytes.size() - kLast);
  last_ += bytes;
  if (last_.size() > 2 * kLast) last_.erase(0, last_.size() - kLast);
}

std::string TextEnds::text() const {
  return last_.size() <= kLast ? first_ + last_ : first_ + "\n" + last_.substr(last_.size() - kLast);
}

Listener::Listener(std::string source) : source_(std::move(source)) {
  thread_ = std::thread([this] { run(); });
}

Listener::~Listener() {
  if (thread_.joinable()) static_cast<void>(finish());
}

void Listener::add(std::size_t output, std::string_view bytes) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [this] { return waiting_.size() < kMostWaiting; });
  const bool few = waiting_.size() < kWorthWaking;
  bytes_ += static_cast<std::int64_t>(bytes.size());
  if (!bytes.empty()) in_line_ = bytes.back() != '\n';
  merger_.add(output, bytes, waiting_);
  if (few && waiting_.size() >= kWorthWaking) more_.notify_one();
}

void Listener::run() {
  loaded_ = explain::RuleBook::load();
  if (*loaded_) {
    book_ = std::make_unique<explain::RuleBook>(std::move(**loaded_));
    scanner_ = std::make_unique<explain::Scanner>(*book_);
    scanner_->begin(source_);
  }
  std::string taken;
  std::unique_lock lock(mutex_);
  while (true) {
    more_.wait(lock, [this] { return ended_ || waiting_.size() >= kWorthWaking; });
    const bool last = ended_;
    if (last) merger_.finish(waiting_);
    std::swap(taken, waiting_);
    lock.unlock();
    room_.notify_all();
    if (scanner_) scanner_->feed(taken);
    ends_.add(taken);
    taken.clear();
    if (last) break;
    lock.lock();
  }
  if (scanner_) scanner_->end();
}

Result<Listener::Heard> Listener::finish() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  more_.notify_one();
  thread_.join();
  if (!*loaded_) return tl::unexpected(loaded_->error());
  return Heard{std::move(book_), std::move(scanner_), ends_.text(), bytes_, !in_line_};
}

}  // namespace gpuwright::cli
