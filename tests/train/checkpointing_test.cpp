#include <isotope/train/checkpointing.hpp>
#include <isotope/train/trainer.hpp>
#include <train/fake_session.hpp>

#include <gtest/gtest.h>

#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <atomic>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <stdlib.h>

namespace train = isotope::train;
namespace io = isotope::io;

namespace checkpointing_test {

/// A new empty folder, which is removed at the end.
struct temporary_folder {
  std::string path = (std::filesystem::temp_directory_path() / "isotope-train-XXXXXX").string();
  temporary_folder() { EXPECT_NE(::mkdtemp(path.data()), nullptr) << path; }
  ~temporary_folder() { std::filesystem::remove_all(path); }
};

train::run_identity identity() { return {R"({"width":3})", R"({"steps":20})", 7, 2, io::vocabulary::of_bytes()}; }

train::run_state at_step(std::int64_t step) {
  train::run_state r;
  r.step = step;
  return r;
}

train::trainer_options options(std::int64_t stop_after) {
  train::trainer_options o;
  o.steps = 20;
  o.batch = 2;
  o.length = 2;
  o.accumulate = 2;
  o.eval_every = 6;
  o.checkpoint_every = 4;
  o.stop_after = stop_after;
  o.on_non_finite = train::non_finite::skip;
  o.scalars.seed = 7;
  o.scalars.beta1 = 0.9;
  o.scalars.beta2 = 0.99f;
  return o;
}

isotope::result<train::done_event> run(fake::session& session, train::folder_store& store, std::int64_t stop_after,
                                       train::run_state state = {}) {
  const fake::data data;
  train::silent sink;
  const std::atomic<bool> interrupted{false};
  session.losses = [at = state.step](std::int64_t n) {
    return at + n == 9 ? std::numeric_limits<double>::quiet_NaN() : 1.0 / double(at + n);
  };
  train::trainer t(
      session, data, store, sink, [](std::int64_t step) { return 1e-2 / double(step + 1); }, [] { return 0.0; }, interrupted,
      options(stop_after), state);
  return t.run();
}

std::string bytes_of(const std::string& path) {
  const auto file = io::read_file(path);
  return file ? std::string(file->text()) : "unreadable";
}

TEST(checkpointing, a_stopped_and_resumed_run_writes_the_bytes_of_an_uninterrupted_one) {
  const temporary_folder whole, parts;
  const auto whole_folder = io::checkpoint_writer::open(whole.path), parts_folder = io::checkpoint_writer::open(parts.path);
  fake::session a;
  a.initialize(7);
  train::folder_store a_store(*whole_folder, identity());
  ASSERT_TRUE(run(a, a_store, 0));
  for (const std::int64_t stop : {5, 9, 14}) {
    fake::session b;
    b.initialize(7);
    train::run_state state;
    if (const auto latest = parts_folder->latest()) {
      b.initialize(99);
      const auto restored = train::restore(b, latest->contents, identity(), latest->path);
      ASSERT_TRUE(restored) << restored.error().line();
      state = *restored;
    }
    train::folder_store store(*parts_folder, identity());
    ASSERT_TRUE(run(b, store, stop, state));
  }
  fake::session c;
  const auto latest = parts_folder->latest();
  ASSERT_TRUE(latest);
  EXPECT_EQ(latest->contents.state.step, 14);
  EXPECT_EQ(latest->contents.state.optimizer_step, 13);
  const auto restored = train::restore(c, latest->contents, identity(), latest->path);
  ASSERT_TRUE(restored);
  train::folder_store store(*parts_folder, identity());
  ASSERT_TRUE(run(c, store, 0, *restored));
  EXPECT_EQ(bytes_of(parts_folder->path_of(20)), bytes_of(whole_folder->path_of(20)));
  EXPECT_EQ(bytes_of(parts_folder->best_path()), bytes_of(whole_folder->best_path()));
  EXPECT_NE(bytes_of(parts_folder->path_of(20)), "unreadable");
}

TEST(checkpointing, run_state_survives_saving_with_and_without_a_validation_loss) {
  const temporary_folder t;
  const auto folder = io::checkpoint_writer::open(t.path);
  train::folder_store store(*folder, identity());
  fake::session s;
  for (const train::run_state& r : {train::run_state{10, 3, 2, 8, 0.1 + 0.2, {1.0 / 3, 4, 5}}, train::run_state{11, 0, 0, -1, {}, {}}}) {
    ASSERT_TRUE(store.save(s, r, false));
    const auto saved = io::load_checkpoint(folder->path_of(r.step));
    ASSERT_TRUE(saved);
    const auto back = train::restore(s, *saved, identity(), "x");
    ASSERT_TRUE(back) << back.error().line();
    EXPECT_EQ(*back, r);
  }
}

/// A session whose products a library computes by algorithms of this digest.
struct choosing_session : fake::session {
  std::string digest;
  std::string algorithms() const { return digest; }
};
static_assert(train::ChoosesAlgorithms<choosing_session> && !train::ChoosesAlgorithms<fake::session>);

TEST(checkpointing, a_checkpoint_records_the_digest_of_algorithms_and_a_run_with_others_is_told_both) {
  const temporary_folder t;
  const auto folder = io::checkpoint_writer::open(t.path);
  train::folder_store store(*folder, identity());
  choosing_session chosen, others;
  chosen.digest = "1234abcd";
  others.digest = "77";
  fake::session none;
  const auto difference = [&](auto& writer, const auto& reader) {
    EXPECT_TRUE(store.save(writer, at_step(3), false));
    const auto saved = io::load_checkpoint(folder->path_of(3));
    EXPECT_TRUE(saved);
    EXPECT_TRUE(train::restore(others, *saved, identity(), "x")) << "other algorithms are no reason to refuse";
    return train::other_algorithms(reader, *saved);
  };
  EXPECT_EQ(difference(chosen, chosen), "");
  EXPECT_EQ(difference(none, none), "");
  const std::string told = difference(chosen, others);
  EXPECT_NE(told.find("were 1234abcd and are 77,"), std::string::npos) << told;
  EXPECT_NE(difference(chosen, none).find("were 1234abcd and are none,"), std::string::npos);
  EXPECT_NE(difference(none, chosen).find("were none and are 1234abcd,"), std::string::npos);
}

TEST(checkpointing, another_model_vocabulary_or_accumulation_is_refused_with_both_values) {
  const temporary_folder t;
  const auto folder = io::checkpoint_writer::open(t.path);
  train::folder_store store(*folder, identity());
  fake::session s;
  ASSERT_TRUE(store.save(s, at_step(3), false));
  const auto saved = io::load_checkpoint(folder->path_of(3));
  ASSERT_TRUE(saved);
  train::run_identity other = identity();
  other.model = R"({"width":4})";
  auto r = train::restore(s, *saved, other, "x");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, isotope::errc::model_mismatch);
  EXPECT_NE(r.error().what.find(R"({"width":3})"), std::string::npos);
  EXPECT_NE(r.error().what.find(R"({"width":4})"), std::string::npos);
  other = identity();
  other.vocab = io::vocabulary::of_tokens(256);
  EXPECT_FALSE(train::restore(s, *saved, other, "x"));
  other = identity();
  other.micro_batches = 3;
  EXPECT_FALSE(train::restore(s, *saved, other, "x"));
  s.slots[0].dims = {4, 1};
  for (auto& kind : s.values) kind[0].resize(4);
  r = train::restore(s, *saved, identity(), "x");
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().where.find("a.weight"), std::string::npos);
}

