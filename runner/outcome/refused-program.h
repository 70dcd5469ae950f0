/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that a shell inside did not find, although the host's PATH has them.
 *
 * The name is the command's, but the directories are those of the caller's PATH, so a command
 * cannot choose what is suggested. holt follows no symlink that a sandbox may have made. */
#pragma once

#include "outcome/refused-rules.h"

/* Looks for the program in the host's PATH. Notes the options that show it and change PATH inside.
 * Returns false if there is no such program, or if no option would help. */
bool refused_program(const Search *search, const Complaint *complaint);
