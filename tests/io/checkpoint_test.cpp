#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <isotope/io/checkpoint.hpp>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "io/scratch_folder.hpp"

namespace isotope {
namespace checkpoint_test {

const std::vector<float> weights = {1.0f, -0.0f, std::numeric_limits<float>::infinity(), 1e-45f, 3.14f, -7.0f};
const std::vector<float> moments = {0.5f, 0.25f, 0, 0, 1, 2};

io::checkpoint_view example() {
  io::checkpoint_view view;
  view.state.model = R"({"layers":4,"width":128})";
  view.state.run = R"({"model":{"layers":4},"steps":2000})";
  view.state.step = 500;
  view.state.optimizer_step = 499;
  view.state.seed = 0xfedcba9876543210u;
  view.state.cursor = 1000;
  view.state.best_validation_loss = 0.1 + 0.2;
  view.state.vocab = io::vocabulary::of_characters({'\n', ' ', 'a', 0xe9, 0x1f600});
  view.state.extra = {{"patience", "2"}};
  view.tensors.push_back(io::f32_tensor("h.0.weight", {2, 3}, weights));
  view.tensors.push_back(io::f32_tensor(std::string(io::adam_m) + "h.0.weight", {2, 3}, moments));
  return view;
}

io::file_bytes bytes_of(const std::string& text) {
  auto bytes = std::make_unique<std::byte[]>(text.size());
  std::transform(text.begin(), text.end(), bytes.get(), [](char c) { return static_cast<std::byte>(c); });
  return {std::move(bytes), text.size()};
}

std::string saved(const io::checkpoint_view& view) {
  const scratch_folder folder;
  EXPECT_TRUE(io::save_checkpoint(folder.at("c"), view).ok());
  return folder.read("c");
}

TEST(checkpoint, state_and_tensors_come_back_bit_for_bit) {
  const auto back = io::parse_checkpoint(bytes_of(saved(example())), "t");
  ASSERT_TRUE(back.ok()) << back.error().line();
  EXPECT_EQ(back->state, example().state);
  std::vector<float> read(6);
  ASSERT_TRUE(back->read("h.0.weight", read).ok());
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(std::bit_cast<std::uint32_t>(read[i]), std::bit_cast<std::uint32_t>(weights[i]));
  ASSERT_TRUE(back->read("adam.m.h.0.weight", read).ok());
  EXPECT_EQ(read, moments);
  EXPECT_EQ(back->contents.find("h.0.weight")->dims, (std::vector<std::int64_t>{2, 3}));
}

TEST(checkpoint, losses_that_are_not_finite_survive) {
  for (const double loss : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    auto view = example();
    view.state.best_validation_loss = loss;
    const auto back = io::parse_checkpoint(bytes_of(saved(view)), "t");
    ASSERT_TRUE(back.ok()) << back.error().line();
    EXPECT_TRUE(back->state.best_validation_loss == loss || (std::isnan(loss) && std::isnan(back->state.best_validation_loss)));
  }
}

TEST(checkpoint, equal_states_give_equal_bytes) { EXPECT_EQ(saved(example()), saved(example())); }

TEST(checkpoint, it_is_a_plain_safetensors_file) {
  const auto file = io::parse_safetensors(bytes_of(saved(example())), "t");
  ASSERT_TRUE(file.ok()) << file.error().line();
  EXPECT_NE(file->find("h.0.weight"), nullptr);
}

TEST(checkpoint, cut_at_any_byte_it_is_truncated) {
  const std::string whole = saved(example());
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const auto got = io::parse_checkpoint(bytes_of(whole.substr(0, cut)), "t");
    ASSERT_FALSE(got.ok()) << cut;
    EXPECT_EQ(got.error().code, errc::truncated) << cut << ": " << got.error().line();
  }
}

TEST(checkpoint, any_flipped_bit_and_any_added_byte_is_found) {
  const std::string whole = saved(example());
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_FALSE(io::parse_checkpoint(bytes_of(damaged), "t").ok()) << "bit " << bit;
  }
  EXPECT_FALSE(io::parse_checkpoint(bytes_of(whole + '\0'), "t").ok());
}

