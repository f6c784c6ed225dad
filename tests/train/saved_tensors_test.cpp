#include <io/scratch_folder.hpp>
#include <isotope/train/checkpointing.hpp>
#include <train/generated_session.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace train = isotope::train;
namespace io = isotope::io;
using isotope::errc;

namespace saved_tensors_test {

/// Tensors smaller and larger than the most that is read at once.
const std::vector<fake::slot> slots = {{"a.weight", {3, 1}}, {"a.bias", {2}},         {"wte", {1100, 1000}}, {"h.0.ln", {7}},
                                       {"h.0.w", {33, 65}},  {"h.1.w", {1024, 1024}}, {"end", {1}}};

train::run_identity identity() { return {R"({"width":3})", R"({"steps":20})", 7, 2, io::vocabulary::of_bytes(), 17}; }

train::run_state some_state() { return {10, 3, 2, 8, 0.1 + 0.2, {1.0 / 3, 4, 5}}; }

struct folder_of_one {
  isotope::scratch_folder scratch;
  io::checkpoint_writer writer = *io::checkpoint_writer::open(scratch.at("c"));
  train::folder_store store{writer, identity()};
  std::string file = "c/step-00000010.safetensors";

  /// A saved checkpoint, open.
  io::checkpoint saved() {
    fake::grouped_session s(slots);
    EXPECT_TRUE(store.save(s, some_state(), false).ok());
    auto c = io::load_checkpoint(scratch.at(file));
    EXPECT_TRUE(c.ok());
    return *std::move(c);
  }
};

/// The bytes of a checkpoint, composed in memory independently of the writer.
std::string image_of(const train::run_state& state) {
  std::vector<std::vector<float>> values;
  std::vector<io::stored_tensor> tensors;
  values.reserve(3 * slots.size());
  fake::generated_session s(slots);
  const std::pair<isotope::tensor_kind, std::string> kinds[] = {
      {isotope::tensor_kind::parameter, ""}, {isotope::tensor_kind::moment1, "adam.m."}, {isotope::tensor_kind::moment2, "adam.v."}};
  for (const auto& [kind, prefix] : kinds)
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (!fake::generated_session::has(kind, i)) continue;
      const auto& slot = slots[i];
      values.emplace_back(std::size_t(slot.dims.count()));
      EXPECT_TRUE(s.read(kind, i, values.back()).ok());
      std::vector<std::int64_t> dims;
      for (int d = 0; d < slot.dims.rank; ++d) dims.push_back(slot.dims[d]);
      tensors.push_back(io::f32_tensor(prefix + slot.path, dims, values.back()));
    }
  std::string image = *io::safetensors_header(tensors, io::detail::notes_of(train::detail::state_to_save(identity(), state)));
  for (const auto& t : tensors) image.append(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size());
  return image.replace(io::detail::hash_at, 16, io::detail::hash_of_image(std::as_bytes(std::span(image))));
}

template <class S> struct saving : testing::Test {};
using sessions = testing::Types<fake::generated_session, fake::grouped_session>;
TYPED_TEST_SUITE(saving, sessions);

TYPED_TEST(saving, has_the_bytes_of_a_writer_that_holds_everything) {
  folder_of_one f;
  TypeParam s(slots);
  for (const bool best : {false, true}) {
    const auto path = f.store.save(s, some_state(), best);
    ASSERT_TRUE(path) << path.error().line();
    const std::string bytes = f.scratch.read(best ? "c/best.safetensors" : f.file);
    EXPECT_TRUE(bytes == image_of(some_state()));
    io::hasher h;
    h.add(std::as_bytes(std::span(bytes)));
    EXPECT_EQ(h.value(), 0xaac97fa42fc6ea27u) << "the hash of the file from a writer that held the whole checkpoint";
  }
}

TEST(saved_tensors, small_tensors_are_read_together_and_never_more_than_the_largest_or_four_mebibytes) {
  folder_of_one f;
  fake::grouped_session s(slots);
  ASSERT_TRUE(f.store.save(s, some_state(), false));
  // Each kind has the groups a.weight and a.bias; wte; h.0.ln and h.0.w; and h.1.w, which fills a group. `end` is read with the first tensors of the next
  // kind. There are no second moments of wte and h.1.w, so the others are one group.
  EXPECT_EQ(s.reads, 4u + 4u + 1u);
  EXPECT_EQ(s.most, 1100u * 1000u);
}

TEST(saved_tensors, a_number_that_is_not_finite_leaves_the_folder_as_it_was) {
  folder_of_one f;
  fake::grouped_session s(slots);
  ASSERT_TRUE(f.store.save(s, some_state(), false));
  const std::string before = f.scratch.read(f.file);
  s.bad_slot = 4;
  const auto r = f.store.save(s, some_state(), false);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, errc::non_finite);
  EXPECT_NE(r.error().what.find("element 2144 of 'h.0.w'"), std::string::npos) << r.error().what;
  EXPECT_TRUE(f.scratch.read(f.file) == before);
  EXPECT_EQ(f.scratch.names("c"), (std::vector<std::string>{"step-00000010.safetensors", "writer.lock"}));
}

