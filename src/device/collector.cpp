#include "device/collector.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <exception>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "device/frame.h"
#include "device/frame_codec.h"
#include "sim/host.h"

namespace gpuwright::device {
namespace {

using Milliseconds = std::chrono::milliseconds;

// Messages of the child: a letter and a frame. Requests of the parent: a length and the forbidden places.
constexpr char kRowsSoFar = 'R';
constexpr char kAnswer = 'A';
constexpr std::size_t kRequestHead = 4;
constexpr std::size_t kLargestRequest = 1 << 20;
constexpr std::size_t kMostForbidden = 4096;
constexpr Milliseconds kLongestWait{100};  // between two looks at the shared page
constexpr Milliseconds kEndTakes{200};

std::int64_t nanoseconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool receive_all(int socket, char* into, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::recv(socket, into, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    into += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

template <class Codec, class Places>
void places_of(Codec& codec, Places& places) {
  codec.list(places, kMostForbidden, [&codec](auto& place) {
    codec(place.source);
    codec(place.device);
  });
}

std::string request_for(const std::vector<Place>& forbidden, Milliseconds budget) {
  Encoder encoder;
  encoder(static_cast<std::int64_t>(budget.count()));
  places_of(encoder, forbidden);
  const std::size_t length = encoder.bytes().size();
  std::string request;
  for (int i = 0; i < static_cast<int>(kRequestHead); ++i) request.push_back(static_cast<char>(length >> (8 * i)));
  return request + encoder.bytes();
}

struct Request {
  std::int64_t budget_ms = 0;
  std::vector<Place> forbidden;
};

// Nothing when the parent has gone.
std::optional<Request> next_request(int socket) {
  std::array<char, kRequestHead> head{};
  if (!receive_all(socket, head.data(), head.size())) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = 0; i < kRequestHead; ++i) length |= std::size_t{static_cast<unsigned char>(head[i])} << (8 * i);
  if (length > kLargestRequest) return std::nullopt;
  std::string text(length, '\0');
  if (!receive_all(socket, text.data(), text.size())) return std::nullopt;
  Request request;
  Decoder decoder(text);
  decoder(request.budget_ms);
  places_of(decoder, request.forbidden);
  if (decoder.failed()) return std::nullopt;
  return request;
}

// The host's name under a root other than this machine's is that of the captured tree.
std::string hostname_under(const std::string& root) {
  if (root.empty()) {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
  }
  const auto text = read_file(root + "/etc/hostname", 4096);
  return text ? std::string(trim(*text)) : "";
}

}  // namespace

// ---------------------------------------------------------------- the sources, in this process

SourceSet::SourceSet(std::vector<SourceEntry> entries, SourceOptions options) : options_(std::move(options)) {
  for (SourceEntry& entry : entries) sources_.push_back({std::move(entry), nullptr});
}

void SourceSet::read(Snapshot& snapshot, CallWatch& watch) {
  snapshot.hostname = options_.simulated ? options_.simulated->hostname() : hostname_under(options_.root);
  snapshot.simulated = options_.simulated ? options_.simulated->name() : "";
  snapshot.time = UnixTime{nanoseconds_of(CLOCK_REALTIME)};
  snapshot.monotonic_ns = nanoseconds_of(CLOCK_MONOTONIC);
  for (Made& made : sources_)
    if (!watch.forbidden(made.entry.name, -1)) read_one(made, snapshot, watch);
}

void SourceSet::read_one(Made& made, Snapshot& snapshot, CallWatch& watch) {
  try {
    watch.enter(made.entry.name, -1, "");  // what it does before its first call is on its own account, too
    if (!made.source) made.source = made.entry.make();
    if (made.source) made.source->read(snapshot, watch);
  } catch (const std::exception& fault) {
    snapshot.sources.push_back({made.entry.name, SourceReport::Outcome::failed, printable(fault.what()), ""});
  }
  watch.leave();
}

// ---------------------------------------------------------------- the child

// The parent reads it when the child is silent or dead, and then it stands still; a parent that is too early sees half
// a name, no more: texts are copied with their bounds.
struct Collector::Note {
  std::atomic<std::uint32_t> sequence;
  std::atomic<std::int64_t> since;  // CLOCK_MONOTONIC
  std::atomic<int> device;
  std::array<char, 24> entry;  // of the list of sources: who runs
  std::array<char, 24> source;
  std::array<char, 96> call;

