#include "fit/strategy/strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "fit/strategy/constants.h"
#include "fit/strategy/memory.h"
#include "fit/strategy/words.h"

namespace gpuwright::fit {
namespace {

using strategy::Memory;

constexpr std::size_t kAlternatives = 4;
constexpr std::size_t kEstimatesForAlternatives = 60;

// A point of the space by its places in the lists.
struct Point {
  std::uint16_t method = 0, numerics = 0, optimizer = 0, checkpointing = 0, loss = 0, layout = 0, micro = 0;
};

struct Candidate {
  Point point;
  double cost = 1;
  bool accumulates = false;
  auto order() const {
    return std::tuple(point.method, cost, point.numerics, point.optimizer, point.loss, point.checkpointing,
                      point.layout, point.micro);
  }
};

bool is_handicapped(const TrainingJob& job) {
  return job.method == TrainingMethod::full &&
         (job.precision == Precision::pure_bf16 || job.precision == Precision::pure_fp16);
}

class Search {
 public:
  Search(const model::Model& model, const StrategyRequest& request, const Space& space,
         const std::vector<Target>& targets, const SlowdownModel& slowdown, double handicap)
      : request_(request),
        space_(space),
        gpus_(static_cast<int>(targets.size())),
        slowdown_(slowdown),
        handicap_(handicap),
        memory_(model, targets) {
    lean_.resize(groups());
    failed_[0].resize(groups() * 2);
    failed_[1].resize(groups() * 2);
    enumerate();
  }

  Result<Strategy> run() {
    Strategy answer;
    answer.plans = candidates_.size();
    if (candidates_.empty()) return no_plan();
    answer.plain = GW_TRY(plan(plain_job()));
    Verdict wanted = Verdict::fits;
    std::optional<std::size_t> best = first_that(wanted, 0);
    if (!best && !request_.strict) best = first_that(wanted = Verdict::tight, 0);
    answer.leanest = GW_TRY(plan(leanest_job()));
    if (best) {
      const Point point = candidates_[*best].point;
      answer.best = GW_TRY(plan(*job_of(point)));
      answer.best->estimate = GW_TRY(memory_.exact(answer.best->job));
      if (answer.best->estimate.verdict() > wanted)
        return fail(ErrorCode::internal, "the search took a plan that does not fit");
      answer.steps = GW_TRY(steps_to(answer.plain, point));
      answer.alternatives = GW_TRY(alternatives(*best, wanted));
    }
    answer.estimated = memory_.estimates();
    return answer;
  }

 private:
  tl::unexpected<Error> no_plan() const {
    if (disallowed_ > 0)
      return fail(ErrorCode::unsupported,
                  fmt::format("none of the {} plans is one that can be written as asked", disallowed_),
                  "another --train-engine or --emit");
    const std::int64_t multiple = gpus_ * (request_.freedom.micro_batch ? 1 : request_.job.micro_batch);
    return fail(ErrorCode::bad_input,
                fmt::format("a global batch of {} cannot be shared out over {} {} with these settings",
                            request_.global_batch, gpus_, gpus_ == 1 ? "GPU" : "GPUs"),
                fmt::format("take a multiple of {}: --global-batch", multiple));
  }

  // ------------------------------------------------------------ points

  std::optional<TrainingJob> job_of(const Point& point) const {
    return job_at(request_.job, space_.methods[point.method], space_.numerics[point.numerics],
                  space_.optimizers[point.optimizer], space_.checkpointing[point.checkpointing],
                  space_.chunked_loss[point.loss], space_.layouts[point.layout], space_.micro_batches[point.micro],
                  request_.global_batch, gpus_, !request_.freedom.numerics);
  }

  static void add_index(std::vector<Point>& points, std::size_t count, std::uint16_t Point::*member) {
    std::vector<Point> more;
    more.reserve(points.size() * count);
    for (const Point& point : points)
      for (std::size_t i = 0; i < count; ++i) {
        more.push_back(point);
        more.back().*member = static_cast<std::uint16_t>(i);
      }
    points = std::move(more);
  }

  void enumerate() {
    std::vector<Point> points = {Point{}};
    add_index(points, space_.methods.size(), &Point::method);
    add_index(points, space_.numerics.size(), &Point::numerics);
    add_index(points, space_.optimizers.size(), &Point::optimizer);
    add_index(points, space_.checkpointing.size(), &Point::checkpointing);
    add_index(points, space_.chunked_loss.size(), &Point::loss);
    add_index(points, space_.layouts.size(), &Point::layout);
    add_index(points, space_.micro_batches.size(), &Point::micro);
    for (const Point& point : points) {
      const auto job = job_of(point);
      if (!job) continue;
      if (request_.allowed && !request_.allowed(*job))
        ++disallowed_;
      else
        candidates_.push_back(
            {point, slowdown_.factor(*job) * (is_handicapped(*job) ? handicap_ : 1), job->gradient_accumulation > 1});
    }
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Candidate& a, const Candidate& b) { return a.order() < b.order(); });
    answers_.resize(candidates_.size());
  }

