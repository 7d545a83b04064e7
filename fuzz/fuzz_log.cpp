// Any bytes as a log, in pieces of a size that the first byte tells: bounded, and texts that hold no escape sequences.
#include <cstdlib>

#include "explain/explain.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpuwright;
  static const explain::RuleBook kBook = explain::RuleBook::load().value();
  if (size == 0) return 0;
  const std::string_view log(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t piece = std::size_t{data[0]} * 16 + 1;
  explain::Scanner scanner(kBook);
  scanner.begin("log");
  for (std::size_t at = 0; at < log.size(); at += piece) scanner.feed(log.substr(at, piece));
  scanner.end();
  const explain::Explanation explanation = explain::explain(kBook, scanner.scan(), {});
  if (explanation.findings.empty()) std::abort();
  for (const Finding& finding : explanation.findings)
    if (finding.title.find('\x1b') != std::string::npos || finding.cause.find('\x1b') != std::string::npos)
      std::abort();
  return 0;
}
