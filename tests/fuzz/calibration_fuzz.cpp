// Reads arbitrary bytes as a file of calibrations, as one of ranked devices, and as one of chosen variants of kernels: they are ignored with a reason in one line, or
// give figures in range, devices, or choices, that read back the same.
#include <array>
#include <cstddef>
#include <cstdint>
#include <isotope/backend/queue/choice_file.hpp>
#include <isotope/calibrate/calibration_file.hpp>
#include <isotope/calibrate/rank_file.hpp>
#include <isotope/plan/choose_kernel.hpp>
#include <sstream>
#include <string>
#include <string_view>

namespace {
void must(bool holds) {
  if (!holds) __builtin_trap();
}
void read_as_calibrations(std::string_view bytes) {
  const auto got = isotope::parse_calibrations(bytes, "input", "d");
  if (!got.ignored.empty()) return must(got.all.empty() && got.ignored.find('\n') == got.ignored.npos);
  for (const auto& c : got.all)
    for (const auto& f : c.figures) must(f.value >= 0 && f.value < 1e18);
  if (got.all.empty()) return;
  const auto again = isotope::parse_calibrations(isotope::text_of(got.all), "input", "d");
  must(again.ignored.empty() && again.all.size() == got.all.size() && again.all.front().figures == got.all.front().figures);
}
void read_as_candidates(std::string_view bytes) {
  const isotope::ranked_work work{.model = "m", .batch = 4, .length = 16, .machine = "p", .version = "1"};
  const auto got = isotope::parse_candidates(bytes, "input", work);
  if (!got.ignored.empty()) return must(got.all.empty() && got.ignored.find('\n') == got.ignored.npos);
  must(isotope::parse_candidates(isotope::text_of(work, got.all), "input", work).all == got.all);
  const auto ranked = isotope::rank_by_time(got.all);
  must(ranked.order.size() + ranked.refusals.size() == got.all.size());
  for (std::size_t k = 1; k < ranked.order.size(); ++k) must(ranked.order[k - 1].estimate.seconds() <= ranked.order[k].estimate.seconds());
}
struct tile {
  int size;
  struct cost {
    double seconds = 0;
  };
  std::string_view unfit(int n) const { return n % size != 0 ? "it does not divide it" : ""; }
  cost cost_of(int n) const { return {double(n / size)}; }
  std::string name(const cost&) const { return std::to_string(size); }
};
constexpr std::array<tile, 3> tiles{{{64}, {16}, {8}}};
/// `whole`: with the hash that such a file ends with.
void read_as_choices(std::string_view bytes, bool whole) {
  std::string file = "isotope choices 1\td\n" + std::string(bytes);
  if (whole) file += (file.ends_with('\n') ? "hash\t" : "\nhash\t") + std::to_string(isotope::choice_file::hash_of(file)) + '\n';
  std::istringstream in(file);
  const isotope::choice_file got(in, "input", "d");
  if (!got.ignored().empty()) return must(got.text() == "isotope choices 1\td\n" && got.ignored().find('\n') == got.ignored().npos);
  std::istringstream again(got.text() + "hash\t" + std::to_string(isotope::choice_file::hash_of(got.text())) + '\n');
  must(isotope::choice_file(again, "input", "d").text() == got.text());
  for (const int size : {16, 40, 64}) {  // whatever a file says, a variant that fits runs
    isotope::kernel_choices asked;
    if (const auto* said = got.find("s")) asked.remembered = *said;
    const auto chosen = isotope::choose_kernel(tiles, size, &asked);
    must(chosen.variant != nullptr && chosen.variant->unfit(size).empty());
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read_as_calibrations(bytes);
  read_as_candidates(bytes);
  for (const bool whole : {false, true}) read_as_choices(bytes, whole);
  return 0;
}
