/// isotope-tp-smoke: do the devices of this machine, or of several, work together? Each rank adds up a 1 of all ranks, and compares a step of a small GPT whose layers
/// all devices share with the same step on its device alone.
#include "../support/exit_code.hpp"
#include "../support/output.hpp"
#include "../support/run_ranks.hpp"
#include "../support/version.hpp"
#include "command.hpp"

#include <isotope/isotope.hpp>
#include <isotope/plan/local_plan.hpp>
#include <isotope/selected.hpp>
#include <isotope/train/decimal.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using isotope::result;
using target = isotope::selected;
using tp_smoke_program::program;

/// The groups of the plans that are loaded after this.
template <class Device> void join(Device& device, const isotope::rank_groups& groups) {
  if constexpr (support::device_groups<Device>::possible) device.join(groups);
}

/// The loss and the gradients of one step.
struct outcome {
  double loss = 0;
  std::map<std::string, std::vector<float>> gradients;
};

/// Forward and backward on a device, and this rank's elements of the gradients. `whole`, if given, are those of one device, which are reduced to the elements that the
/// rank has. @error as the device reports
result<outcome> step_of(const support::rank_device& device, const isotope::dynamic_plan& plan, int vocab, int tensor,
                        std::map<std::string, std::vector<float>>* whole) {
  auto session = device.load(plan);
  if (!session) return session.error();
  session->initialize(1);
  const auto tokens = session->template input<std::int32_t>("tokens"), targets = session->template input<std::int32_t>("targets");
  if (!tokens) return tokens.error();
  if (!targets) return targets.error();
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    (*tokens)[i] = std::int32_t(i * 7 % std::size_t(vocab));
    (*targets)[i] = std::int32_t((i * 21 + 1) % std::size_t(vocab));
  }
  outcome out;
  out.loss = session->run({}, isotope::phase_first | isotope::phase_last).loss;
  if (auto r = session->status(); !r) return r.error();
  for (std::size_t k = 0; k < session->parameters().size(); ++k) {
    const isotope::slot& p = session->parameters()[k];
    const std::string path(p.path.view());
    std::vector<float>& own = out.gradients[path];
    own.resize(std::size_t(p.dims.count()));
    if (auto r = session->read(isotope::tensor_kind::gradient, k, own); !r) return r.error();
    if (whole == nullptr) continue;
    std::vector<float> here, there;
    isotope::for_piece_runs(p, tensor, [&](const isotope::piece_run& r) {
      here.insert(here.end(), own.begin() + r.here, own.begin() + r.here + r.count);
      const std::vector<float>& all = (*whole)[path];
      there.insert(there.end(), all.begin() + r.whole, all.begin() + r.whole + r.count);
    });
    own = std::move(here), (*whole)[path] = std::move(there);
  }
  return out;
}

/// The largest |a - b| / |b| of a tensor; infinite where numbers are missing or not finite.
double difference(const outcome& a, const outcome& b) {
  double most = std::fabs(a.loss - b.loss) / std::fabs(b.loss);
  for (const auto& [path, x] : b.gradients) {
    const auto found = a.gradients.find(path);
    if (found == a.gradients.end() || found->second.size() != x.size()) return HUGE_VAL;
    double d = 0, n = 0;
    for (std::size_t i = 0; i < x.size(); ++i) d += std::pow(double(found->second[i]) - double(x[i]), 2), n += std::pow(double(x[i]), 2);
    const double r = std::sqrt(n == 0 ? d : d / n);
    most = r <= most ? most : r;
    if (!(r <= HUGE_VAL)) return HUGE_VAL;
  }
  return most <= HUGE_VAL ? most : HUGE_VAL;
}

