/// isotope-parity: checks that one backend trains as another does. See --help.
#include "../support/command_line.hpp"
#include "../support/corpus.hpp"
#include "../support/exit_code.hpp"
#include "../support/output.hpp"
#include "../support/plan_reports.hpp"
#include "../support/run_options.hpp"
#include "../support/version.hpp"
#include "settings.hpp"

#include <isotope/backend/cpu.hpp>
#include <isotope/config/load.hpp>
#include <isotope/core/backend_list.hpp>
#include <isotope/io/dataset.hpp>
#include <isotope/io/file.hpp>
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>
#include <isotope/train/decimal.hpp>
#include <isotope/train/parity.hpp>
#include <isotope/train/session.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace parity_program {

namespace iso = isotope;
using iso::train::parity_step;

/// The same precision and kernel set on another backend of this program.
template <class B> using on = iso::target<B, iso::selected::precision, iso::selected::kernel_set>;
using backends = std::conditional_t<std::is_same_v<iso::selected_backend, iso::backend::cpu>, iso::backend_list<iso::backend::cpu>,
                                    iso::backend_list<iso::backend::cpu, iso::selected_backend>>;

/// Steps of warm-up, as in isotope-train: without it the first updates are so large that rounding errors double at every step.
constexpr double warm_up = 100;

struct comparison {
  std::vector<parity_step> steps;
  std::optional<std::int64_t> failed;  // index of the first step outside the gate
  std::optional<iso::train::divergence> where;
};

/// @param watched  the session that [diagnose] reports on
template <class T> iso::result<typename iso::device<T>::session> open(const iso::model::gpt& size, const settings& s, bool watched) {
  const support::run_options run{program, s.machine, s.diagnose};
  // The plans are compared step by step, so sums have steps of their own in both.
  const iso::training_options options{.join_sums = false, .decompose_all = s.diagnose.decompose_all()};
  const iso::model::gpt_loss_of loss{size, int(s.batch), int(s.length)};
  auto plan = iso::plan_training<T>(loss, options, run.budget());
  if (!plan) return plan.error();
  auto o = run.device<typename T::backend>();
  // --device and --inject-fault are for the other backend.
  if (T::backend::name == "cpu" && !std::is_same_v<iso::selected_backend, iso::backend::cpu>) o.name.clear(), o.diagnose = {};
  if (watched)
    if (auto r = support::write_trace_reports<T>(s.diagnose, [&] { return iso::traced_training<T>(loss, options); }); !r) return r.error();
  auto device = iso::device<T>::open(o);
  if (!device) return device.error();
  auto session = device->load(*std::move(plan));
  if (!session) return session;
  if (watched) {
    support::describe_load(program, s.diagnose, *device, *session);
    if (auto r = support::write_plan_reports(program, s.diagnose, *session); !r) return r.error();
  }
  session->initialize(s.seed);
  return session;
}

template <class A, class B>
iso::result<comparison> compare(const settings& s, const std::string& name, const iso::train::parity_gate& gate) {
  auto data = s.text.empty() ? iso::io::text_dataset(support::embedded_corpus(), iso::io::text_unit::characters, "the built-in text")
                             : iso::io::load_dataset(s.text, iso::io::text_unit::characters, 0);
  if (!data) return data.error();
  if (auto r = data->check(s.length); !r) return r.error();
  const iso::model::gpt size = model_of(name, data->vocab().size());
  if (s.length > size.context)
    return iso::fail(iso::errc::invalid_argument, std::to_string(s.length) + " tokens, the model reads " + std::to_string(size.context),
                     "flag --length", "a shorter window");
  auto a = open<A>(size, s, false);
  if (!a) return a.error();
  auto b = open<B>(size, s, true);
  if (!b) return b.error();
  iso::train::parity both(*a, *b, gate);
  if (auto r = both.same_plans(); !r) return r.error();

  comparison out;
  std::vector<std::int32_t> tokens(std::size_t(s.batch * s.length)), targets(tokens.size());
  for (std::int64_t i = 0; i < s.steps; ++i) {
    data->training_batch(s.seed, i, s.length, tokens, targets);
    const iso::batch batch{tokens, targets};
    const iso::step_scalars x{.seed = s.seed,
                              .counter = std::uint64_t(i),
                              .optimizer_step = i + 1,
                              .learning_rate = float(s.learning_rate * std::min(1.0, double(i + 1) / warm_up)),
                              .weight_decay = 0.1f,
                              .clip_norm = 1};
    out.steps.push_back(both.step(batch, x));
    if (auto r = iso::train::status_of(*a); !r) return r.error();
    if (auto r = iso::train::status_of(*b); !r) return r.error();
    const parity_step& p = out.steps.back();
    const bool fine = p.within(gate);
    support::print("step " + std::to_string(p.step) + "  loss " + iso::train::fixed(p.loss_a, 6) + " " + iso::train::fixed(p.loss_b, 6) +
                   " (" + iso::train::shortest(float(p.loss_difference())) + ")  norm " + iso::train::fixed(p.norm_a, 6) + " " +
                   iso::train::fixed(p.norm_b, 6) + " (" + iso::train::shortest(float(p.norm_difference())) + ")" +
                   (fine ? "\n" : "  outside the gate\n"));
    if (fine) continue;
    out.failed = i;
    auto where = both.locate(batch, x);
    if (!where) return where.error();
    out.where = *where;
    break;
  }
  support::describe_end(program, s.diagnose, *b);
  return out;
}

