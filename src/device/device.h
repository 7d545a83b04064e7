// Umbrella of the room of live devices: the GPUs that are in this machine now. Knows nothing of models.
#pragma once

#include "device/memory.h"