TEST(checkpoint, damage_in_the_tensors_is_called_corrupt) {
  std::string damaged = saved(example());
  damaged.back() ^= 1;
  EXPECT_EQ(io::parse_checkpoint(bytes_of(damaged), "t").error().code, errc::corrupt);
}

/// The example with a part of its header replaced by text of the same length, and with the matching hash.
std::string forged(const std::string& from, const std::string& to) {
  std::string file = saved(example());
  const auto at = file.find(from);
  EXPECT_TRUE(at != file.npos && from.size() == to.size());
  file.replace(at, from.size(), to);
  const auto image = bytes_of(file);
  return file.replace(io::detail::hash_at, 16, io::detail::hash_of_image(image.view()));
}

TEST(checkpoint, another_version_is_refused_by_its_number) {
  const auto got = io::parse_checkpoint(bytes_of(forged(R"("version":"1")", R"("version":"2")")), "t");
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, errc::version_mismatch);
  EXPECT_NE(got.error().what.find("version 2"), std::string::npos);
}

TEST(checkpoint, a_state_that_is_incomplete_or_not_numeric_is_refused) {
  EXPECT_EQ(io::parse_checkpoint(bytes_of(forged(R"("step":"500")", R"("stop":"500")")), "t").error().code, errc::bad_format);
  EXPECT_EQ(io::parse_checkpoint(bytes_of(forged(R"("step":"500")", R"("step":"5x0")")), "t").error().code, errc::bad_format);
  EXPECT_EQ(io::parse_checkpoint(bytes_of(forged(R"(characters\",)", R"(charakters\",)")), "t").error().code, errc::bad_format);
  EXPECT_TRUE(io::parse_checkpoint(bytes_of(forged(R"("step":"500")", R"("step":"501")")), "t").ok())
      << "the forger must be able to succeed";
}

TEST(checkpoint, another_safetensors_file_is_not_a_checkpoint) {
  const scratch_folder folder;
  ASSERT_TRUE(io::write_safetensors(folder.at("f"), example().tensors, {{"format", "pt"}, {"padding", std::string(100, 'x')}}).ok());
  const auto got = io::load_checkpoint(folder.at("f"));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, errc::bad_format);
}

TEST(checkpoint, a_missing_tensor_or_another_size_is_another_model) {
  const auto back = io::parse_checkpoint(bytes_of(saved(example())), "t");
  ASSERT_TRUE(back.ok());
  std::vector<float> out(6);
  EXPECT_EQ(back->read("h.1.weight", out).error().code, errc::model_mismatch);
  out.resize(5);
  EXPECT_EQ(back->read("h.0.weight", out).error().code, errc::model_mismatch);
}

/// Emulates a disk that is full after a number of bytes.
struct full_disk : io::file_calls {
  mutable std::size_t room;
  explicit full_disk(std::size_t bytes) : room(bytes) {}
  ssize_t write(int file, const void* bytes, std::size_t size) const override {
    if (room == 0) return errno = ENOSPC, -1;
    const ssize_t put = file_calls::write(file, bytes, std::min(size, room));
    room -= static_cast<std::size_t>(put);
    return put;
  }
};

TEST(checkpoint, a_full_disk_keeps_the_previous_one_valid) {
  const scratch_folder folder;
  ASSERT_TRUE(io::save_checkpoint(folder.at("c"), example()).ok());
  const std::string before = folder.read("c");
  auto next = example();
  next.state.step = 501;
  for (std::size_t room = 0; room < before.size(); room += 97) {
    const auto save = io::save_checkpoint(folder.at("c"), next, full_disk(room));
    ASSERT_FALSE(save.ok());
    EXPECT_EQ(save.error().code, errc::write_failed);
    ASSERT_EQ(folder.read("c"), before);
    ASSERT_EQ(folder.files(), 1u);
  }
}

TEST(checkpoint, a_pipe_of_that_name_is_refused_without_waiting) {
  const scratch_folder scratch;
  ASSERT_EQ(::mkfifo(scratch.at("p").c_str(), 0600), 0);
  const auto r = io::load_checkpoint(scratch.at("p"));
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, errc::unreadable);
}

}  // namespace checkpoint_test
}  // namespace isotope
