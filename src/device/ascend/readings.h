// What DCMI tells of one device.
#pragma once

#include <string>
#include <string_view>

#include "base/text.h"
#include "device/ascend/library.h"
#include "device/source.h"

namespace gpuwright::device::dcmi {

inline constexpr const char* kSourceName = "dcmi";

struct Place {
  int card = 0, chip = 0;
  bool operator==(const Place&) const = default;
};

// Calls to one device, each told to the watch and counted.
class Asker {
 public:
  Asker(const Library& library, Snapshot& snapshot, CallWatch& watch)
      : library_(library), snapshot_(snapshot), watch_(watch) {}

  void set_device(int index, Place place) {
    index_ = index;
    place_ = place;
  }
  const Library& library() const { return library_; }
  const Place& place() const { return place_; }

  // The code of the call, kNotSupported where the library lacks it.
  template <class Function, class... Arguments>
  int call(const char* name, Function function, Arguments... arguments) {
    if (function == nullptr) return kNotSupported;
    watch_.enter(kSourceName, index_, name);
    const int code = function(arguments...);
    watch_.leave();
    ++snapshot_.vendor_calls;
    return code;
  }
  // `function` of this device.
  template <class Function, class... Arguments>
  int ask(const char* name, Function function, Arguments... arguments) {
    return call(name, function, place_.card, place_.chip, arguments...);
  }

 private:
  const Library& library_;
  Snapshot& snapshot_;
  CallWatch& watch_;
  int index_ = -1;
  Place place_;
};

// Text of a fixed field, which need not end with a NUL.
template <class Char, std::size_t N>
std::string text_of(const Char (&field)[N]) {
  std::string text;
  for (const Char c : field) {
    if (c == 0) break;
    text += static_cast<char>(c);
  }
  return std::string(trim(text));
}

void read_identity(Asker& asker, Gpu& gpu);
// Sets the state: lost, refused, or with an alarm.
void judge(Asker& asker, Gpu& gpu);
void read_memory(Asker& asker, Gpu& gpu);
void read_sensors(Asker& asker, Gpu& gpu);
void read_ecc(Asker& asker, Gpu& gpu);
// Adds the processes on snapshot.gpus[position].
void read_processes(Asker& asker, std::size_t position, Snapshot& snapshot);

}  // namespace gpuwright::device::dcmi