std::string json_of(const settings& s, const std::string& name, const iso::train::parity_gate& gate, const comparison& o) {
  using iso::io::json_number, iso::io::json_string;
  std::string r = "{\"a\":" + json_string(s.a) + ",\"b\":" + json_string(s.b) + ",\"size\":" + json_string(name) +
                  ",\"precision\":" + json_string(iso::selected::precision::name) + ",\"loss_gate\":" + json_number(gate.loss) +
                  ",\"norm_gate\":" + json_number(gate.norm) + ",\"passed\":" + (o.failed ? "false" : "true") + ",\"steps\":[";
  for (std::size_t i = 0; i < o.steps.size(); ++i) {
    const auto& p = o.steps[i];
    r += std::string(i == 0 ? "" : ",") + "{\"step\":" + std::to_string(p.step) + ",\"loss_a\":" + json_number(p.loss_a) +
         ",\"loss_b\":" + json_number(p.loss_b) + ",\"norm_a\":" + json_number(p.norm_a) + ",\"norm_b\":" + json_number(p.norm_b) +
         ",\"loss_apart\":" + json_number(p.loss_difference()) + ",\"norm_apart\":" + json_number(p.norm_difference()) + "}";
  }
  r += "],\"divergence\":";
  if (!o.where) return r + "null}\n";
  return r + "{\"step\":" + std::to_string(o.where->step) + ",\"op\":" + json_string(o.where->op) +
         ",\"shape\":" + json_string(o.where->shape) + ",\"output\":" + std::to_string(o.where->output) +
         ",\"apart\":" + json_number(o.where->difference) + ",\"near\":" + json_string(o.where->near) + "}}\n";
}

int run(settings s, const std::string& name) {
  int code = support::success;
  if (s.b.empty()) s.b = iso::selected_backend::name;
  for (const std::string* asked : {&s.a, &s.b})
    if (auto r = backends::find(*asked); support::failed(program, r, code)) return code;
  if (s.steps < 1 || s.batch < 1 || s.length < 1)
    return support::report(
        program, iso::fail(iso::errc::invalid_argument, "steps, batch and length must be at least 1", "flags", "give at least 1 for each"));
  iso::train::parity_gate gate = iso::train::gate_of(iso::selected::precision::type);
  if (s.loss_gate > 0) gate.loss = s.loss_gate;
  if (s.norm_gate > 0) gate.norm = s.norm_gate;
  using cpu = on<iso::backend::cpu>;
  using built = on<iso::selected_backend>;
  const bool a_cpu = s.a == "cpu", b_cpu = s.b == "cpu";
  auto o = a_cpu && b_cpu ? compare<cpu, cpu>(s, name, gate)
           : a_cpu        ? compare<cpu, built>(s, name, gate)
           : b_cpu        ? compare<built, cpu>(s, name, gate)
                          : compare<built, built>(s, name, gate);
  if (support::failed(program, o, code)) return code;
  if (!s.json.empty())
    if (auto r = iso::io::write_file(s.json, json_of(s, name, gate, *o)); support::failed(program, r, code)) return code;
  double loss = 0, norm = 0;
  for (const auto& p : o->steps) loss = std::max(loss, p.loss_difference()), norm = std::max(norm, p.norm_difference());
  if (!o->failed) {
    support::print(s.a + " and " + s.b + " agree over " + std::to_string(o->steps.size()) + " steps: losses within " +
                   iso::train::shortest(float(loss)) + ", gradient norms within " + iso::train::shortest(float(norm)) + "\n");
    return support::success;
  }
  if (o->where)
    support::print("first apart in plan step " + std::to_string(o->where->step) + ": " + o->where->op + " " + o->where->shape +
                   ", output " + std::to_string(o->where->output) + ", by " + iso::train::shortest(float(o->where->difference)) +
                   " (steps before: " + iso::train::shortest(float(o->where->worst_before)) + "), near " + o->where->near + "\n");
  else support::print("no single step is apart by more than " + iso::train::shortest(float(gate.value)) + ": the difference builds up\n");
  return support::runtime_failure;
}

int guarded_main(int argc, char** argv) {
  const auto given = support::command_line(argc, argv);
  if (support::asks_for_help(given)) return support::print(help_text()), support::success;
  int code = support::success;
  if (auto r = support::check_variables(given); support::failed(program, r, code)) return code;
  auto loaded = iso::config::load<settings>(given, named_sizes(), support::rules_for(switches, std::string(default_size)));
  if (support::failed(program, loaded, code)) return code;
  if (loaded->has_switch("version"))
    return support::print(support::version_text(program, iso::build_info<iso::selected>)), support::success;
  if (auto r = support::check_run(*loaded); support::failed(program, r, code)) return code;
  return run(loaded->value, loaded->size);
}

}  // namespace parity_program

int main(int argc, char** argv) {
  return support::guarded(parity_program::program, [&] { return parity_program::guarded_main(argc, argv); });
}
