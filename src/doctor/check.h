// A check looks at one thing of the machine and says: right, wrong, cannot tell, or does not matter here. What it found
// wrong is named by a row of data/checks*.toml, which holds the words and the fixes. A check that cannot read what it
// needs says unknown: it never guesses that something is wrong.
//
//   Outcome check_nouveau(const Machine& machine) {
//     if (!machine.has_nvidia()) return not_applicable("no NVIDIA GPU");
//     Outcome outcome = fine();
//     for (const PciGpu& gpu : machine.gpus())
//       if (gpu.driver == "nouveau")
//         outcome.wrong("kmod.nouveau").fact("gpu", gpu.name).seen(gpu.path("driver"), "-> nouveau");
//     return outcome;
//   }
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/rules/facts.h"
#include "base/units.h"

namespace gpuwright::doctor {

class Machine;

// From the ground up: each stands on those before it, so that the first that fails is the cause.
enum class Layer : std::uint8_t {
  bus,            // pci.*
  kernel_module,  // kmod.*
  driver,         // drv.*: the driver's libraries
  nodes,          // dev.*
  fabric,         // fab.*
  hardware,       // hw.*
  system,         // sys.*
  container,      // ct.*
  cuda,           // cuda.*
  framework,      // fw.*
  communication,  // nccl.*
  cluster,        // k8s.*, slurm.*
};
std::string_view to_string(Layer layer);

// Facts for texts, each named with its unit ("free_bytes"): bytes print as GiB, versions compare part by part.
class FactSheet {
 public:
  FactSheet& set(std::string_view name, std::string_view text);  // an empty text is not known
  FactSheet& set(std::string_view name, std::int64_t number);
  FactSheet& set(std::string_view name, Bytes bytes);
  FactSheet& version(std::string_view name, std::string_view text);
  FactSheet& add(std::string_view name, std::string_view item);  // to a list
  const Facts& facts() const { return facts_; }
  std::vector<FactValue> values() const;

 private:
  Facts facts_;
};

// One thing that is wrong. Problems of one check with the same id become one finding, their facts as lists.
struct Problem {
  std::string id;  // a row of data/checks*.toml
  FactSheet sheet;
  std::vector<Evidence> evidence;

  Problem& fact(std::string_view name, std::string_view text) { return sheet.set(name, text), *this; }
  Problem& fact(std::string_view name, std::int64_t number) { return sheet.set(name, number), *this; }
  Problem& fact(std::string_view name, Bytes bytes) { return sheet.set(name, bytes), *this; }
  Problem& version(std::string_view name, std::string_view text) { return sheet.version(name, text), *this; }
  Problem& item(std::string_view name, std::string_view text) { return sheet.add(name, text), *this; }
  // Where it was seen: a path and what stands there. line counts from 1; 0: the whole file.
  Problem& seen(std::string_view source, std::string_view text = {}, std::int64_t line = 0) {
    evidence.push_back({std::string(source), line, std::string(text), 1});
    return *this;
  }
};

enum class State : std::uint8_t { ok, wrong, unknown, not_applicable };
std::string_view to_string(State state);  // "ok", "wrong", "unknown", "does not apply"

struct Outcome {
  State state = State::ok;
  std::string text;  // ok: what there is ("580.95.05, open"); else why
  std::vector<Problem> problems;

  // The problem of that id, made when it is new. The reference holds until the next call.
  Problem& wrong(std::string_view id);
};
Outcome fine(std::string text = {});
Outcome unknown(std::string why);
Outcome not_applicable(std::string why);

struct Check {
  std::string_view id;  // "kmod.nouveau"
  Layer layer = Layer::bus;
  Outcome (*run)(const Machine&) = nullptr;
  enum class Use : std::uint8_t { setup, performance, both } use = Use::setup;  // performance: doctor --perf
};

}  // namespace gpuwright::doctor
