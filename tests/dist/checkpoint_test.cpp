// Checkpoints of a mesh hold whole tensors, and are restored on any mesh.
#include "training_run.hpp"

#include <comm/tcp_ranks.hpp>
#include <io/scratch_folder.hpp>
#include <isotope/train/checkpointing.hpp>

#include <atomic>
#include <filesystem>
#include <optional>

using namespace dist_test;

namespace mesh_checkpoint_test {

// 65 classes do not divide by 2, so that the table has a row of padding, which no file may hold.
constexpr model::gpt size{2, 4, 32, 65, 16, 0.1};
constexpr int all_rows = 4;

/// A mesh and what it trains: the rows of a step are those of all its data indices.
struct layout {
  int data = 1, tensor = 1, zero = 0;
  optimizer_kind optimizer = optimizer_kind::adamw;
  grouping group = nullptr;
  int heads = size.heads, width = size.width;
  training_options options() const {
    auto o = mesh_of(data, tensor, zero);
    o.optimizer = optimizer;
    o.group = group;
    return o;
  }
  template <class T> dynamic_plan plan() const {
    model::gpt of = size;
    of.heads = heads;
    of.width = width;
    return planned<T>(model::gpt_loss_of{of, all_rows / data, 16}, options());
  }
  friend std::ostream& operator<<(std::ostream& o, const layout& l) {
    return o << "data " << l.data << " tensor " << l.tensor << " zero " << l.zero;
  }
};

train::run_identity identity() { return {R"({"width":32})", R"({"steps":6})", 7, 1, io::vocabulary::of_bytes()}; }
train::run_state at_step(std::int64_t step) {
  train::run_state r;
  r.step = step;
  return r;
}

/// Saves on every rank; the outcome of this one.
template <class Session> result<std::string> save(Session& s, const std::string& folder, std::int64_t step) {
  const auto at = s.groups().position();
  if (!(at == mesh_position{})) return train::peer_store{}.save(s, at_step(step), false);
  auto writer = io::checkpoint_writer::open(folder);
  if (!writer) return writer.error();
  return train::folder_store(*writer, identity()).save(s, at_step(step), false);
}
std::string path_in(const std::string& folder, std::int64_t step) { return io::checkpoint_folder(folder).path_of(step); }
std::string bytes_of(const std::string& path) {
  const auto file = io::read_file(path);
  return file ? std::string(file->text()) : "unreadable";
}

/// Trains from step `first` to `last` and returns the losses.
template <class T> std::vector<double> steps(const rank<T>& k, const layout& l, int first, int last) {
  std::vector<double> losses;
  const int rows = all_rows / l.data;
  for (int i = first; i <= last; ++i) {
    fill_rows(k.session, k.at.data * rows, rows, size.vocab, i, true);
    losses.push_back(k.session.run(scalars(i)).loss);
  }
  return losses;
}

/// What a run leaves on a mesh: the file at step 3, the losses of steps 4 to 6, and the file after them.
struct left {
  std::string file, end;
  std::vector<double> losses;
  tensors weights;  // at step 3
};
/// @param from  the folder with the file of step 3; empty: train up to there
template <class T, class Groups = thread_groups> left run(const layout& l, const std::string& from) {
  left out;
  const scratch_folder to;
  std::mutex one_at_a_time;
  on_mesh<T, Groups>(l.options().mesh, l.plan<T>(), [&](const rank<T>& k) {
    if (from.empty()) {
      steps<T>(k, l, 1, 3);
    } else {
      auto file = io::load_checkpoint(path_in(from, 3));
      ASSERT_TRUE(file.ok()) << file.error().line();
      const auto state = train::restore(k.session, *file, identity(), from);
      ASSERT_TRUE(state.ok()) << state.error().line();
      EXPECT_EQ(state->step, 3);
    }
    auto saved = save(k.session, to.at(""), 3);
    ASSERT_TRUE(saved.ok()) << saved.error().line();
    EXPECT_EQ(saved->empty(), !(k.at == mesh_position{}));
    {
      const std::lock_guard lock(one_at_a_time);
      if (l.zero == 0 || T::precision::type == dtype::f32) collect<T>(k.session, tensor_kind::parameter, k.at.tensor, out.weights);
    }
    const auto losses = steps<T>(k, l, 4, 6);
    saved = save(k.session, to.at(""), 6);
    ASSERT_TRUE(saved.ok()) << saved.error().line();
    if (k.at == mesh_position{}) out.losses = losses;
  });
  out.file = bytes_of(path_in(to.at(""), 3));
  out.end = bytes_of(path_in(to.at(""), 6));
  return out;
}
void put(const std::string& folder, const std::string& bytes) { ASSERT_TRUE(io::write_file(path_in(folder, 3), bytes).ok()); }

/// Each file is restored on each mesh, which saves the same bytes and goes on.
template <class T> void expect_any_mesh_to_go_on(const std::vector<layout>& from, const std::vector<layout>& to) {
  for (const layout& a : from) {
    const left whole = run<T>(a, "");
    const scratch_folder folder;
    put(folder.at(""), whole.file);
    const auto file = io::load_checkpoint(path_in(folder.at(""), 3));
    ASSERT_TRUE(file.ok()) << file.error().line();
    for (const auto& [path, x] : whole.weights) {
      std::vector<float> saved(x.size());
      ASSERT_TRUE(file->read(path, saved).ok()) << path;
      EXPECT_EQ(saved, x) << path;
    }
    for (const layout& b : to) {
      const left rest = run<T>(b, folder.at(""));
      EXPECT_TRUE(rest.file == whole.file) << "parameters or moments of " << a << " changed on " << b;
      ASSERT_EQ(rest.losses.size(), whole.losses.size());
      if (a.data == b.data && a.tensor == b.tensor) {
        EXPECT_EQ(rest.losses, whole.losses) << a << ", " << b;
        EXPECT_TRUE(rest.end == whole.end) << a << ", " << b;
      }
      const double most = T::precision::type == dtype::f32 ? 1e-4 : 0.01;
      for (std::size_t i = 0; i < rest.losses.size(); ++i)
        EXPECT_TRUE(std::fabs(rest.losses[i] - whole.losses[i]) <= most * whole.losses[i])
            << a << ", " << b << ": " << rest.losses[i] << " and " << whole.losses[i];
    }
  }
}

TEST(mesh_checkpoint, is_restored_on_any_mesh_with_every_bit) {
  expect_any_mesh_to_go_on<f32_target>({{1, 2}, {2, 1, 0}, {2, 1, 1}}, {{1, 1}, {2, 1, 0}, {2, 1, 1}, {1, 2}, {2, 2, 0}, {2, 2, 1}});
}
// A device has two heads, and the other one and one of zeros, which no file may hold.
TEST(mesh_checkpoint, holds_no_heads_of_zeros) {
  layout one{1, 1}, two{1, 2}, four{2, 2, 1};
  for (layout* l : {&one, &two, &four}) l->heads = 3, l->width = 24;
  expect_any_mesh_to_go_on<f32_target>({one, two}, {one, two, four});
}
TEST(mesh_checkpoint, is_restored_with_the_masters_of_bf16) {
  expect_any_mesh_to_go_on<bf16_target>({{2, 1, 1}, {1, 2}}, {{1, 1}, {2, 1, 0}, {2, 2, 1}});
}
TEST(mesh_checkpoint, has_one_moment_of_sgd_and_none_of_frozen_parameters) {
  const auto frozen = [](std::string_view path, const shape&, param_group g) {
    g.trainable = path != "wpe.weight";
    return g;
  };
  layout zero{2, 1, 1, optimizer_kind::sgd, frozen}, plain{2, 1, 0, optimizer_kind::sgd, frozen};
  expect_any_mesh_to_go_on<f32_target>({zero}, {zero, plain});
  expect_any_mesh_to_go_on<bf16_target>({zero}, {zero});
}

/// The same groups over TCP, each with listeners of its own.
struct tcp_groups {
  std::vector<comm_test::tcp_ranks> tensor_groups, data_groups;
  explicit tcp_groups(const device_mesh& m) {
    for (int d = 0; d < m.data; ++d) tensor_groups.emplace_back(m.tensor);
    for (int t = 0; t < m.tensor; ++t) data_groups.emplace_back(m.data);
  }
  auto tensor(int d, int t) { return tensor_groups[std::size_t(d)].join(t); }
  auto data(int d, int t) { return data_groups[std::size_t(t)].join(d); }
};
TEST(mesh_checkpoint, has_the_same_bytes_from_ranks_that_are_connected_by_tcp) {
  const layout l{2, 2, 1};
  const left threads = run<f32_target>(l, ""), tcp = run<f32_target, tcp_groups>(l, "");
  EXPECT_GT(tcp.file.size(), 300'000u);  // 28,000 parameters with two moments
  EXPECT_TRUE(tcp.file == threads.file);
  EXPECT_TRUE(tcp.end == threads.end);
}

/// A session whose reads fail from some tensor on.
template <class Session> struct failing_session {
  Session& inner;
  int reads_left;
  auto parameters() const { return inner.parameters(); }
  auto states() const { return inner.states(); }
  void initialize(std::uint64_t seed) { inner.initialize(seed); }
  step_report step(std::span<const batch> b, const step_scalars& x) { return inner.step(b, x); }
  double evaluate(const batch& b) { return inner.evaluate(b); }
  result<void> read(tensor_kind what, std::size_t k, std::span<float> out) { return inner.read(what, k, out); }
  result<void> write(tensor_kind what, std::size_t k, std::span<const float> in) { return inner.write(what, k, in); }
  bool keeps(tensor_kind what, std::size_t k) const { return inner.keeps(what, k); }
  std::int64_t planned_bytes() const { return inner.planned_bytes(); }
  std::int64_t measured_bytes() const { return inner.measured_bytes(); }
  rank_groups groups() const { return inner.groups(); }
  bool divides(tensor_kind what, std::size_t k) const { return inner.divides(what, k); }
  result<void> read_own(tensor_kind what, std::size_t k, std::span<float> out) {
    if (reads_left-- == 0) return fail(errc::device_lost, "the device was lost", "test", "restart");
    return inner.read_own(what, k, out);
  }
};

TEST(mesh_checkpoint, of_a_rank_that_fails_is_not_written_and_the_last_one_stays) {
  const layout l{2, 2, 1};
  for (const int failing : {0, 3})
    for (const int reads : {0, 20}) {
      const scratch_folder folder;
      std::string before;
      on_mesh<f32_target>(l.options().mesh, l.plan<f32_target>(), [&](const rank<f32_target>& k) {
        steps<f32_target>(k, l, 1, 1);
        ASSERT_TRUE(save(k.session, folder.at(""), 1).ok());
        if (k.at == mesh_position{}) before = bytes_of(path_in(folder.at(""), 1));
        const bool fails = l.options().mesh.rank_of(k.at) == failing;
        failing_session<session_of<f32_target>> s{k.session, fails ? reads : -1};
        const auto saved = save(s, folder.at(""), 2);
        ASSERT_FALSE(saved.ok());
        const std::string line = saved.error().line();
        if (fails) EXPECT_EQ(line.substr(0, 14), "test: tensor '") << line;
        else EXPECT_EQ(line, "checkpoint: 1 of the 4 ranks could not save it (fix: see what they report; the last checkpoint is whole)");
        // The group goes on.
        const auto again = save(k.session, folder.at(""), 3);
        EXPECT_TRUE(again.ok()) << again.error().line();
      });
      EXPECT_EQ(bytes_of(path_in(folder.at(""), 1)), before);
      const auto names = io::checkpoint_folder(folder.at("")).list();
      ASSERT_EQ(names.size(), 2u);
      EXPECT_EQ(names[1].step, 3);
    }
}
TEST(mesh_checkpoint, of_a_folder_that_cannot_be_written_fails_on_every_rank) {
  const layout l{2, 1, 1};
  const scratch_folder folder;
  on_mesh<f32_target>(l.options().mesh, l.plan<f32_target>(), [&](const rank<f32_target>& k) {
    std::optional<io::checkpoint_writer> writer;
    result<std::string> saved = std::string();
    if (k.at == mesh_position{}) {
      auto opened = io::checkpoint_writer::open(folder.at(""));
      ASSERT_TRUE(opened.ok());
      std::filesystem::remove_all(folder.at(""));
      saved = train::folder_store(*opened, identity()).save(k.session, at_step(1), false);
      ASSERT_FALSE(saved.ok());
      EXPECT_EQ(saved.error().code, errc::write_failed);
    } else {
      saved = train::peer_store{}.save(k.session, at_step(1), false);
      ASSERT_FALSE(saved.ok());
      EXPECT_EQ(saved.error().code, errc::peer_lost);
    }
  });
}
TEST(mesh_checkpoint, of_a_rank_that_leaves_is_not_written_and_the_last_one_stays) {
  const layout l{1, 2};
  const scratch_folder folder;
  on_mesh<f32_target>(l.options().mesh, l.plan<f32_target>(), [&](const rank<f32_target>& k) {
    ASSERT_TRUE(save(k.session, folder.at(""), 1).ok());
    if (k.at.tensor == 0) {  // the communicators of the other one end
      const auto saved = save(k.session, folder.at(""), 2);
      ASSERT_FALSE(saved.ok());
      EXPECT_EQ(saved.error().code, errc::peer_lost) << saved.error().line();
    }
  });
  const auto names = io::checkpoint_folder(folder.at("")).list();
  ASSERT_EQ(names.size(), 1u);
  EXPECT_TRUE(io::load_checkpoint(names[0].path).ok());
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& f : std::filesystem::directory_iterator(folder.at(""))) ++files;
  EXPECT_EQ(files, 2u);  // with the lock, and without a temporary file
}

}  // namespace mesh_checkpoint_test
