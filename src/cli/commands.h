// The commands, one function each, in the file of the same name. commands.cpp puts them into the order of the help.
#pragma once

#include "cli/command.h"

namespace gpuwright::cli {

Command gpus_command();
Command gpus_show_command();
Command gpus_compare_command();
Command fit_command();
Command model_show_command();
Command model_list_command();
Command explain_command();
Command setup_command();
Command run_command();
Command doctor_command();
Command stat_command();
Command ps_command();
Command topo_command();
Command free_command();
Command record_command();
Command report_command();

}  // namespace gpuwright::cli
