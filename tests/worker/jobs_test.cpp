// labels: threads
/// The jobs of a device worker: what each does and refuses, and that results are those of a session that is used directly.
#include <fstream>
#include <isotope/io/safetensors.hpp>

#include <isotope/worker/by_name.hpp>

#include <array>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string_view>

#include "../io/scratch_folder.hpp"
#include "rig.hpp"

using namespace worker_test;

namespace {

/// A session on this thread does what the worker's jobs do.
struct direct {
  iso::device<here> device = *iso::device<here>::open({.threads = 1});
  iso::device<here>::session session = *device.load(training_plan(), evaluation_plan());
  direct() { session.initialize(3); }
  struct inputs {
    std::vector<worker::named_numbers> all = batch();
    template <class Give> void each_input(const Give& give) const {
      for (const auto& x : all) give(std::string_view(x.name), std::span<const float>(std::get<std::vector<float>>(x.values)));
    }
  };
  std::vector<float> weights() {
    std::vector<float> w(4);
    EXPECT_TRUE(session.read(iso::tensor_kind::parameter, 0, w).ok());
    return w;
  }
};

}  // namespace

TEST(worker_jobs, steps_evaluations_and_reads_have_the_bits_of_a_session_that_is_used_directly) {
  direct d;
  const auto w = started();
  const auto m = load_training(w);
  for (int k = 0; k < 3; ++k) {
    const auto mine = value_of(w.submit(worker::step{m, {batch()}, scalars()}).get());
    const auto theirs = d.session.step(direct::inputs{}, scalars());
    EXPECT_EQ(mine.loss, theirs.loss);
    EXPECT_EQ(mine.grad_norm, theirs.grad_norm);
    EXPECT_FALSE(mine.skipped);
  }
  EXPECT_EQ(value_of(w.submit(worker::evaluate{m, batch()}).get()), d.session.evaluate(direct::inputs{}));
  const auto read = value_of(w.submit(worker::read{m}).get());
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].name, "w");
  EXPECT_EQ(read[0].values, d.weights());
}

TEST(worker_jobs, several_micro_batches_are_one_step) {
  const auto w = started();
  auto job = worker::load_plans<here>(training_plan(true));
  job.seed = 3;
  const auto m = value_of(w.submit(std::move(job)).get()).model;
  const auto both = value_of(w.submit(worker::step{m, {batch(), batch(1)}, scalars()}).get());
  EXPECT_GT(both.loss, 0);
  const auto single = load_training(w);
  EXPECT_EQ(code_of(w.submit(worker::step{single, {batch(), batch(1)}, scalars()}).get()), errc::invalid_argument)
      << "a plan without accumulation takes one";
}

TEST(worker_jobs, a_load_replies_what_there_is_to_read_and_write) {
  const auto w = started();
  const auto l = value_of(w.submit(worker::load_plans<here>(training_plan(), evaluation_plan())).get());
  ASSERT_EQ(l.parameters.size(), 1U);
  EXPECT_EQ(l.parameters[0].name, "w");
  EXPECT_EQ(l.parameters[0].dims, (std::vector<std::int64_t>{2, 2}));
  ASSERT_EQ(l.plans.size(), 2U);
  EXPECT_EQ(l.plans[0].name, "training");
  EXPECT_EQ(l.plans[1].name, "evaluation");
  ASSERT_EQ(l.plans[0].inputs.size(), 2U);
  EXPECT_EQ(l.plans[0].inputs[0].dims, (std::vector<std::int64_t>{4, 2}));
  EXPECT_GT(l.planned_bytes, 0);
}

