// gpuwright run: a job as it would be without us, and what became of it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

#include "base/child.h"
#include "base/pseudo_terminal.h"
#include "base/reserved_file.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/live/values.h"
#include "cli/run/advice.h"
#include "cli/run/explain_job.h"
#include "cli/run/gpu_watch.h"
#include "cli/run/kernel_log.h"
#include "cli/run/listener.h"
#include "cli/run/pump.h"
#include "cli/run/run_report.h"

namespace gpuwright::cli {
namespace {

constexpr int kCannotExecute = 126, kNoSuchProgram = 127;  // as shells have it

constexpr std::chrono::milliseconds kPatience{2000};
constexpr std::int64_t kWorthSaying = 64 << 20;

using Clock = std::chrono::steady_clock;

struct RunRequest {
  std::vector<std::string> command;
  std::optional<ReservedFile> report;
  std::unique_ptr<Feed> feed;
  WatchPace pace;
  bool quiet = false;
};

Result<RunRequest> read_request(const Arguments& arguments) {
  RunRequest request;
  request.command = arguments.values("COMMAND");
  request.quiet = arguments.has("--quiet");
  if (arguments.has("--interval")) request.pace.seconds = GW_TRY(seconds_of(arguments, "--interval", 1));
  device::Wants wants;
  wants.health = false;
  request.feed = GW_TRY(open_feed(arguments, wants));
  if (const auto path = arguments.value("--report")) request.report.emplace(GW_TRY(ReservedFile::open(*path)));
  return request;
}

// Both are one file, so that who reads it sees both in the order in which they were written.
bool same_file(int a, int b) {
  struct stat first {
  }, second{};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

// Where the job writes to, and what brings that to our outputs.
class Outputs {
 public:
  Result<ChildOutputs> open() {
    ChildOutputs child;
    const bool out = is_terminal(STDOUT_FILENO), err = is_terminal(STDERR_FILENO);
    if (out || err) {
      auto terminal = PseudoTerminal::open(out ? STDOUT_FILENO : STDERR_FILENO);
      // Without one (no /dev/pts in a chroot) the job sees pipes.
      if (terminal) terminal_ = std::make_unique<PseudoTerminal>(std::move(*terminal));
    }
    const bool in_terminal = terminal_ != nullptr;
    if (in_terminal && out) child.out = terminal_->slave();
    if (in_terminal && err) child.err = terminal_->slave();
    if (in_terminal) ways_.push_back({terminal_->master(), out ? STDOUT_FILENO : STDERR_FILENO, true});
    if (child.out < 0) child.out = GW_TRY(add_pipe(STDOUT_FILENO));
    if (child.err < 0)
      child.err = same_file(STDOUT_FILENO, STDERR_FILENO) ? child.out : GW_TRY(add_pipe(STDERR_FILENO));
    return child;
  }

  ~Outputs() { close_ends(); }

  // The job has its ends.
  void start(Listener& listener) {
    close_ends();
    for (std::size_t i = 0; i < ways_.size(); ++i)
      pumps_.push_back(std::make_unique<Pump>(ways_[i].from, ways_[i].to, ways_[i].terminal ? terminal_.get() : nullptr,
                                              [&listener, i](std::string_view bytes) { listener.add(i, bytes); }));
  }

  // What is left of the outputs goes on elsewhere: true when somebody still had them open.
  bool finish() {
    std::vector<int> left;
    for (auto& pump : pumps_) pump->finish();
    for (auto& pump : pumps_) {
      if (const int descriptor = pump->release(); descriptor >= 0) left.push_back(descriptor);
      if (pump->write_error() != 0 && write_error_ == 0) write_error_ = pump->write_error();
    }
    drain_elsewhere(left);
    if (terminal_) terminal_->give_back();
    return !left.empty();
  }

  int write_error() const { return write_error_; }
  void follow_size() const {
    if (terminal_) terminal_->follow_size();
  }

 private:
  struct Way {
    int from, to;
    bool terminal;
  };

  Result<int> add_pipe(int to) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return fail(ErrorCode::unavailable, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    ways_.push_back({ends[0], to, false});
    write_ends_.push_back(ends[1]);
    return ends[1];
  }

  void close_ends() {
    for (const int end : write_ends_) ::close(end);
    write_ends_.clear();
    if (terminal_) terminal_->close_slave();
  }

  std::unique_ptr<PseudoTerminal> terminal_;
  std::vector<Way> ways_;
  std::vector<int> write_ends_;
  std::vector<std::unique_ptr<Pump>> pumps_;
  int write_error_ = 0;
};

// A job that stopped itself leaves its shell waiting for us: we stop as well, and take it along when we are told to go
// on. Not where nobody at a terminal could tell us; and not after a Ctrl-Z, which the terminal sends to both: by the
// second look we have been stopped and are going on, and so is the job.
void stop_with(pid_t job) {
  constexpr timespec kSettled{0, 30'000'000};
  if (!is_stopped(job) || !is_in_foreground()) return;
  ::nanosleep(&kSettled, nullptr);
  if (!is_stopped(job)) return;
  ::raise(SIGSTOP);
  ::kill(job, SIGCONT);
}

// What is typed at the terminal reaches the job by itself, as it is in our process group; what is sent to us alone is
// passed on.
ChildEnd wait_for(pid_t job, const HeldSignals& signals, const Outputs& outputs) {
  while (true) {
    if (const auto end = child_end(job)) return *end;
    const HeldSignals::Arrival arrival = signals.wait();
    if (arrival.number == SIGCHLD) {
      stop_with(job);
      continue;
    }
    if (arrival.number == SIGWINCH) outputs.follow_size();
    if (arrival.number == SIGWINCH || !arrival.from_kernel) ::kill(job, arrival.number);
  }
}

int processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(CPU_COUNT(&set), 1);
}

// The job's output is ours; what we say goes to standard error.
Console error_console(const Console& console, const Arguments& arguments) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  Console answer{console.err, console.err};
  answer.terminal = console.terminal;
  answer.color = console.terminal && !console.json && !arguments.has("--no-color") && variable("NO_COLOR").empty() &&
                 variable("TERM") != "dumb";
  answer.unicode = console.unicode;
  answer.language = console.language;
  answer.json = console.json;
  answer.width = terminal_width(STDERR_FILENO).value_or(console.width);
  answer.wide = !console.terminal && console.wide;
  return answer;
}

class JobRun {
 public:
  JobRun(RunRequest request, const Console& console) : request_(std::move(request)), console_(console) {}

