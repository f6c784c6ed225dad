/// isotope-mlp: trains a small classifier on generated data, planned by the compiler. Prints the loss and the share of unseen points that it gets
/// right.
#include "../support/command_line.hpp"
#include "../support/exit_code.hpp"
#include "../support/output.hpp"
#include "../support/plan_reports.hpp"
#include "../support/run_options.hpp"
#include "../support/version.hpp"
#include "settings.hpp"
#include "spirals.hpp"

#include <isotope/config/load.hpp>
#include <isotope/isotope.hpp>
#include <isotope/optim/schedule.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/selected.hpp>
#include <isotope/train/decimal.hpp>
#include <isotope/train/session.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace iso = isotope;
using target = iso::selected;
using number = target::precision::storage;

using mlp_program::program, mlp_program::settings;
constexpr int batch = 128, steps = 400;
constexpr iso::model::mlp size{.inputs = 2, .hidden = 48, .layers = 3, .classes = 2};
constexpr iso::optim::warmup schedule{iso::optim::cosine{1e-2, 1e-4, steps - 20}, 20};

using step = iso::training<iso::model::mlp_loss<size, batch>, target>;
using forward = iso::inference<iso::model::mlp_forward<size, batch>, target>;
static_assert(step::parameters == parameter_count(size));
static_assert(step::bytes <= 4 << 20, "the training step fits in 4 MiB, or this does not compile");

/// Fills points first, first + 1, ... of the spirals: x (B,2), arms (B).
void fill(std::uint64_t first, std::span<number> x, std::span<std::int32_t> arms) {
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const auto p = mlp_program::spiral_point(1, first + i);
    x[2 * i] = number(p.x), x[2 * i + 1] = number(p.y), arms[i] = p.arm;
  }
}

/// Returns the share of `points` unseen points whose larger logit (B,2) is that of their arm.
template <class Trained, class Forward> iso::result<double> accuracy(Trained& trained, Forward& model, int points) {
  std::vector<float> values;
  for (std::size_t k = 0; k < trained.parameters().size(); ++k) {
    values.resize(std::size_t(trained.parameters()[k].dims.count()));
    if (auto r = trained.read(iso::tensor_kind::parameter, k, values); !r) return std::move(r).error();
    if (auto r = model.write(iso::tensor_kind::parameter, k, values); !r) return std::move(r).error();
  }
  auto x = model.template input<number>("x");
  auto logits = model.template output<number>("output");
  if (!x) return std::move(x).error();
  if (!logits) return std::move(logits).error();
  std::vector<std::int32_t> arms(batch);
  int right = 0;
  for (int first = 0; first < points; first += batch) {
    fill(std::uint64_t(1'000'000'000 + first), *x, arms);
    model.run({}, iso::phase_always);
    for (std::size_t i = 0; i < arms.size(); ++i) right += (float((*logits)[2 * i + 1]) > float((*logits)[2 * i])) == (arms[i] == 1);
  }
  return double(right) / points;
}

/// Rejects what a plan made by the compiler cannot do.
iso::result<void> check(const settings& s) {
  const auto refuse = [](std::string what, std::string flag, std::string fix) {
    return iso::fail(iso::errc::invalid_argument, std::move(what), "flag --" + std::move(flag), std::move(fix));
  };
  if (s.diagnose.decompose_all())
    return refuse("the compiler has made the plan, whole ops and all", "kernel-dispatch", "isotope-train plans at run time");
  if (s.machine.memory_mib > 0 && step::bytes > s.machine.memory_mib << 20)
    return refuse("the compiler has made a plan of " + std::to_string(step::bytes) + " bytes", "memory-mib", "give more");
  return {};
}

int train(const settings& s) {
  int code = support::success;
  if (auto r = check(s); support::failed(program, r, code)) return code;
  const support::run_options run{program, s.machine, s.diagnose};
  const auto trace = [] { return iso::traced_training<target>(iso::model::mlp_loss<size, batch>{}); };
  if (auto r = support::write_trace_reports<target>(s.diagnose, trace); support::failed(program, r, code)) return code;
  auto device = iso::device<target>::open(run.device());
  if (support::failed(program, device, code)) return code;
  auto session = device->load<step>();
  if (support::failed(program, session, code)) return code;
  auto model = device->load<forward>();
  if (support::failed(program, model, code)) return code;
  support::describe_load(program, s.diagnose, *device, *session);
  if (auto r = support::write_plan_reports(program, s.diagnose, *session); support::failed(program, r, code)) return code;
  auto x = session->input<number>("x");
  if (support::failed(program, x, code)) return code;
  auto arms = session->input<std::int32_t>("targets");
  if (support::failed(program, arms, code)) return code;

  session->initialize(1);
  iso::step_scalars scalars{.weight_decay = 0.01f, .clip_norm = 1};
  for (int i = 0; i < steps; ++i) {
    fill(std::uint64_t(i) * batch, *x, *arms);
    scalars.learning_rate = float(rate(schedule, i));
    scalars.optimizer_step = i + 1;
    const iso::step_report r = session->run(scalars);
    if (auto alive = iso::train::status_of(*session); support::failed(program, alive, code)) return code;
    if (i % 40 == 0 || i + 1 == steps) support::print("step " + std::to_string(i + 1) + "  loss " + iso::train::figure(r.loss, 4) + "\n");
  }
  const auto share = accuracy(*session, *model, 32 * batch);
  if (support::failed(program, share, code)) return code;
  support::describe_end(program, s.diagnose, *session);
  support::print("accuracy " + iso::train::fixed(100 * *share, 1) + " % of " + std::to_string(32 * batch) + " unseen points\n");
  return support::success;
}

int guarded_main(int argc, char** argv) {
  const auto given = support::command_line(argc, argv);
  if (support::asks_for_help(given))
    return support::print(iso::config::flag_help(iso::config::fields_of(settings{}), mlp_program::switches, mlp_program::words_of_help())),
           support::success;
  int code = support::success;
  if (auto r = support::check_variables(given); support::failed(program, r, code)) return code;
  auto loaded = iso::config::load<settings>(given, {}, support::rules_for(mlp_program::switches));
  if (support::failed(program, loaded, code)) return code;
  if (loaded->has_switch("version")) return support::print(support::version_text(program, iso::build_info<target>)), support::success;
  if (auto r = support::check_run(*loaded); support::failed(program, r, code)) return code;
  return train(loaded->value);
}

}  // namespace

int main(int argc, char** argv) {
  return support::guarded(program, [&] { return guarded_main(argc, argv); });
}
