// A rank reads only its pieces of a folder's weights: of fused queries, keys and values, too, stored as one tensor or as three. And the ranks of a mesh hold a part of
// one tensor each while they save whole ones.
#include <allocation_counter.hpp>
#include <io/scratch_folder.hpp>

#include "on_mesh.hpp"

#include <isotope/interop/gpt2_folder.hpp>
#include <isotope/interop/llama_folder.hpp>
#include <isotope/train/saved_tensors.hpp>

using namespace dist_test;

namespace shard_loading_test {

using session = session_of<f32_target>;

training_options mesh_of(int tensor) {
  training_options o;
  o.mesh.tensor = tensor;
  return o;
}
/// Calls work(session) on one rank after another: loading a session and its weights takes no collective.
template <class Model, class Work> void on_each_rank(const Model& model, int tensor, const Work& work) {
  const auto plan = planned<f32_target>(model, mesh_of(tensor));
  thread_group group(tensor);
  for (int r = 0; r < tensor; ++r) {
    const auto rank = *group.join(r);
    auto d = device<f32_target>::open({.threads = 1});
    ASSERT_TRUE(d.ok());
    if (tensor > 1) d->join({rank.get(), nullptr});
    auto s = d->load(plan);
    ASSERT_TRUE(s.ok()) << s.error().line();
    s->initialize(std::uint64_t(r) + 100);
    work(*s, r);
  }
}
tensors parameters_of(session& s) {
  tensors all;
  collect<f32_target>(s, tensor_kind::parameter, 0, all);
  return all;
}
/// The pieces of the whole parameters, times a number, are those of the rank; padding is 0.
void expect_pieces(session& s, int tensor, const tensors& whole, float times = 1) {
  for (std::size_t k = 0; k < s.parameters().size(); ++k) {
    const slot& p = s.parameters()[k];
    std::vector<float> here(std::size_t(p.dims.count())), wanted(here.size(), 0.0f);
    ASSERT_TRUE(s.read(tensor_kind::parameter, k, here).ok());
    const auto& all = whole.at(std::string(p.path.view()));
    for_piece_runs(p, tensor, [&](const piece_run& r) {
      for (std::int64_t i = 0; i < r.count; ++i) wanted[std::size_t(r.here + i)] = times * all[std::size_t(r.whole + i)];
    });
    EXPECT_EQ(here, wanted) << p.path.view() << ", rank " << tensor;
  }
}
std::uint64_t bytes_read(const io::model_folder& folder) {
  std::uint64_t n = 0;
  for (std::size_t k = 0; k < folder.size(); ++k)
    if (k == 0 || &folder.file_of(k) != &folder.file_of(k - 1)) n += folder.file_of(k).source.bytes_read();
  return n;
}

// As GPT-2 itself, 0.6 % of whose numbers are whole on every rank.
constexpr model::gpt size{2, 4, 128, 2048, 16};
constexpr model::gpt_loss_of gpt{size, 1, 16};

TEST(shard_loading, reads_a_part_of_the_file_and_holds_one_piece) {
  const scratch_folder f;
  tensors whole;
  on_each_rank(gpt, 1, [&](session& s, int) {
    whole = parameters_of(s);
    ASSERT_TRUE(interop::save_gpt2(f.at("gpt"), s, size).ok());
  });
  for (const int tensor : {1, 2, 4})
    on_each_rank(gpt, tensor, [&](session& s, int rank) {
      const auto folder = io::open_model(f.at("gpt"));
      ASSERT_TRUE(folder.ok()) << folder.error().line();
      const auto match = interop::match_gpt2(*folder, {size}, s.parameters());
      ASSERT_TRUE(match.ok()) << match.error().line();
      ASSERT_TRUE(interop::accept(*folder, *match, false).ok()) << interop::text_of(*match);
      std::int64_t largest = 0;
      for (const slot& p : s.parameters()) largest = std::max(largest, p.dims.count() * 4);
      most_held_bytes = held_bytes.load();
      const std::int64_t before = held_bytes;
      const auto loaded = interop::load_weights(s, *folder, *match);
      const std::int64_t held = most_held_bytes - before;
      ASSERT_TRUE(loaded.ok()) << loaded.error().line();
      expect_pieces(s, rank, whole);
      const double file = double(folder->file_of(0).source.size()), read = double(bytes_read(*folder));
      EXPECT_LE(read, 1.05 / tensor * file) << "rank " << rank << " of " << tensor;
      EXPECT_GE(read, 0.99 / tensor * file) << "rank " << rank << " of " << tensor;
      EXPECT_LE(double(s.plan().totals.region[std::size_t(value_kind::param)]), 1.05 / tensor * file);
      if (COUNTS_ALLOCATIONS) {
        EXPECT_LE(held, largest + std::int64_t(io::detail::piece_bytes) + 4096) << "rank " << rank << " of " << tensor;
      }
    });
}

// Queries, keys and values are three tensors here, gate and up two; 65 rows of the table do not divide.
TEST(shard_loading, puts_pieces_of_several_tensors_together) {
  constexpr model::llama grouped{2, 8, 4, 32, 8, 48, 65, 32, 1e-5, 10000};
  constexpr model::llama_loss_of llama{grouped, 1, 16};
  const scratch_folder f;
  tensors whole;
  on_each_rank(llama, 1, [&](session& s, int) {
    whole = parameters_of(s);
    ASSERT_TRUE(interop::save_llama(f.at("llama"), s, grouped).ok());
  });
  const auto folder = io::open_model(f.at("llama"));
  ASSERT_TRUE(folder.ok()) << folder.error().line();
  for (const int tensor : {2, 4})
    on_each_rank(llama, tensor, [&](session& s, int rank) {
      const auto match = interop::match_llama(*folder, {grouped}, s.parameters());
      ASSERT_TRUE(match.ok()) << match.error().line();
      ASSERT_TRUE(interop::accept(*folder, *match, false).ok()) << interop::text_of(*match);
      auto loaded = interop::load_weights(s, *folder, *match);
      ASSERT_TRUE(loaded.ok()) << loaded.error().line();
      expect_pieces(s, rank, whole);
      // What changes values sees whole parts.
      std::int64_t seen = 0;
      loaded = interop::load_weights(s, *folder, *match, [&](std::size_t, const interop::weight_source& part, std::span<float> x) {
        EXPECT_EQ(x.size(), std::size_t(part.rows * part.cols));
        seen += std::int64_t(x.size());
        for (float& v : x) v *= 2;
        return result<void>();
      });
      ASSERT_TRUE(loaded.ok()) << loaded.error().line();
      expect_pieces(s, rank, whole, 2);
      std::int64_t all = 0;
      for (const auto& [path, x] : whole) all += std::int64_t(x.size());
      EXPECT_EQ(seen, all);
      const auto saved = interop::save_llama(f.at("pieces"), s, grouped);
      ASSERT_FALSE(saved.ok());
      EXPECT_NE(saved.error().line().find("is divided between"), std::string::npos) << saved.error().line();
    });
}

TEST(mesh_saving, holds_a_part_of_one_tensor_on_each_rank) {
  constexpr std::size_t piece = 4096;
  for (const auto& mesh : {device_mesh{1, 2}, device_mesh{2, 1}}) {
    training_options o;
    o.mesh = mesh;
    o.zero = 1;
    on_mesh<f32_target>(mesh, planned<f32_target>(gpt, o), [&](const rank<f32_target>& k) {
      std::vector<train::detail::whole_tensor> all;
      std::int64_t largest = 0, bytes = 0, given = 0;
      for (const auto kind : {tensor_kind::parameter, tensor_kind::moment1, tensor_kind::moment2})
        for (std::size_t i = 0; i < k.session.parameters().size(); ++i) {
          const slot& p = k.session.parameters()[i];
          all.push_back({kind, i, p.path.view()});
          largest = std::max(largest, p.dims.count() * 4);
          bytes += p.pieces.whole(p.dims).count() * 4;
        }
      const auto meet = [&] { return k.tensor.barrier().ok() && k.data.barrier().ok(); };
      ASSERT_TRUE(meet());
      const std::int64_t before = held_bytes;
      if (k.at == mesh_position{}) most_held_bytes = before;
      ASSERT_TRUE(meet());
      const auto saved = train::detail::save_together(k.session, all, 1, piece, [&](const auto& give) {
        return give([&](std::span<const std::byte> some) {
          EXPECT_LE(some.size(), piece * 4);
          given += std::int64_t(some.size());
          return result<void>();
        });
      });
      const std::int64_t held = most_held_bytes - before;
      ASSERT_TRUE(saved.ok()) << saved.error().line();
      EXPECT_EQ(given, bytes);
      // A part that ZeRO-1 divides is read by way of a copy of what the rank keeps of it.
      if (COUNTS_ALLOCATIONS) {
        EXPECT_LE(held, mesh.ranks() * (largest * (mesh.data > 1 ? 3 : 2) / 2 + std::int64_t(piece) * 4 + 65536)) << mesh.data;
        EXPECT_LT(held, bytes / 2);
      }
    });
  }
}

}  // namespace shard_loading_test
