/// isotope-conform: checks that a backend computes what the ops define. See --help.
#include "command.hpp"
#include "commands.hpp"

#include "../support/exit_code.hpp"
#include "../support/output.hpp"
#include "../support/version.hpp"

#include <isotope/op/all.hpp>
#include <isotope/selected.hpp>

#include <string>
#include <type_traits>
#include <vector>

namespace conform_program {

/// An op of library_ops without a specification does not compile. A backend with a list of kernels of its own may only have ops of this list.
template <class K> using is_specified = boost::mp11::mp_contains<iso::library_ops, typename iso::kernel_traits<K>::op>;
static_assert(boost::mp11::mp_all_of<iso::selected_backend::kernels, is_specified>::value,
              "a kernel's op has no specification: add include/isotope/conform/op/<op>.hpp and name the op in op/all.hpp");

template <class K> using serves_meshes = std::is_same<typename iso::kernel_traits<K>::op, iso::op::cross_entropy_part_grad>;

int guarded_main(int argc, char** argv) {
  const iso::build& b = iso::build_info<iso::selected>;
  const built_for built{b.backend,    b.precision, b.kernels,
                        b.version,    b.git_sha,   b.compiler,
                        b.build_type, b.cpu_arch,  boost::mp11::mp_any_of<iso::selected_backend::kernels, serves_meshes>::value};
  auto c = read_command({argv + 1, argv + argc});
  int code = support::success;
  if (c && c->has("--help")) return support::print(help_text()), support::success;
  if (support::failed(program, c, code)) return code;
  if (c->has("--version")) return support::print(support::version_text(program, b)), support::success;
  const bool takes_files = c->name == "merge" || c->name == "verify" || c->name == "replay" || c->name == "golden";
  if (!takes_files && !c->files.empty())
    return support::report(program,
                           iso::fail(iso::errc::invalid_argument, "'" + c->files[0] + "' is no flag", "command line", "--help lists them"));
  if (takes_files && c->files.empty())
    return support::report(program, iso::fail(iso::errc::missing_value, c->name + " needs files", "command line", "name at least one"));
  if (c->name == "run") return run(*c, built);
  if (c->name == "plan") return plan(*c, built);
  if (c->name == "merge") return merge(*c);
  if (c->name == "verify") return verify(*c);
  if (c->name == "replay") return replay(*c, built);
  if (c->name == "run-file") return run_file(*c, built);
  if (c->name == "golden") return golden(*c);
  return support::report(
      program, iso::fail(iso::errc::missing_value, "no command", "command line", "run, plan, merge, verify, replay, run-file or golden"));
}

}  // namespace conform_program

int main(int argc, char** argv) {
  return support::guarded(conform_program::program, [&] { return conform_program::guarded_main(argc, argv); });
}
