// What fit says to an out-of-memory finding: what the job needs of what there is, and settings that fit, each computed.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "catalog/catalog.h"
#include "cli/command.h"
#include "explain/explain.h"

namespace gpuwright::cli {

// Puts fit's answers before the fixes of the finding that is about the GPU's memory, if there is one. The job is
// `words`
// ("llama-3.1-8b --train lora --batch 8", the words of gpuwright fit; may be empty) over what the log itself says; the
// GPU is that of the words, else of the log, else a card of the size that the message states. `log` is read once more;
// "-" cannot be. Without words a log that does not tell the job is no error; with words that fit refuses, the error is
// fit's.
Status add_answers_of_fit(const std::string& words, const std::string& log, const catalog::Catalog& catalog,
                          explain::Explanation& explanation, const Console& console);

// The same for words that are known one by one, and a log that is at hand (null: none).
Status add_answers_of_fit(const std::vector<std::string>& words, const ByteSource* log, const catalog::Catalog& catalog,
                          explain::Explanation& explanation, const Console& console);

}  // namespace gpuwright::cli