  // ------------------------------------------------------------ bounds

  std::size_t groups() const {
    return space_.methods.size() * space_.numerics.size() * space_.optimizers.size() * space_.checkpointing.size() *
           space_.layouts.size();
  }
  std::size_t group_of(const Point& point) const {
    std::size_t group = point.method;
    group = group * space_.numerics.size() + point.numerics;
    group = group * space_.optimizers.size() + point.optimizer;
    group = group * space_.checkpointing.size() + point.checkpointing;
    return group * space_.layouts.size() + point.layout;
  }

  // What needs no more than any plan of the group: the smallest micro-batch, a chunked loss, and no gradients kept from
  // one micro-batch to the next. It need not be a plan itself.
  const Memory::Answer& leanest_of(const Point& point) {
    auto& answer = lean_[group_of(point)];
    if (!answer) {
      TrainingJob job = *job_of(point);
      job.micro_batch = *std::min_element(space_.micro_batches.begin(), space_.micro_batches.end());
      job.gradient_accumulation = 1;
      job.chunked_cross_entropy =
          std::find(space_.chunked_loss.begin(), space_.chunked_loss.end(), true) != space_.chunked_loss.end();
      answer = memory_.ask(job);
      if (answer->valid && (!leanest_ || answer->shortfall < leanest_->first)) leanest_ = {answer->shortfall, point};
    }
    return *answer;
  }

  // Plans of one group that failed; a plan that needs at least as much in each respect fails, too.
  struct Failure {
    bool chunked = false;
    std::int64_t micro_batch = 0;
  };
  bool ruled_out(const Candidate& candidate, Verdict wanted) {
    if (leanest_of(candidate.point).verdict > wanted) return true;
    const bool chunked = space_.chunked_loss[candidate.point.loss];
    const std::int64_t micro_batch = space_.micro_batches[candidate.point.micro];
    const auto& failures =
        failed_[wanted == Verdict::fits ? 0 : 1][group_of(candidate.point) * 2 + candidate.accumulates];
    return std::any_of(failures.begin(), failures.end(), [&](const Failure& failure) {
      return micro_batch >= failure.micro_batch && (failure.chunked || !chunked);
    });
  }

  bool good(std::size_t index, Verdict wanted) {
    const Candidate& candidate = candidates_[index];
    if (!answers_[index]) {
      if (ruled_out(candidate, wanted)) return false;
      answers_[index] = memory_.ask(*job_of(candidate.point));
    }
    if (answers_[index]->verdict <= wanted) return true;
    failed_[wanted == Verdict::fits ? 0 : 1][group_of(candidate.point) * 2 + candidate.accumulates].push_back(
        {static_cast<bool>(space_.chunked_loss[candidate.point.loss]), space_.micro_batches[candidate.point.micro]});
    return false;
  }

  std::optional<std::size_t> first_that(Verdict wanted, std::size_t from) {
    for (std::size_t i = from; i < candidates_.size(); ++i)
      if (good(i, wanted)) return i;
    return std::nullopt;
  }

  // ------------------------------------------------------------ answers

  Result<Plan> plan(const TrainingJob& job) { return Plan{job, GW_TRY(memory_.full(job)), slowdown_.explain(job)}; }

  Point plain_point() const {
    const auto plain = [](const Point& point) {
      return std::tuple(point.method, point.numerics, point.layout, point.optimizer, point.checkpointing, point.loss,
                        -static_cast<int>(point.micro));
    };
    return std::min_element(candidates_.begin(), candidates_.end(),
                            [&](const Candidate& a, const Candidate& b) { return plain(a.point) < plain(b.point); })
        ->point;
  }
  TrainingJob plain_job() const { return *job_of(plain_point()); }

  TrainingJob leanest_job() const {
    if (!leanest_) return plain_job();
    const std::size_t group = group_of(leanest_->second);
    const auto cost = [&](const Candidate& candidate) {
      return std::tuple(group_of(candidate.point) != group, space_.micro_batches[candidate.point.micro],
                        !space_.chunked_loss[candidate.point.loss]);
    };
    return *job_of(
        std::min_element(candidates_.begin(), candidates_.end(), [&](const Candidate& a, const Candidate& b) {
          return cost(a) < cost(b);
        })->point);
  }

