// Writes kernels/README.md from the kernel lists of every backend, in a build for vulkan, which has them all: kernel_table > kernels/README.md
#include <isotope/backend/cpu.hpp>
#include <isotope/conform/op_list.hpp>
#include <isotope/selected.hpp>

#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {
namespace iso = isotope;

using row = std::map<std::string, std::string>;  // column -> kernel sets
struct registry {
  std::vector<std::string> columns;
  std::map<std::string, row> rows;  // by op
};

/// Ops whose kernels isotope-conform runs: in f32 and bf16.
std::set<const iso::op_info*> conforming() {
  std::set<const iso::op_info*> all{&iso::info<iso::op::elementwise>};
  boost::mp11::mp_for_each<iso::conform::specified_ops>([&]<class Op>(Op) { all.insert(&iso::info<Op>); });
  boost::mp11::mp_for_each<iso::conform::gradient_kernels>([&]<class G>(G) { all.insert(&iso::info<typename G::kernel>); });
  return all;
}

template <iso::Backend B> void add(registry& r) {
  static const auto conform = conforming();
  for (const auto precision : {iso::dtype::f32, iso::dtype::bf16, iso::dtype::f64}) {
    bool any = false;
    for (const auto& k : iso::all_kernels<B>) any = any || k.precision == precision;
    if (!any) continue;
    const std::string column = std::string(B::name) + ' ' + std::string(iso::name_of(precision));
    r.columns.push_back(column);
    for (const std::string_view set : {"native", "portable", "reference"})
      for (const auto& k : iso::all_kernels<B>) {
        if (k.precision != precision || k.set != set) continue;
        auto& cell = r.rows[std::string(k.op->name)][column];
        cell += (cell.empty() ? "" : ", ") + std::string(set) + (precision != iso::dtype::f64 && conform.contains(k.op) ? " ✓" : "");
      }
  }
}
}  // namespace

int main() {
  registry r;
  add<iso::backend::cpu>(r);
  if constexpr (!std::is_same_v<iso::selected_backend, iso::backend::cpu>) add<iso::selected_backend>(r);
  std::cout << R"(# Kernels

A folder per backend and kernel set, a file per op, the same names in every folder, so that `ls` shows what is missing. A kernel is a
specialisation of the backend's `kernel<Op, Precision, Set>`, named by one line in the folder's `all.hpp`. A program of a kernel set takes
the kernel of its own set, else the one below it: native, portable, reference. An op without a kernel is replaced by simpler ops where it
knows how, else the program does not compile. Views (reshape, transpose, narrow, ...) need no kernel.

`reference/` is the oracle: plain loops over the definition in f64 arithmetic, sharing no code with the others. `vulkan/reference/` is the
oracle on a device: one invocation an element or a row. `cpu/` holds portable kernels, `cpu/native/` those for AVX-512 or AVX2, which a build
whose flags allow neither leaves out. `vulkan/` holds portable kernels, `<op>.comp` with its host twin `<op>.hpp`, and the native ones for matrix
units in `<op>_khr`; a native kernel that a device or a shape does not allow runs the portable one, and reports say why.

✓: isotope-conform runs the kernel against a reference in f64, twice and perturbed.

The table is written from the kernel lists by `tests/extend/kernel_table.cpp`, and a test compares them:
`cmake --build build/vulkan-f32 --target kernel_table && build/vulkan-f32/tests/kernel_table > kernels/README.md`.

)";
  std::cout << "| op |";
  for (const auto& c : r.columns) std::cout << ' ' << c << " |";
  std::cout << "\n|---|";
  for (std::size_t i = 0; i < r.columns.size(); ++i) std::cout << "---|";
  std::cout << '\n';
  for (const auto& [op, cells] : r.rows) {
    std::cout << "| " << op << " |";
    for (const auto& c : r.columns) std::cout << ' ' << (cells.count(c) != 0 ? cells.at(c) : "-") << " |";
    std::cout << '\n';
  }
}