TEST(checkpointing, another_text_of_the_same_vocabulary_is_refused_where_both_are_known) {
  const temporary_folder t;
  const auto folder = io::checkpoint_writer::open(t.path);
  fake::session s;
  const auto of_text = [](std::uint64_t data) {
    train::run_identity i = identity();
    i.data = data;
    return i;
  };
  train::folder_store store(*folder, of_text(17));
  ASSERT_TRUE(store.save(s, at_step(3), false));
  const auto saved = io::load_checkpoint(folder->path_of(3));
  ASSERT_TRUE(saved);
  EXPECT_TRUE(train::restore(s, *saved, of_text(17), "x"));
  EXPECT_TRUE(train::restore(s, *saved, of_text(0), "x"));
  const auto r = train::restore(s, *saved, of_text(18), "x");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, isotope::errc::model_mismatch);
  EXPECT_NE(r.error().what.find("the checkpoint's text (hash 17) is not this one (hash 18)"), std::string::npos) << r.error().what;
}

TEST(checkpointing, a_state_with_a_non_finite_value_is_not_saved) {
  const temporary_folder t;
  const auto folder = io::checkpoint_writer::open(t.path);
  train::folder_store store(*folder, identity());
  fake::session s;
  ASSERT_TRUE(store.save(s, at_step(3), false));
  s.values[0][1][1] = std::numeric_limits<float>::infinity();
  const auto r = store.save(s, at_step(4), false);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, isotope::errc::non_finite);
  EXPECT_NE(r.error().what.find("element 1 of 'b.bias'"), std::string::npos) << r.error().what;
  const auto latest = folder->latest();
  ASSERT_TRUE(latest);
  EXPECT_EQ(latest->contents.state.step, 3);
}