  void write(std::string_view new_entry, std::string_view new_source, int new_device, std::string_view new_call) {
    copy(new_entry, entry);
    copy(new_source, source);
    copy(new_call, call);
    device.store(new_device, std::memory_order_relaxed);
    since.store(nanoseconds_of(CLOCK_MONOTONIC), std::memory_order_relaxed);
    sequence.fetch_add(1, std::memory_order_release);  // last: whoever sees the new number sees the rest
  }

 private:
  template <std::size_t kSize>
  static void copy(std::string_view text, std::array<char, kSize>& into) {
    const std::size_t length = std::min(text.size(), kSize - 1);
    std::memcpy(into.data(), text.data(), length);
    into[length] = '\0';
  }
};

class Collector::Watch : public CallWatch {
 public:
  Watch(Note& note, int socket) : note_(note), socket_(socket) {}

  void begin(const Snapshot& snapshot, Request request) {
    snapshot_ = &snapshot;
    forbidden_ = std::move(request.forbidden);
    budget_ = Milliseconds(request.budget_ms);
  }
  void enter(std::string_view source, int vendor_index, const char* call) override {
    tell_new_rows();
    if (vendor_index < 0 && *call == '\0') running_ = source;
    note_.write(running_, source, vendor_index, call);
  }
  void leave() override { note_.write(running_, running_, -1, ""); }
  Milliseconds budget() const override { return budget_; }
  void end() {
    running_.clear();
    leave();
  }
  bool forbidden(std::string_view source, int vendor_index) const override {
    return std::any_of(forbidden_.begin(), forbidden_.end(), [&](const Place& place) {
      return place.source == source && (place.device == vendor_index || place.device == -1);
    });
  }

 private:
  // Only rows that were not told of in an earlier reading, and the last one again once it has a name: when the devices
  // are known, this costs nothing.
  void tell_new_rows() {
    const std::vector<Gpu>& rows = snapshot_->gpus;
    if (rows.empty() || rows.size() < rows_told_) return;
    const bool has_name = rows.back().uuid.known() || rows.back().name.known();
    if (rows.size() == rows_told_ && (last_has_name_ || !has_name)) return;
    rows_told_ = rows.size();
    last_has_name_ = has_name;
    send_all(socket_, kRowsSoFar + encode_frame(*snapshot_));
  }

  Note& note_;
  int socket_;
  const Snapshot* snapshot_ = nullptr;
  std::vector<Place> forbidden_;
  std::string running_;
  Milliseconds budget_{};
  std::size_t rows_told_ = 0;
  bool last_has_name_ = false;
};

int Collector::serve(int socket, SourceSet& sources, Note& note) {
  Watch watch(note, socket);
  while (auto request = next_request(socket)) {
    Snapshot snapshot;
    watch.begin(snapshot, std::move(*request));
    sources.read(snapshot, watch);
    watch.end();
    if (!send_all(socket, kAnswer + encode_frame(snapshot))) break;
  }
  return 0;
}

// ---------------------------------------------------------------- the parent

Result<Collector> Collector::start(std::vector<SourceEntry> entries, const SourceOptions& options) {
  auto note = GW_TRY(Shared<Note>::make());
  SourceSet sources(std::move(entries), options);
  auto worker = GW_TRY(Worker::start("gpuwright-ask", [&](int socket) { return serve(socket, sources, *note); }));
  return Collector(std::move(worker), std::move(note));
}

namespace {

// How long the child has been in one call, as far as this process was awake to see it: when both were stopped (Ctrl-Z)
// the call is not to blame.
class Silence {
 public:
  Silence(std::uint32_t sequence) : sequence_(sequence), looked_(nanoseconds_of(CLOCK_MONOTONIC)) {}
  Milliseconds lasted() const { return Milliseconds(lasted_ / 1'000'000); }
  void look(std::uint32_t sequence, std::int64_t since, Milliseconds waited) {
    const std::int64_t now = nanoseconds_of(CLOCK_MONOTONIC);
    const std::int64_t most = std::chrono::nanoseconds(waited + kLongestWait).count();
    const std::int64_t elapsed = std::min(now - std::exchange(looked_, now), most);
    lasted_ = sequence == sequence_ ? lasted_ + elapsed : std::clamp<std::int64_t>(now - since, 0, elapsed);
    sequence_ = sequence;
  }