result<int> smoke(const support::command_words& words) {
  support::mesh_settings mesh;
  support::machine_settings machine;
  const support::diagnose_settings diagnose;
  const auto devices = words.whole("--devices", 2, 2, 64), rank = words.whole("--rank", 0, 0, 1023),
             threads = words.whole("--threads", 0, 0, 1024), seconds = words.whole("--step-timeout", 60, 1, 1'000'000);
  for (const auto* n : {&devices, &rank, &threads, &seconds})
    if (!*n) return n->error();
  mesh.ranks = words.get("--ranks"), mesh.rank = std::int32_t(*rank);
  mesh.devices = mesh.ranks.empty() || words.has("--devices") ? std::int32_t(*devices) : 1;
  mesh.step_timeout = double(*seconds);
  const auto at = support::addresses_of(mesh);
  if (!at) return at.error();
  mesh.devices = mesh.tensor = at->empty() ? mesh.devices : std::int32_t(at->size());
  if (const auto o = objection_to(mesh)) return isotope::fail(isotope::errc::invalid_argument, o->what, o->key, o->fix);
  if (auto r = support::can_join_devices(); !r) return r.error();
  machine.threads = std::int32_t(*threads), machine.device = words.get("--device");
  const support::rank_team team = support::team_of(mesh);
  const int ranks = team.mesh.ranks();

  // Each device has two heads; the vocabulary divides by no number of devices up to its size, so that a table is padded.
  const isotope::model::gpt size{2, 2 * ranks, 32 * ranks, 67, 16};
  const isotope::model::gpt_loss_of model{size, 2, 16};
  isotope::training_options options;
  const auto one = isotope::plan_training<target>(model, options);
  if (!one) return one.error();
  options.mesh = team.mesh;
  const auto several = isotope::plan_training<target>(model, options);
  if (!several) return several.error();

  // Sums over devices are taken in another order: roundings to f32, or of activations to bf16, of numbers near 1.
  const double tolerance = target::precision::type == isotope::dtype::f32 ? 1e-5 : 3e-2;
  bool alike = true;
  const auto work = [&](support::rank_end& end) -> result<void> {
    const isotope::watchdog::watched w(end.dog, "the step of rank " + std::to_string(end.rank));
    std::array<float, 1> sum{1};
    if (auto r = end.mesh.all->all_reduce(std::as_writable_bytes(std::span(sum)), isotope::dtype::f32, isotope::reduction::sum); !r)
      return r;
    join(end.device, {});
    auto alone = step_of(end.device, *one, size.vocab, 0, nullptr);
    if (!alone) return alone.error();
    join(end.device, end.mesh.groups());
    auto together = step_of(end.device, *several, size.vocab, end.at.tensor, &alone->gradients);
    if (!together) return together.error();
    const double differs = difference(*together, *alone);
    std::array<double, 1> most{differs};
    if (auto r = end.control.all_reduce(std::as_writable_bytes(std::span(most)), isotope::dtype::f64, isotope::reduction::max); !r)
      return r;
    for (int r = 0; r < ranks; ++r) {  // one line after another
      if (r == end.rank)
        support::print(end.text() + ": the sum of 1 over all ranks is " + isotope::train::fixed(double(sum[0]), 0) + "; loss " +
                       isotope::train::fixed(together->loss, 6) + ", on one device " + isotope::train::fixed(alone->loss, 6) +
                       "; loss and gradients differ by at most " + isotope::train::shortest(differs) + "\n");
      if (auto b = end.control.barrier(); !b) return b;
    }
    if (end.rank == team.first()) alike = most[0] <= tolerance;
    return {};
  };
  const support::run_options run{program, machine, diagnose};
  if (auto r = support::run_ranks(team, mesh, "tp-smoke of " + std::to_string(ranks), run, work); !r) return r.error();
  if (!alike)
    return isotope::fail(isotope::errc::wrong_device,
                         "the devices together compute something else than one of them: more than " + isotope::train::shortest(tolerance) +
                             " of the numbers' size",
                         "tensor parallelism", "look at the lines above for the rank, and check its device and its links");
  support::print("passed: " + team.text() + "\n");
  return support::success;
}

int guarded_main(int argc, char** argv) {
  int code = support::success;
  support::command_words words;
  const auto read = support::read_flags(std::vector<std::string>(argv + 1, argv + argc), tp_smoke_program::flag_meanings, words);
  if (support::failed(program, read, code)) return code;
  if (words.has("--help"))
    return support::print(
               "isotope-tp-smoke: do several devices work together? Each rank adds up a 1 of all ranks, and compares a step of a small GPT "
               "whose\n"
               "layers all devices share with the same step on its device alone. docs/DEVICES.md\n\n" +
               support::list_of_flags(tp_smoke_program::flag_meanings, 26) +
               "\nexit codes: 0 the same, 1 not the same or failed, 2 bad usage\n"),
           support::success;
  if (!words.files.empty())
    return support::report(
        program, isotope::fail(isotope::errc::invalid_argument, "'" + words.files[0] + "' is no flag", "command line", "leave it out"));
  if (words.has("--version")) return support::print(support::version_text(program, isotope::build_info<target>)), support::success;
  const auto done = smoke(words);
  if (!done && done.error().code == isotope::errc::corrupt) return support::note(program, done.error().line()), support::runtime_failure;
  if (support::failed(program, done, code)) return code;
  return *done;
}

}  // namespace

int main(int argc, char** argv) {
  return support::guarded(program, [&] { return guarded_main(argc, argv); });
}