TEST(worker_jobs, weights_are_written_by_values_from_a_source_and_from_a_file) {
  const auto w = started();
  const auto m = value_of(w.submit(worker::load_plans<here>(product_plan())).get()).model;
  const auto product = [&] {
    auto r = value_of(w.submit(worker::decode{.model = m, .inputs = {batch()[0]}}).get());
    EXPECT_EQ(r.size(), 1U);
    EXPECT_EQ(r[0].name, "output");
    return std::get<std::vector<float>>(r[0].values);
  };
  const std::vector<float> x = std::get<std::vector<float>>(batch()[0].values);
  const auto times = [&](float by) {
    std::vector<float> y = x;
    for (float& v : y) v *= by;
    return y;
  };
  EXPECT_EQ(product(), times(0)) << "parameters without a seed are zeros";
  value_of(w.submit(worker::write{m, iso::tensor_kind::parameter, std::vector<worker::tensor_values>{{"w", {2, 0, 0, 2}}}}).get());
  EXPECT_EQ(product(), times(2));

  const worker::weight_source source{[](std::string_view name, std::span<const std::int64_t> dims, std::span<float> values) {
    EXPECT_EQ(name, "w");
    EXPECT_EQ(dims.size(), 2U);
    values[0] = values[3] = 3;
    values[1] = values[2] = 0;
    return iso::result<void>();
  }};
  value_of(w.submit(worker::write{m, iso::tensor_kind::parameter, source}).get());
  EXPECT_EQ(product(), times(3));

  const iso::scratch_folder folder;
  const std::vector<float> four{4, 0, 0, 4};
  const std::array stored{iso::io::stored_tensor{"w", iso::io::f32_elements, {2, 2}, std::as_bytes(std::span(four))}};
  const std::string path = folder.at("weights.safetensors");
  value_of(iso::io::write_safetensors(path, stored, {}));
  value_of(w.submit(worker::write{m, iso::tensor_kind::parameter, worker::weights_file{path}}).get());
  EXPECT_EQ(product(), times(4));

  const std::array other{iso::io::stored_tensor{"v", iso::io::f32_elements, {2, 2}, std::as_bytes(std::span(four))}};
  value_of(iso::io::write_safetensors(path, other, {}));
  EXPECT_EQ(code_of(w.submit(worker::write{m, iso::tensor_kind::parameter, worker::weights_file{path}}).get()), errc::model_mismatch);
  value_of(w.submit(worker::write{m, iso::tensor_kind::parameter, worker::weights_file{path, true}}).get());
  EXPECT_EQ(code_of(w.submit(worker::write{m, iso::tensor_kind::parameter, worker::weights_file{folder.at("none")}}).get()),
            errc::not_found);
  EXPECT_EQ(product(), times(4));
}

namespace {
/// sum += x, and returns it.
struct running_sum {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    const auto now = assign(s.state("sum", {2}), s.state("sum", {2}) + s.input("x", {2}));
    return now * 1.0;
  }
};
using static_product = iso::inference<line<false>, here>;
}  // namespace

// DW-21: one run decodes all sequences of a plan, several runs are one submission, and what a slot has seen is read and written as its states.
TEST(worker_jobs, states_last_from_run_to_run_and_are_read_restored_and_cleared) {
  const auto w = started();
  const auto l = value_of(w.submit(worker::load_plans<here>(*iso::plan_inference<here>(running_sum{}))).get());
  ASSERT_EQ(l.states.size(), 1U);
  const std::vector<worker::named_numbers> x{{"x", std::vector<float>{1, 2}}};
  const auto run = [&](int times) {
    return std::get<std::vector<float>>(value_of(w.submit(worker::decode{.model = l.model, .inputs = x, .times = times}).get())[0].values);
  };
  EXPECT_EQ(run(1), (std::vector<float>{1, 2}));
  EXPECT_EQ(run(3), (std::vector<float>{4, 8}));
  const auto snapshot = value_of(w.submit(worker::read{l.model, iso::tensor_kind::state}).get());
  ASSERT_EQ(snapshot.size(), 1U);
  EXPECT_EQ(snapshot[0].values, (std::vector<float>{4, 8}));
  EXPECT_EQ(run(1), (std::vector<float>{5, 10}));
  value_of(w.submit(worker::write{l.model, iso::tensor_kind::state, snapshot}).get());
  EXPECT_EQ(run(1), (std::vector<float>{5, 10}));
  value_of(w.submit(worker::clear_states{l.model}).get());
  EXPECT_EQ(run(1), (std::vector<float>{1, 2}));
  EXPECT_EQ(code_of(w.submit(worker::decode{.model = l.model, .inputs = x, .times = 0}).get()), errc::invalid_argument);
}

TEST(worker_jobs, a_plan_that_the_compiler_made_is_loaded_too) {
  const auto w = started();
  auto job = worker::load_static<here>({{"product", static_product::view()}});
  job.seed = 3;
  const auto m = value_of(w.submit(std::move(job)).get()).model;
  const auto y = value_of(w.submit(worker::decode{.model = m, .plan = "product", .inputs = {batch()[0]}, .outputs = {"output"}}).get());
  direct d;
  const auto weights = d.weights();
  const std::vector<float> x = std::get<std::vector<float>>(batch()[0].values);
  EXPECT_EQ(std::get<std::vector<float>>(y[0].values)[0], x[0] * weights[0] + x[1] * weights[2]);
}

