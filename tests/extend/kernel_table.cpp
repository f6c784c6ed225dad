// Writes kernels/README.md from the kernel lists of every backend, in a build for vulkan, which has them all, and from what isotope-conform said of them:
// kernel_table kernels/conformance.json > kernels/README.md
#include <isotope/backend/cpu.hpp>
#include <isotope/conform/op_list.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/json.hpp>
#include <isotope/selected.hpp>

#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {
namespace iso = isotope;

using row = std::map<std::string, std::string>;  // column -> kernel sets
struct registry {
  std::vector<std::string> columns;
  std::map<std::string, row> rows;  // by op
};

/// The op whose cases run a kernel.
std::string specified_by(const std::string& kernel) {
  std::string op = kernel;
  boost::mp11::mp_for_each<iso::conform::gradient_kernels>([&]<class G>(G) {
    if (G::kernel::name == kernel) op = G::of::name;
  });
  return op;
}

/// What isotope-conform said, by backend, precision and kernel set.
class conformance {
 public:
  explicit conformance(iso::io::json all) : all_(std::move(all)) {}

  /// Of one kernel: ✓, or what there is to say.
  std::string of(std::string_view backend, std::string_view precision, std::string_view set, const std::string& kernel) const {
    if (precision == "f64") return "for checks";
    const iso::io::json* run = find(backend, precision, set);
    if (run == nullptr || !lists(*run, "ran", kernel)) return "not run";
    const std::string op = specified_by(kernel);
    if (lists(*run, "failing", op)) return "fails";
    if (set == "native" && backend != "cpu" && !has_native(*run, kernel)) return "needs matrix units";
    return lists(*run, "unsupported", op) ? "in part" : "✓";
  }
  /// A line for each run.
  std::string runs() const {
    std::string text;
    for (const auto& r : all_.items)
      text += "| " + r.find("backend")->text + " " + r.find("precision")->text + " " + r.find("kernels")->text + " | " +
              r.find("device")->text + " | " + r.find("strength")->text + " | " + r.find("cases")->text + " |\n";
    return text;
  }

 private:
  iso::io::json all_;

  const iso::io::json* find(std::string_view backend, std::string_view precision, std::string_view set) const {
    for (const auto& r : all_.items)
      if (r.find("backend")->text == backend && r.find("precision")->text == precision && r.find("kernels")->text == set) return &r;
    return nullptr;
  }
  static bool lists(const iso::io::json& run, const char* key, const std::string& name) {
    for (const auto& x : run.find(key)->items)
      if (x.text == name) return true;
    return false;
  }
  static bool has_native(const iso::io::json& run, const std::string& kernel) {
    for (const auto& x : run.find("native_shaders")->items)
      if (x.text.starts_with(kernel + "_khr")) return true;
    return false;
  }
};

template <iso::Backend B> void add(registry& r, const conformance& said) {
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
        const std::string status = said.of(B::name, name_of(precision), set, std::string(k.op->name));
        cell += (cell.empty() ? "" : ", ") + std::string(set) + (status == "✓" ? " ✓" : " (" + status + ")");
      }
  }
}
}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "kernel_table kernels/conformance.json\n", 2;
  auto file = iso::io::read_file(argv[1]);
  if (!file) return std::cerr << file.error().line() << '\n', 2;
  auto json = iso::io::parse_json(file->text(), argv[1]);
  if (!json) return std::cerr << json.error().line() << '\n', 2;
  const conformance said(*std::move(json));
  registry r;
  add<iso::backend::cpu>(r, said);
  if constexpr (!std::is_same_v<iso::selected_backend, iso::backend::cpu>) add<iso::selected_backend>(r, said);
  std::cout << R"(# Kernels

A folder per backend and kernel set, a file per op, the same names in every folder, so that `ls` shows what is missing. A kernel is a
specialisation of the backend's `kernel<Op, Precision, Set>`, named by one line in the folder's `all.hpp`. A program of a kernel set takes
the kernel of its own set, else the one below it: native, portable, reference. An op without a kernel is replaced by simpler ops where it
knows how, else the program does not compile. Views (reshape, transpose, narrow, ...) need no kernel.

`reference/` is the oracle: plain loops over the definition in f64 arithmetic, sharing no code with the others. `vulkan/reference/` is the
oracle on a device: one invocation an element or a row. `cpu/` holds portable kernels, `cpu/native/` those for AVX-512 or AVX2, which a build
whose flags allow neither leaves out. `vulkan/` holds portable kernels, `<op>.comp` with its host twin `<op>.hpp`, and the native ones for matrix
units in `<op>_khr`; a native kernel that a device or a shape does not allow runs the portable one, and reports say why.

✓: every case of isotope-conform that runs the kernel passed, twice and perturbed, against a reference in f64; other words are what its last
run said instead. `-`: there is no kernel. f64 is for checks of gradients, not for programs. The runs are below the table.

The table is written from the kernel lists and from `kernels/conformance.json`, which is `isotope-conform verify --out` of certificates, by
`tests/extend/kernel_table.cpp`, and a test compares them:
`cmake --build build/vulkan-f32 --target kernel_table && build/vulkan-f32/tests/kernel_table kernels/conformance.json > kernels/README.md`.

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
  std::cout << "\n| run | device | strength | cases |\n|---|---|---|---|\n" << said.runs();
}
