#pragma once
/// The commands, each in its own source file. They return the program's exit code.
#include <isotope/core/error.hpp>

#include <string_view>

namespace conform_program {

namespace iso = isotope;

struct command;

/// What the program was built for; main.cpp sets it.
struct built_for {
  std::string_view backend, precision, kernels, version, commit;
  std::string_view compiler, type, cpu_arch;
  bool meshes = false;  // the backend has kernels of ops that only plans for several devices have
};

int run(const command& c, const built_for& built);
int plan(const command& c, const built_for& built);
int merge(const command& c);
int verify(const command& c);
int replay(const command& c, const built_for& built);
int run_file(const command& c, const built_for& built);
int golden(const command& c);

}  // namespace conform_program
