// A pseudo-terminal in front of a real one, for a program whose output passes through ours and who is to believe that
// it writes to a terminal.
//
// Only its output side is used. The program keeps the real terminal as its controlling one and as its standard input,
// so that keys, Ctrl-C, Ctrl-Z, fg and bg, passwords and line editing are as they always are, and stay so whatever
// becomes of us. What full-screen programs set on the terminal that they write to (raw mode, no echo) is carried over
// to the real one: the kernel tells about it in packet mode (tty_ioctl(4), TIOCPKT; TIOCPKT_IOCTL is told of terminals
// in the EXTPROC mode of RFC 1116's telnetd alone).
#pragma once

#include <termios.h>

#include "base/result.h"

namespace gpuwright {

// Not thread-safe, but for follow_size(). The real terminal's mode is given back at the end.
class PseudoTerminal {
 public:
  // With the size and the modes of the terminal `real` (a descriptor), but no bytes are changed on their way.
  static Result<PseudoTerminal> open(int real);
  PseudoTerminal(PseudoTerminal&& other) noexcept;
  PseudoTerminal& operator=(PseudoTerminal&&) = delete;
  ~PseudoTerminal();

  int master() const { return master_; }
  int slave() const { return slave_; }
  void close_slave();  // once the program has it: the output ends when nobody has

  // Takes the size of the real one.
  void follow_size() const;
  // The program changed modes: changes the same of the real one, unless somebody else has it in the foreground.
  void follow_modes();
  void give_back();

 private:
  PseudoTerminal(int real, int master, int slave) : real_(real), master_(master), slave_(slave) {}

  int real_, master_, slave_;
  termios former_{}, first_{};  // of the real one, and of ours, before the program began
  bool changed_ = false;
};

}  // namespace gpuwright