/// A classifier with a bias that is not trained and a matrix that Muon updates.
struct frozen_bias {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    namespace init = isotope::init;
    const auto tokens = s.input("tokens", {4}, isotope::dtype::i32), targets = s.input("targets", {4}, isotope::dtype::i32);
    const auto bias = s.param("bias", {8}, isotope::param_options{.init = init::normal(1), .trainable = false});
    const auto matrix = s.param("matrix", {8, 8}, isotope::param_options{.init = init::normal(0.3), .muon = 1});
    const auto seen = s.state("seen", {4, 8});  // the result depends on the contents from earlier steps
    const auto scores = matmul(embedding(s.param("w", {8, 8}, init::normal(1)), tokens), matrix) + bias + seen * 0.5;
    static_cast<void>(assign(seen, scores));
    return cross_entropy(scores, targets);
  }
};

TEST(checkpointing, any_optimiser_with_frozen_parameters_and_state_goes_on_bit_for_bit) {
  using target = isotope::target<isotope::backend::cpu, isotope::precision::f32, isotope::kernels::reference>;
  const std::vector<std::int32_t> tokens{1, 2, 3, 4}, targets{2, 3, 4, 5};
  const isotope::batch batch{tokens, targets};
  using isotope::optimizer_kind;
  for (const auto optimizer : {optimizer_kind::adamw, optimizer_kind::sgd, optimizer_kind::muon, optimizer_kind::none}) {
    const auto open = [&](std::uint64_t seed) {
      auto device = isotope::device<target>::open({.threads = 1});
      auto s = device->load(*isotope::plan_training<target>(frozen_bias{}, {.optimizer = optimizer}));
      EXPECT_TRUE(s.ok());
      s->initialize(seed);
      return *std::move(s);
    };
    const auto step = [&](auto& s, std::int64_t k) {
      return s.step(batch, {.optimizer_step = k, .learning_rate = 0.1f, .momentum = 0.9f}).loss;
    };
    const temporary_folder t;
    const auto folder = io::checkpoint_writer::open(t.path);
    train::folder_store store(*folder, identity());
    auto first = open(7), second = open(8);
    step(first, 1), step(first, 2);
    const auto saved = store.save(first, at_step(2), false);
    ASSERT_TRUE(saved) << saved.error().line();
    const auto loaded = io::load_checkpoint(*saved);
    ASSERT_TRUE(loaded);
    const auto restored = train::restore(second, *loaded, identity(), "x");
    ASSERT_TRUE(restored) << restored.error().line();
    for (std::int64_t k = 3; k < 6; ++k) EXPECT_EQ(step(second, k), step(first, k));
  }
}

TEST(checkpointing, parameters_alone_can_be_restored) {
  const temporary_folder t;
  const auto folder = io::checkpoint_writer::open(t.path);
  train::folder_store store(*folder, identity());
  fake::session s, u;
  s.initialize(5);
  s.values[2][0][0] = 42;
  ASSERT_TRUE(store.save(s, at_step(1), true));
  const auto saved = io::load_checkpoint(folder->best_path());
  ASSERT_TRUE(saved);
  ASSERT_TRUE(train::restore_parameters(u, *saved));
  EXPECT_EQ(u.values[0], s.values[0]);
  EXPECT_EQ(u.values[2][0][0], 0);
}

}  // namespace checkpointing_test
