#include "cli/run/listener.h"

#include <algorithm>
#include <utility>

namespace gpuwright::cli {
namespace {

constexpr std::size_t kLongestLine = 64 << 10;  // longer ones are cut
constexpr std::size_t kMostWaiting = 8 << 20;   // then who adds waits
constexpr std::size_t kWorthWaking = 64 << 10;  // less may wait for the end: nobody asks before
constexpr std::size_t kPiece = 4 << 20;
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
  bytes_ += static_cast<std::int64_t>(bytes.size());
  if (!bytes.empty()) in_line_ = bytes.back() != '\n';
  const auto has_room = [this] { return spill_.empty() && waiting_.size() < kMostWaiting; };
  const bool few = waiting_.size() < kWorthWaking;
  if (!has_room()) {
    fresh_.clear();
    merger_.add(output, bytes, fresh_);
    if (spill_.add(fresh_)) return;
    // Others may add while this waits: their lines may come first.
    const std::string late = std::move(fresh_);
    fresh_.clear();
    room_.wait(lock, has_room);
    waiting_ += late;
  } else {
    merger_.add(output, bytes, waiting_);
  }
  if (few && waiting_.size() >= kWorthWaking) more_.notify_one();
}

std::int64_t Listener::unread() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(waiting_.size()) + spill_.size();
}

// With the lock held. False: nothing waits, and nothing will come.
bool Listener::take_next(std::string& text) {
  text.clear();
  if (ended_) merger_.finish(spill_.empty() ? waiting_ : fresh_end_);
  if (!waiting_.empty())
    std::swap(text, waiting_);
  else if (!spill_.empty())
    whole_ = spill_.take(text, kPiece) && whole_;
  else
    std::swap(text, fresh_end_);
  return !text.empty();
}

void Listener::run() {
  loaded_ = explain::RuleBook::load();
  if (*loaded_) {
    book_ = std::make_unique<explain::RuleBook>(std::move(**loaded_));
    scanner_ = std::make_unique<explain::Scanner>(*book_);
    scanner_->begin(source_);
  }
  std::string text;
  std::unique_lock lock(mutex_);
  while (true) {
    more_.wait(lock, [this] { return ended_ || waiting_.size() >= kWorthWaking || !spill_.empty(); });
    const bool some = take_next(text);
    if ((!some && ended_) || impatient_) break;
    lock.unlock();
    room_.notify_all();
    if (scanner_) scanner_->feed(text);
    ends_.add(text);
    lock.lock();
  }
  if (scanner_) scanner_->end();
  done_ = true;
  end_.notify_all();
}

Result<Listener::Heard> Listener::finish(std::optional<std::chrono::milliseconds> patience) {
  std::unique_lock lock(mutex_);
  ended_ = true;
  more_.notify_one();
  if (patience) impatient_ = !end_.wait_for(lock, *patience, [this] { return done_; });
  lock.unlock();
  thread_.join();
  if (!*loaded_) return tl::unexpected(loaded_->error());
  return Heard{std::move(book_), std::move(scanner_), ends_.text(), bytes_, unread(), whole_, !in_line_};
}

}  // namespace gpuwright::cli
