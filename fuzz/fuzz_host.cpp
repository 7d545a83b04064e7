// Any bytes as a captured machine (src/doctor/archive.h): whatever stands in its files, nothing is read or written
// outside of its folder, every check comes back, and what a bundle of it holds can be read again.
#include <cstdlib>
#include <string>

#include "doctor/archive.h"
#include "doctor/bundle.h"
#include "doctor/capture.h"
#include "doctor/doctor.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpuwright;          // NOLINT: a fuzz target of one file
  using namespace gpuwright::doctor;  // NOLINT
  static const auto catalog = catalog::Catalog::load();
  static const auto book = ProblemBook::load();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto archive = parse_archive(text);
  if (!archive || archive->size() > 200) return 0;
  const auto again = parse_archive(archive_text(*archive));
  if (!again || archive_text(*again) != archive_text(*archive)) std::abort();
  const auto unpacked = UnpackedHost::unpack(*archive);
  if (!unpacked) return 0;
  const auto host = Host::open(unpacked->root());
  if (!host) return 0;
  const auto snapshot = captured_snapshot(*host);
  const Machine machine(*host, *catalog, snapshot && *snapshot ? &**snapshot : nullptr);
  DiagnosisOptions options;
  const Diagnosis diagnosis = diagnose(machine, *book, options);
  for (const Finding& finding : diagnosis.findings)
    for (const char c : finding.title + finding.cause)
      if (c == '\x1b') std::abort();
  options.performance = true;
  static_cast<void>(diagnose(machine, *book, options));
  if (!parse_archive(archive_text(bundle(machine)))) std::abort();
  return 0;
}