 private:
  std::uint32_t sequence_;
  std::int64_t looked_;
  std::int64_t lasted_ = 0;
};

}  // namespace

tl::expected<Snapshot, CollectorTrouble> Collector::ask(const std::vector<Place>& forbidden, Patience patience,
                                                        Snapshot& seen) {
  received_.clear();
  if (!send_all(worker_.socket(), request_for(forbidden, patience.all))) return tl::unexpected(died());
  Silence silence(note_->sequence.load(std::memory_order_acquire));
  while (true) {
    const Milliseconds allowed = note_->device.load(std::memory_order_relaxed) < 0 ? patience.library : patience.device;
    if (silence.lasted() >= allowed) return tl::unexpected(hung(allowed));
    const Milliseconds wait = std::min({kLongestWait, patience.device, allowed - silence.lasted()});
    pollfd wanted{worker_.socket(), POLLIN, 0};
    const int ready = ::poll(&wanted, 1, static_cast<int>(wait.count()));
    silence.look(note_->sequence.load(std::memory_order_acquire), note_->since.load(std::memory_order_relaxed), wait);
    if (ready <= 0) continue;
    if (!receive_some()) return tl::unexpected(died());
    while (auto message = next_message()) {
      if (!message->snapshot) return tl::unexpected(trouble(CollectorTrouble::Kind::died, "sent what is no answer"));
      if (message->is_answer) return std::move(*message->snapshot);
      seen = std::move(*message->snapshot);
    }
  }
}

bool Collector::receive_some() {
  std::array<char, 1 << 16> bytes;
  const ssize_t got = ::recv(worker_.socket(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) return false;
  received_.append(bytes.data(), static_cast<std::size_t>(got));
  return true;
}

std::optional<Collector::Message> Collector::next_message() {
  if (received_.size() < 1 + kFrameHeadSize) return std::nullopt;
  const std::string_view rest = std::string_view(received_).substr(1);
  const auto head = frame_head(rest);
  if (!head) return Message{};
  if (rest.size() < head->size) return std::nullopt;
  Message message{received_.front() == kAnswer, std::nullopt};
  if (auto decoded = decode_frame(rest, "collector")) message.snapshot = std::move(decoded->snapshot);
  received_.erase(0, 1 + head->size);
  return message;
}

CollectorTrouble Collector::trouble(CollectorTrouble::Kind kind, std::string_view what) const {
  const auto text_of = [](const auto& characters) {
    return printable(std::string_view(characters.data(), ::strnlen(characters.data(), characters.size())));
  };
  CollectorTrouble trouble;
  trouble.kind = kind;
  trouble.place = {text_of(note_->source), note_->device.load(std::memory_order_relaxed)};
  trouble.entry = text_of(note_->entry);
  trouble.call = text_of(note_->call);
  trouble.text = std::string(what);
  return trouble;
}

CollectorTrouble Collector::hung(Milliseconds waited) const {
  CollectorTrouble trouble = this->trouble(CollectorTrouble::Kind::hung, "");
  const std::string& who = !trouble.call.empty() ? trouble.call : trouble.place.source;
  trouble.text = fmt::format("{} did not answer in {} ms", who.empty() ? "nobody" : who, waited.count());
  return trouble;
}

CollectorTrouble Collector::died() {
  CollectorTrouble trouble = this->trouble(CollectorTrouble::Kind::died, "");
  const auto end = worker_.ended(kEndTakes);
  trouble.killed = end && end->signal == SIGKILL;
  trouble.text = fmt::format("the process that asks the drivers {}", end ? end->text() : "closed its socket");
  const std::string& where = !trouble.call.empty() ? trouble.call : trouble.place.source;
  if (!where.empty()) trouble.text += fmt::format(" in {}", where);
  return trouble;
}

}  // namespace gpuwright::device