TEST(saved_tensors, come_back_to_a_session_of_either_kind) {
  folder_of_one f;
  const auto saved = f.saved();
  fake::generated_session one_by_one(slots);
  fake::grouped_session together(slots);
  ASSERT_TRUE(train::restore(one_by_one, saved, identity(), "x"));
  const auto restored = train::restore(together, saved, identity(), "x");
  ASSERT_TRUE(restored) << restored.error().line();
  EXPECT_EQ(*restored, some_state());
  EXPECT_EQ(one_by_one.writes, 19u);
  EXPECT_EQ(together.writes, 19u);
  EXPECT_EQ(one_by_one.wrong + together.wrong, 0u);
  EXPECT_EQ(together.reads, 0u) << "no tensor is read to find out what the session keeps";
}

TEST(saved_tensors, what_does_not_fit_is_refused_before_the_first_write) {
  folder_of_one f;
  const auto saved = f.saved();
  auto longer = slots, turned = slots, fewer = slots;
  longer.push_back({"h.2.w", {4}});
  turned[4].dims = {65, 33};
  fewer.back().dims = {2};
  for (const auto& [other, name, text] :
       {std::tuple(longer, "h.2.w", "does not have it"), std::tuple(turned, "h.0.w", "[33,65], the model [65,33]"),
        std::tuple(fewer, "end", "1 elements, the model 2")}) {
    fake::grouped_session s(other);
    const auto r = train::restore(s, saved, identity(), "x");
    ASSERT_FALSE(r) << name;
    EXPECT_EQ(r.error().code, errc::model_mismatch);
    EXPECT_NE(r.error().what.find(text), std::string::npos) << r.error().line();
    EXPECT_NE(r.error().where.find(name), std::string::npos) << r.error().line();
    const auto parameters = train::restore_parameters(s, saved);
    ASSERT_FALSE(parameters) << name;
    EXPECT_EQ(s.writes, 0u) << name;
  }
}

TEST(saved_tensors, a_session_that_fails_in_the_middle_says_how_much_it_holds) {
  folder_of_one f;
  const auto saved = f.saved();
  for (const std::size_t at : {0u, 3u}) {
    fake::grouped_session s(slots);
    s.failing_write = at;
    const auto r = train::restore(s, saved, identity(), "x");
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, errc::device_lost);
    EXPECT_NE(r.error().what.find("holds " + std::to_string(at) + " of the checkpoint's 19 tensors"), std::string::npos)
        << r.error().line();
    EXPECT_NE(r.error().where.find(slots[at].path), std::string::npos) << r.error().line();
  }
}

TEST(saved_tensors, a_file_that_is_removed_or_replaced_is_read_as_it_was_opened) {
  folder_of_one f;
  const auto saved = f.saved();
  fake::grouped_session s(slots);
  auto later = some_state();
  later.val_loss = 7;
  ASSERT_TRUE(f.store.save(s, later, false));
  std::filesystem::remove(f.scratch.at(f.file));
  const auto restored = train::restore(s, saved, identity(), "x");
  ASSERT_TRUE(restored) << restored.error().line();
  EXPECT_EQ(*restored, some_state());
  EXPECT_EQ(s.wrong, 0u);
}

TEST(saved_tensors, a_file_that_somebody_writes_into_or_shortens_is_found_before_the_tensor_is_taken) {
  for (const bool shortened : {false, true}) {
    folder_of_one f;
    const auto saved = f.saved();
    const auto* end = saved.contents.find("adam.m.h.0.w");
    ASSERT_NE(end, nullptr);
    const auto at = saved.contents.data_at + end->begin + 5;
    if (shortened) {
      std::filesystem::resize_file(f.scratch.at(f.file), at);
    } else {
      std::fstream file(f.scratch.at(f.file), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(std::streamoff(at));
      file.put('!');
    }
    fake::grouped_session s(slots);
    const auto r = train::restore(s, saved, identity(), "x");
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, shortened ? errc::unreadable : errc::corrupt) << r.error().line();
    EXPECT_NE(r.error().where.find("adam.m.h.0.w"), std::string::npos) << r.error().line();
    EXPECT_NE(r.error().what.find("holds 11 of the checkpoint's 19 tensors"), std::string::npos) << r.error().line();
    EXPECT_EQ(s.writes, 11u);
    EXPECT_EQ(s.wrong, 0u);
  }
}

TEST(saved_tensors, a_pipe_in_the_place_of_the_best_is_given_the_whole_file) {
  folder_of_one f;
  ASSERT_EQ(::mkfifo(f.scratch.at("c/best.safetensors").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = f.scratch.read("c/best.safetensors"); });
  fake::grouped_session s(slots);
  const auto saved = f.store.save(s, some_state(), true);
  reader.join();
  ASSERT_TRUE(saved) << saved.error().line();
  EXPECT_TRUE(got == image_of(some_state()));
}

}  // namespace saved_tensors_test