  int run() {
    const HeldSignals signals;
    const std::string mark = fmt::format("GPUWRIGHT_RUN={}.{}", ::getpid(), Clock::now().time_since_epoch().count());
    const auto child = outputs_.open();
    if (!child) return give_up(child.error(), kOwnFailure);
    KernelLog kernel;
    outcome_.command = request_.command;
    outcome_.processors = processors();
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    outcome_.began = iso_time({std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()});
    const auto begin = Clock::now();
    const auto job = start_child(request_.command, *child, mark);
    if (!job) return give_up(job.error(), code_of(job.error()));

    const std::string& program = request_.command.front();
    Listener listener(program.substr(program.rfind('/') + 1));
    outputs_.start(listener);
    GpuWatch watch(std::move(request_.feed), request_.pace, JobProcesses(*job, mark, starts_containers(program)));
    outcome_.end = wait_for(*job, signals, outputs_);
    outcome_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    outcome_.gpus = watch.finish();
    outcome_.left_running = outputs_.finish();
    if (console_.terminal && outcome_.failed() && listener.unread() > kWorthSaying)
      console_.err << "gpuwright run: the job has ended; reading the rest of what it printed ("
                   << to_string(Bytes{listener.unread()}) << ")\n";
    return conclude(listener, kernel);
  }

  static constexpr int kOwnFailure = 125;

 private:
  static int code_of(const Error& error) {
    if (error.code == ErrorCode::not_found) return kNoSuchProgram;
    return error.code == ErrorCode::bad_input ? kCannotExecute : kOwnFailure;
  }

  int give_up(const Error& error, int code) const {
    console_.err << "gpuwright run: " << error.message() << '\n';
    return code;
  }

  int conclude(Listener& listener, KernelLog& kernel) {
    outcome_.exit_code = outcome_.end.signal != 0 ? 128 + outcome_.end.signal : outcome_.end.exit_code;
    if (outputs_.write_error() != 0)
      note(fmt::format("some of the job's output could not be written: {}", std::strerror(outputs_.write_error())));
    if (outcome_.left_running)
      note("processes that the job started go on and hold its output open: what they print from now on is not shown");
    if (outputs_.write_error() != 0 && outcome_.exit_code == 0) outcome_.exit_code = kOwnFailure;
    judge(listener, kernel);
    print();
    if (request_.report) {
      const Status written = request_.report->write(to_json(outcome_).dump() + "\n");
      if (!written) {
        console_.err << "gpuwright run: " << written.error().message() << '\n';
        if (outcome_.exit_code == 0) return kOwnFailure;
      }
    }
    return outcome_.exit_code;
  }