  std::string change(std::uint16_t Point::*member, const Point& point) const {
    const TrainingJob job = *job_of(point);
    if (member == &Point::micro)
      return fmt::format("micro-batches of {} x {} accumulated", job.micro_batch, job.gradient_accumulation);
    if (member == &Point::loss) return "cross-entropy in chunks";
    if (member == &Point::layout) return describe_layout(job);
    if (member == &Point::checkpointing) return describe_checkpointing(job.checkpointing);
    if (member == &Point::numerics) return "everything in bf16, no master weights";
    if (member == &Point::optimizer) return fmt::format("optimizer {}", name_of(job.optimizer));
    return fmt::format("{} instead of {}", name_of(job.method), name_of(space_.methods.front()));
  }

  Result<std::vector<StrategyStep>> steps_to(const Plan& plain, const Point& goal) {
    constexpr std::array kOrder = {&Point::micro,    &Point::loss,      &Point::layout, &Point::checkpointing,
                                   &Point::numerics, &Point::optimizer, &Point::method};
    std::vector<StrategyStep> steps;
    Point at = plain_point();
    Bytes peak = strategy::peak_of(plain.estimate);
    std::string pending;  // changes that only work together with the next
    for (std::uint16_t Point::*member : kOrder) {
      if (at.*member == goal.*member) continue;
      at.*member = goal.*member;
      const auto job = job_of(at);
      std::string text = pending;
      if (job) text += (text.empty() ? "" : "; ") + change(member, at);
      const auto after = job ? plan(*job) : Result<Plan>(fail(ErrorCode::bad_input, ""));
      if (!after) {
        pending = text;
        continue;
      }
      pending.clear();
      const Bytes now = strategy::peak_of(after->estimate);
      steps.push_back({text, now, peak - now, after->slowdown.factor, after->estimate.verdict()});
      peak = now;
    }
    return steps;
  }

  // The best plan of each other method, precision and layout, in the search's own order.
  Result<std::vector<Plan>> alternatives(std::size_t best, Verdict wanted) {
    const auto shape = [](const Point& point) { return std::tuple(point.method, point.numerics, point.layout); };
    std::vector<decltype(shape(Point{}))> seen = {shape(candidates_[best].point)};
    std::vector<Plan> plans;
    const std::size_t until = memory_.estimates() + kEstimatesForAlternatives;
    for (std::size_t i = best + 1; i < candidates_.size() && plans.size() < kAlternatives; ++i) {
      const auto mine = shape(candidates_[i].point);
      if (std::find(seen.begin(), seen.end(), mine) != seen.end() || memory_.estimates() > until) continue;
      if (!good(i, wanted)) continue;
      seen.push_back(mine);
      plans.push_back(GW_TRY(plan(*job_of(candidates_[i].point))));
    }
    return plans;
  }

  const StrategyRequest& request_;
  const Space& space_;
  int gpus_;
  const SlowdownModel& slowdown_;
  double handicap_;
  Memory memory_;
  std::vector<Candidate> candidates_;
  std::size_t disallowed_ = 0;
  std::vector<std::optional<Memory::Answer>> answers_;  // of each candidate
  std::vector<std::optional<Memory::Answer>> lean_;     // of each group
  std::vector<std::vector<Failure>> failed_[2];         // for `fits` and `tight`; by group and accumulation
  std::optional<std::pair<Bytes, Point>> leanest_;
};

}  // namespace

Result<double> cost_of(const TrainingJob& job, const SlowdownModel& slowdown) {
  return slowdown.factor(job) *
         (is_handicapped(job) ? GW_TRY(strategy::constant("pure_16bit_handicap")).expected : 1.0);
}

Result<Strategy> find_strategy(const model::Model& model, const StrategyRequest& request, const Space& space,
                               const std::vector<Target>& targets, const Machine& machine) {
  if (targets.empty()) return fail(ErrorCode::bad_input, "no GPU was named", "name one with --gpu");
  constexpr std::size_t kMostPlans = 2'000'000;
  if (space.size() > kMostPlans) return fail(ErrorCode::bad_input, "the space of plans is too large");
  const SlowdownModel slowdown = GW_TRY(SlowdownModel::create(model, request.job.method, request.job, machine));
  const double handicap = GW_TRY(strategy::constant("pure_16bit_handicap")).expected;
  return Search(model, request, space, targets, slowdown, handicap).run();
}

Result<Strategy> find_strategy(const model::Model& model, const StrategyRequest& request,
                               const std::vector<Target>& targets, const Machine& machine) {
  if (request.global_batch < 1) return fail(ErrorCode::bad_input, "the global batch must be at least 1");
  const Space space =
      space_around(request.job, request.freedom, request.global_batch, static_cast<int>(targets.size()));
  return find_strategy(model, request, space, targets, machine);
}

}  // namespace gpuwright::fit
