// Umbrella of the room: a failing log in, findings out. A Scanner (scanner.h) reads the log with the patterns of a
// RuleBook (rules.h, data/errors*.toml); explain() decides which rules hold, puts them into causal order and fills in
// their texts.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "explain/scanner.h"

namespace gpuwright::explain {

struct Benign {
  std::string text;  // why it is harmless
  std::vector<Evidence> evidence;
  std::int64_t count = 0;
};

struct Explanation {
  // Causes in the order in which they were seen, then their consequences, then warnings. Never empty: "unknown" where
  // something failed that no rule knows, "healthy" where nothing did.
  std::vector<Finding> findings;
  std::vector<Benign> benign;
  std::vector<FactValue> facts;  // of the whole incident
  std::int64_t lines = 0, bytes = 0;
};

struct ExplainOptions {
  std::string language = "en";
  // What the tables know (lookup.h); may be empty.
  std::function<std::optional<std::string>(std::string_view question, std::string_view of)> lookup;
};

Explanation explain(const RuleBook& book, const Scan& scan, const ExplainOptions& options);

// The kinds of the causes, joined by "+": "driver.too_old+not_gpu.numpy2".
std::string verdict(const Explanation& explanation);

}  // namespace gpuwright::explain
