// Writes kernels/README.md. Usage: kernel_table kernels/conformance.json DIGESTS kernels/README.md, where kernel_marks.py makes DIGESTS. It keeps the prose of
// the existing file, and the columns of backends that this build lacks. The other columns are made from the kernel lists, the verdicts of isotope-conform and
// the digests of the present sources.
#include <isotope/backend/cpu.hpp>
#include <isotope/conform/op_list.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/json.hpp>
#include <isotope/selected.hpp>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {
namespace iso = isotope;

using row = std::map<std::string, std::string>;  // column -> kernel sets
struct registry {
  std::vector<std::string> columns;
  std::map<std::string, row> rows;  // by op
  std::set<std::string> backends;   // of this build
  std::set<std::string> kernels;    // of these backends: "cpu portable softmax"
};

/// The op whose conformance cases run this kernel.
std::string specified_by(const std::string& kernel) {
  std::string op = kernel;
  boost::mp11::mp_for_each<iso::conform::gradient_kernels>([&]<class G>(G) {
    if (G::name == kernel) op = G::gradient_of::name;
  });
  return op;
}

/// The verdicts of isotope-conform on kernels, and whether a kernel has changed since.
class conformance {
 public:
  conformance(iso::io::json all, iso::io::json digests) : all_(std::move(all)), digests_(std::move(digests)) {}

  /// The mark of one kernel: ✓, or a remark. Among several devices, one whose verdict is on the present kernel is preferred.
  std::string of(std::string_view backend, std::string_view precision, std::string_view set, const std::string& kernel) {
    if (precision == "f64") return "for checks";
    std::string said = "not run", since;
    const std::string name = std::string(backend) + ' ' + std::string(set) + ' ' + kernel;
    for (const auto& run : all_.items) {
      if (text(run, "backend") != backend || text(run, "precision") != precision || text(run, "kernels") != set) continue;
      if (!lists(run, "ran", kernel)) continue;
      if (judged(run, kernel) == today(name)) return of(run, kernel);
      since = text(run, "commit");
      said = "stale";
    }
    return said == "stale" ? said + " since " + since.substr(0, 10) : said;
  }
  /// One line for each run.
  std::string runs() const {
    std::string lines;
    for (const auto& r : all_.items)
      lines += "| " + text(r, "backend") + " " + text(r, "precision") + " " + text(r, "kernels") + " | " + text(r, "device") + " | " +
               text(r, "commit").substr(0, 10) + " | " + text(r, "strength") + " | " + text(r, "cases") + " |\n";
    return lines;
  }

 private:
  iso::io::json all_, digests_;

  static std::string text(const iso::io::json& of, std::string_view key) {
    const iso::io::json* found = of.find(key);
    return found == nullptr ? "" : found->text;
  }
  static std::string judged(const iso::io::json& run, const std::string& kernel) {
    const iso::io::json* digests = run.find("digests");
    return digests == nullptr ? "" : text(*digests, kernel);
  }
  std::string today(const std::string& name) const { return text(digests_, name); }
  static std::string of(const iso::io::json& run, const std::string& kernel) {
    const std::string op = specified_by(kernel);
    if (lists(run, "failing", op)) return "fails";
    if (text(run, "kernels") == "native" && text(run, "backend") != "cpu" && !has_native(run, kernel)) return "needs matrix units";
    return lists(run, "unsupported", op) ? "in part" : "✓";
  }
  static bool lists(const iso::io::json& run, const char* key, const std::string& name) {
    for (const auto& x : run.find(key)->items)
      if (x.text == name) return true;
    return false;
  }
  /// Whether a native kernel ran on the device: device code is named after its op, as attention_khr_packed and attention_grad_keys_hopper are.
  static bool has_native(const iso::io::json& run, const std::string& kernel) {
    for (const auto& x : run.find("native_shaders")->items) {
      std::string name = x.text, op;
      for (const std::string_view instructions : {"_khr", "_hopper", "_mma"})
        if (const auto at = name.find(instructions); at != name.npos) name.erase(at, instructions.size());
      for (const auto& k : run.find("ran")->items)
        if (k.text.size() > op.size() && (name + '_').starts_with(k.text + '_')) op = k.text;
      if (op == kernel) return true;
    }
    return false;
  }
};