TEST(worker_jobs, what_does_not_fit_is_refused_by_name_and_the_worker_goes_on) {
  const auto w = started();
  const auto m = load_training(w);
  const auto step_with = [&](std::vector<worker::named_numbers> b) { return w.submit(worker::step{m, {std::move(b)}, scalars()}).get(); };
  EXPECT_EQ(code_of(step_with({{"y", std::vector<float>(8)}})), errc::not_found);
  EXPECT_EQ(code_of(step_with({{"x", std::vector<float>(7)}})), errc::invalid_argument);
  EXPECT_EQ(code_of(step_with({{"x", std::vector<std::int32_t>(8)}})), errc::invalid_argument);
  EXPECT_EQ(code_of(w.submit(worker::step{m, {}, scalars()}).get()), errc::invalid_argument);
  EXPECT_EQ(code_of(w.submit(worker::decode{m}).get()), errc::invalid_argument) << "the first plan trains";
  EXPECT_EQ(code_of(w.submit(worker::decode{.model = m, .plan = "none"}).get()), errc::not_found);
  EXPECT_EQ(code_of(w.submit(worker::read{m, iso::tensor_kind::parameter, {"v"}}).get()), errc::not_found);
  EXPECT_EQ(code_of(w.submit(worker::write{m, iso::tensor_kind::gradient, worker::weights_file{"w"}}).get()), errc::invalid_argument);
  using other = iso::target<iso::backend::cpu, iso::precision::f32, iso::kernels::portable>;
  EXPECT_EQ(code_of(w.submit(worker::load_plans<other>(training_plan<other>())).get()), errc::wrong_device);
  EXPECT_FALSE(w.poisoned().has_value());
  EXPECT_TRUE(step_with(batch()).ok());
}

// DW-08: other processes allocate, too, so the words of the operating system before and after must be equal for the one between to be comparable.
TEST(worker_jobs, the_memory_query_says_what_the_operating_system_says_within_1_mib) {
  const auto w = started();
  const auto text = [] {
    std::ifstream file("/proc/meminfo");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  int steady = 0, same = 0;
  for (int k = 0; k < 5000 && same == 0; ++k) {
    const auto before = iso::cpu::bytes_of_entry(text(), "MemAvailable");
    const auto said = value_of(w.submit(worker::query_memory{}).get());
    const auto after = iso::cpu::bytes_of_entry(text(), "MemAvailable");
    EXPECT_EQ(said.total, iso::cpu::bytes_of_entry(text(), "MemTotal"));
    steady += before == after ? 1 : 0;
    same += before == after && std::abs(said.free - before) <= 1 << 20 ? 1 : 0;
  }
  if (steady == 0) GTEST_SKIP() << "the free memory of this machine changes all the time";
  EXPECT_GT(same, 0);
}
TEST(worker_jobs, entries_of_the_operating_system_are_read_by_their_whole_name) {
  const std::string text = "MemTotal:       24689516 kB\nMemFree:  7 kB\nMemAvailable:   1 kB\nDirty: x kB\n";
  EXPECT_EQ(iso::cpu::bytes_of_entry(text, "MemTotal"), 24689516LL * 1024);
  EXPECT_EQ(iso::cpu::bytes_of_entry(text, "MemAvailable"), 1024);
  for (const char* absent : {"Mem", "Free", "Dirty", "none"}) EXPECT_EQ(iso::cpu::bytes_of_entry(text, absent), -1) << absent;
  EXPECT_EQ(iso::cpu::bytes_of_entry("", "MemTotal"), -1);
}

// DW-11: the jobs are those of every build, and only the start asks for the backend.
TEST(worker_jobs, a_backend_that_the_program_was_built_without_is_a_typed_error_in_one_line) {
  const auto w = worker::start_by_name<here>("metal", one_thread());
  ASSERT_EQ(code_of(w), errc::not_compiled_in);
  EXPECT_NE(w.error().line().find("metal"), std::string::npos) << w.error().line();
  EXPECT_EQ(w.error().line().find('\n'), std::string::npos);
  const auto cpu = value_of(worker::start_by_name<here>("cpu", one_thread()));
  EXPECT_EQ(cpu.info().backend, "cpu");
}
TEST(worker_jobs, a_device_that_does_not_open_is_the_error_of_the_start) {
  auto o = one_thread();
  o.device.name = "another";
  EXPECT_EQ(code_of(worker::device_worker::start<here>(o)), errc::unknown_device);
}