  void note(std::string text) { outcome_.notes.push_back(std::move(text)); }

  void judge(Listener& listener, KernelLog& kernel) {
    outcome_.kernel_log_read = kernel.readable();
    const KernelSays says{lines_of_job(kernel.text(), outcome_.gpus.pids, in_first_pid_namespace()), kernel.kills()};
    // Of a job that ended well only alarming lines would be told.
    auto heard = listener.finish(outcome_.failed() ? std::nullopt : std::optional(kPatience));
    if (!heard) return note(heard.error().message());
    outcome_.bytes_printed = heard->bytes;
    ends_in_line_ = heard->ends_in_line;
    outcome_.bytes_unread = heard->unread;
    if (!heard->whole) note("some of what it printed could not be kept until it was read: a rule may have missed it");
    const auto catalog = catalog::Catalog::load();
    if (!catalog) return note(catalog.error().message());
    outcome_.explanation = explain_job(outcome_, *heard, says, *catalog, console_);
    if (outcome_.failed()) return;
    outcome_.advice = advice_on(outcome_, console_.language);
    if (auto advice = advice_of_fit(outcome_, *catalog, console_.language))
      outcome_.advice.push_back(std::move(*advice));
  }

  void print() const {
    if (request_.quiet && !outcome_.failed()) return;
    const CookedLines cooked(STDERR_FILENO);
    if (console_.terminal && !ends_in_line_) console_.err << '\n';
    if (console_.json)
      console_.err << to_json(outcome_).dump() << '\n';
    else
      print_outcome(outcome_, console_);
    console_.err.flush();
  }

  RunRequest request_;
  const Console& console_;
  Outputs outputs_;
  Outcome outcome_;
  bool ends_in_line_ = true;
};

Result<int> run_run(const Arguments& arguments, const Console& console) {
  RunRequest request = GW_TRY(read_request(arguments));
  const Console answer = error_console(console, arguments);
  return JobRun(std::move(request), answer).run();
}

std::vector<Option> run_options() {
  std::vector<Option> options = {
      {.name = "--report", .value = "FILE", .help = "write the whole report there as JSON (gpuwright.run/1)"},
      {.name = "--quiet", .short_name = "-q", .help = "say nothing when the job ended well"},
      {.name = "--interval",
       .short_name = "-i",
       .value = "SECONDS",
       .help = "between two looks at the GPUs (default: 0.25 in the first 10 s, then 1)"},
  };
  for (Option& option : live_options(Replay::no)) options.push_back(std::move(option));
  return options;
}

}  // namespace

Command run_command() {
  Command command;
  command.name = "run";
  command.summary = "Run a job, and tell what it did to the GPUs or why it failed";
  command.description =
      "Starts COMMAND as it stands, without a shell, and passes its output on unchanged, on a terminal as on one. "
      "While "
      "it runs the GPUs are looked at about once a second, which takes far less than a hundredth of a processor. When "
      "it fails, what it printed is explained (as 'gpuwright explain' does; where memory ran out, 'fit' computes what "
      "would fit from the command line), with the memory that it held to the moment of its death. When it ends well, "
      "a few lines on standard error tell how much memory of the card it took, how busy the GPU was, and what could be "
      "better.\n\n"
      "The job's processes are known by descent, also when they become daemons. Nothing is ever killed: Ctrl-C goes "
      "to the job as always, and signals that are sent to gpuwright (TERM, HUP, INT, QUIT, USR1, USR2) are passed on. "
      "With --json the report on standard error is JSON.";
  command.arguments = {{"COMMAND", "program and arguments; its options are its own", true, true, false}};
  command.options = run_options();
  command.examples = {
      {"gpuwright run -- true", "try it"},
      {"gpuwright run --report run.json -- torchrun --nproc_per_node 8 ./train.py", "keep the report for a program"},
      {"gpuwright run -q -- ./train.sh", "silent unless it fails"},
  };
  command.exit_notes = {"the job's own exit code, 128 + N when signal N ended it",
                        "125  gpuwright itself failed (wrong words, a report that cannot be written)",
                        "126  COMMAND cannot be executed", "127  there is no such COMMAND"};
  command.run = run_run;
  command.takes_command_line = true;
  command.own_failure = JobRun::kOwnFailure;
  return command;
}

}  // namespace gpuwright::cli
