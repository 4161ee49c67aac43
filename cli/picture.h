// Pictures on the terminal, beside the output of a command.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "nunchi/views/attention_picture.h"

namespace nunchi::cli {

// --picture. `what` completes "Draw …".
void add_picture(CLI::App& command, bool& picture, const std::string& what);

// For a picture on standard error: the columns of its terminal, and colours unless NO_COLOR is set;
// 80 columns without colours elsewhere.
AttentionPictureOptions picture_options();

// Prints the picture, if it is not empty, and an empty line on standard error. Standard output must
// have been flushed.
void print_picture(const std::string& picture);

}  // namespace nunchi::cli
