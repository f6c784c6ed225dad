// The bytes of docs/SCALING.md are those of plans for GPUs: bench/scaling.py computes them from the planner's rules.
#include "on_mesh.hpp"

#include <isotope/op/all_reduce.hpp>

#include <fixtures_folder.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

using namespace dist_test;

namespace scaling_test {

// The processor with the rows of matrices that GPUs ask for.
struct padded_rows : backend::cpu {
  static constexpr std::int64_t row_multiple = 64;
};
using padded_target = target<padded_rows, precision::bf16, kernels::portable>;

std::string cell(std::int64_t n) { return std::to_string(n) + " | "; }

/// The row of the table for one plan, and the bytes that end it.
std::string row_of(const std::string& name, int rows, const training_options& o, std::int64_t& bytes) {
  model::gpt size;
  for (const auto& s : model::gpt_sizes)
    if (s.name == name) size = s.size;
  size.dropout = 0;
  const auto p = planned<padded_target>(model::gpt_loss_of{size, rows, size.context}, o);
  std::int64_t sums = 0, summed = 0, loss = 0, exchanges = 0, exchanged = 0, gathered = 0;
  for (const step& s : p.steps) {
    if (!s.op->collective) continue;
    const operand& x = p.operands[std::size_t(s.operands)];
    const bool tensor = op::collective_constants::of(s.attr).which() == rank_group::tensor;
    if (tensor && s.op == &info<op::all_gather>) loss += x.bytes;
    else if (tensor && x.bytes > 4) ++sums, summed += x.bytes;
    else if (!tensor && x.region == value_kind::grad) ++exchanges, exchanged += x.bytes;
    else if (!tensor && x.region == value_kind::param) gathered += x.bytes;
  }
  bytes = p.totals.bytes;
  return "| " + name + " | " + cell(rows) + cell(o.mesh.data) + cell(o.mesh.tensor) + cell(o.zero) + cell(o.bucket_bytes >> 20) +
         cell(sums) + cell(summed) + cell(loss) + cell(exchanges) + cell(exchanged) + cell(gathered);
}

TEST(scaling, writes_the_collectives_and_bytes_of_plans_into_its_page) {
  std::ifstream page(fixtures_folder + std::string("../../docs/SCALING.md"));
  ASSERT_TRUE(page.is_open());
  int rows = 0;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    inside = line == "<!-- table plans -->" || (inside && line != "<!-- end -->");
    if (!inside || line.find("| gpt2-") != 0) continue;
    std::string words = line, name;
    std::replace(words.begin(), words.end(), '|', ' ');
    std::istringstream in(words);
    int batch = 0, mib = 0;
    training_options o;
    in >> name >> batch >> o.mesh.data >> o.mesh.tensor >> o.zero >> mib;
    o.bucket_bytes = std::int64_t(mib) << 20;
    std::int64_t bytes = 0;
    const std::string row = row_of(name, batch, o, bytes);
    ASSERT_EQ(line.substr(0, row.size()), row);
    // Scratch of kernels, which is not the same for each processor and backend, is below 0.5 % of each plan.
    EXPECT_NEAR(std::stod(line.substr(row.size())), double(bytes), 0.005 * double(bytes)) << line;
    ++rows;
  }
  EXPECT_GE(rows, 10);
}

}  // namespace scaling_test