template <iso::Backend B> void add(registry& r, conformance& said) {
  r.backends.emplace(B::name);
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
        r.kernels.insert(std::string(B::name) + ' ' + std::string(set) + ' ' + std::string(k.op->name));
        const std::string status = said.of(B::name, name_of(precision), set, std::string(k.op->name));
        cell += (cell.empty() ? "" : ", ") + std::string(set) + (status == "✓" ? " ✓" : " (" + status + ")");
      }
  }
}
/// The backend of a column, or of a kernel.
std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }
/// The cells of `| a | b |`.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  for (line.remove_prefix(2); !line.empty();) {
    const auto end = line.find(" |");
    cells.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(line.size(), end + 3));
  }
  return cells;
}
/// Copies the columns of backends that are not in `r` from the existing table, in their order.
void keep_others(registry& r, const std::string& file) {
  std::istringstream lines(file.substr(file.find("| op |")));
  std::string line;
  std::getline(lines, line);
  const auto there = cells_of(line);
  const auto known = [&](const std::string& c) { return std::find(there.begin(), there.end(), c) != there.end(); };
  std::vector<std::string> columns;
  for (std::size_t k = 1; k < there.size(); ++k)
    if (!r.backends.contains(first_word(there[k])) || std::find(r.columns.begin(), r.columns.end(), there[k]) != r.columns.end())
      columns.push_back(there[k]);
  for (const auto& c : r.columns)
    if (!known(c)) columns.push_back(c);
  r.columns = std::move(columns);
  for (std::getline(lines, line); std::getline(lines, line) && line.starts_with("| ");) {
    const auto cells = cells_of(line);
    for (std::size_t k = 1; k < cells.size(); ++k)
      if (!r.backends.contains(first_word(there[k])) && cells[k] != "-") r.rows[cells[0]][there[k]] = cells[k];
  }
}
}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::cerr << "kernel_table kernels/conformance.json DIGESTS kernels/README.md\n", 2;
  auto readme = iso::io::read_file(argv[3]);
  if (!readme) return std::cerr << readme.error().line() << '\n', 2;
  const std::string written(readme->text());
  const auto prose = written.find("Stale marks: ");
  if (prose == written.npos || written.find("| op |") == written.npos) return std::cerr << argv[3] << " has no table of kernels\n", 2;
  std::vector<iso::io::json> read;
  for (const char* path : {argv[1], argv[2]}) {
    auto file = iso::io::read_file(path);
    if (!file) return std::cerr << file.error().line() << '\n', 2;
    auto json = iso::io::parse_json(file->text(), path);
    if (!json) return std::cerr << json.error().line() << '\n', 2;
    read.push_back(*std::move(json));
  }
  const auto written_kernels = read[1].members;
  conformance said(std::move(read[0]), std::move(read[1]));
  registry r;
  add<iso::backend::cpu>(r, said);
  if constexpr (!std::is_same_v<iso::selected_backend, iso::backend::cpu>) add<iso::selected_backend>(r, said);
  for (const auto& k : written_kernels)
    if (r.backends.contains(first_word(k.key)) && !r.kernels.contains(k.key))
      return std::cerr << k.key
                       << ": no table has this kernel; include its file in the all.hpp of its folder, and name its op in op/all.hpp\n",
             1;
  keep_others(r, written);
  int stale = 0;
  for (const auto& [op, cells] : r.rows)
    for (const auto& [column, cell] : cells)
      for (auto at = cell.find("(stale"); at != cell.npos; at = cell.find("(stale", at + 1)) ++stale;
  std::cout << written.substr(0, prose) << "Stale marks: " << stale << ".\n\n";
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
  std::cout << "\n| run | device | commit | strength | cases |\n|---|---|---|---|---|\n" << said.runs();
}
