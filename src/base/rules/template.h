// Texts of rules with facts in them: "needs {tried_bytes}, {free_bytes} are free".
#pragma once

#include <string>
#include <string_view>

#include "base/rules/facts.h"

namespace gpuwright {

// {name} becomes the fact for people (sizes in GiB or MiB, lists joined by commas), printable whatever the log held.
// A text or sentence part in [square brackets] is left out when a fact in it is not known; outside of them an unknown
// fact becomes "?".
std::string filled(std::string_view text, const Facts& facts);

// The same for a command that people paste into a shell: a fact is one word there, quoted where it has to be.
std::string filled_command(std::string_view text, const Facts& facts);

}  // namespace gpuwright
