#include "context.hpp"

#include "../support/exit_code.hpp"

namespace conform_program {
int run_file(const command&, const built_for&) { return support::usage_failure; }
}  // namespace conform_program
