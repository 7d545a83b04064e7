// Umbrella of the room every other room stands on: results, units, text, JSON, files. It knows nothing of GPUs.
#pragma once

#include "base/embedded.h"
#include "base/file.h"
#include "base/http.h"
#include "base/json.h"
#include "base/result.h"
#include "base/text.h"
#include "base/units.h"
