// Umbrella of the room of live devices: the GPUs that are in this machine now. A Reader (reader.h) gives Snapshots
// (snapshot.h, whose readings fields.h lists by name), filled in by sources (source.h), one a vendor's way of telling.
// Knows nothing of models.
#pragma once

#include "device/fields.h"
#include "device/reader.h"
#include "device/snapshot.h"
