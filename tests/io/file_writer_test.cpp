#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <isotope/io/checkpoint.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/scratch_folder.hpp"
#include "io/scripted_calls.hpp"

namespace isotope {
namespace file_writer_test {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(file_writer, pieces_and_what_is_put_in_the_place_of_some_become_the_file_at_the_commit) {
  const scratch_folder folder;
  folder.put("f", "the old text");
  const io::file_calls calls;
  auto file = io::file_writer::open(folder.at("f"), 9, calls);
  ASSERT_TRUE(file.ok()) << file.error().line();
  ASSERT_TRUE(file->rewrites());
  for (const char* piece : {"abc", "", "def", "ghi"}) ASSERT_TRUE(file->write(bytes_of(piece)).ok());
  ASSERT_TRUE(file->rewrite(2, bytes_of("XYZ")).ok());
  EXPECT_EQ(folder.read("f"), "the old text");
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(folder.read("f"), "abXYZfghi");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(file_writer, without_a_commit_the_old_file_stays_and_the_temporary_goes) {
  const scratch_folder folder;
  folder.put("f", "the old text");
  {
    const io::file_calls calls;
    auto file = io::file_writer::open(folder.at("f"), 9, calls);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write(bytes_of("abc")).ok());
    EXPECT_EQ(folder.files(), 2u);
    const io::file_writer moved = *std::move(file);
    EXPECT_TRUE(moved.rewrites());
  }
  EXPECT_EQ(folder.read("f"), "the old text");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(file_writer, a_device_takes_each_byte_once) {
  const io::file_calls calls;
  auto file = io::file_writer::open("/dev/null", 3, calls);
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->rewrites());
  ASSERT_TRUE(file->write(bytes_of("abc")).ok());
  EXPECT_TRUE(file->commit().ok());
}

const std::vector<io::tensor_entry> entries = {{"w", io::f32_elements, {2, 2}, 0, 16}, {"b", io::f32_elements, {3}, 0, 12}};

/// Saves 28 bytes of two tensors in three pieces, where every byte is `fill`.
result<void> save(const std::string& path, char fill, const io::file_calls& calls) {
  const std::string piece(14, fill);
  const auto give = [&](const auto& put) -> result<void> {
    for (const std::size_t size : {10u, 14u, 4u})
      if (auto r = put(bytes_of(piece).first(size)); !r) return r;
    return {};
  };
  return io::save_checkpoint(path, {}, entries, give, calls);
}

/// Whether a checkpoint can be read and every byte of its tensors is `fill`.
bool holds(const std::string& path, char fill) {
  const auto c = io::load_checkpoint(path);
  std::vector<float> w(4), b(3);
  if (!c || !c->read("w", w) || !c->read("b", b)) return false;
  const auto all = [&](const std::vector<float>& values) {
    for (const std::byte x : std::as_bytes(std::span(values)))
      if (x != std::byte(fill)) return false;
    return true;
  };
  return all(w) && all(b);
}

int calls_of_a_save() {
  const scratch_folder folder;
  int calls = 0;
  EXPECT_TRUE(save(folder.at("c"), 'a', scripted_calls(&calls, -1)).ok());
  EXPECT_TRUE(holds(folder.at("c"), 'a'));
  return calls;
}

TEST(file_writer, a_streamed_checkpoint_that_fails_at_any_call_leaves_the_one_before_and_nothing_else) {
  const int calls = calls_of_a_save();
  ASSERT_GT(calls, 3 + 3 + 3) << "the header, the tensors, the hash over its zeros in pieces of seven, fsync, rename, fsync of the folder";
  for (int stop = 0; stop < calls - 1; ++stop) {
    const scratch_folder folder;
    int none = 0, count = 0;
    ASSERT_TRUE(save(folder.at("c"), 'a', scripted_calls(&none, -1)).ok());
    const auto saved = save(folder.at("c"), 'b', scripted_calls(&count, stop));
    ASSERT_FALSE(saved.ok()) << "call " << stop;
    EXPECT_EQ(saved.error().code, errc::write_failed);
    EXPECT_TRUE(holds(folder.at("c"), 'a')) << "call " << stop;
    EXPECT_EQ(folder.files(), 1u) << "call " << stop;
  }
}

TEST(file_writer, a_streamed_checkpoint_killed_at_any_call_leaves_the_one_before_or_the_new_one_whole) {
  const int calls = calls_of_a_save();
  int before = 0, after = 0;
  for (int stop = 0; stop < calls; ++stop) {
    const scratch_folder folder;
    int none = 0;
    ASSERT_TRUE(save(folder.at("c"), 'a', scripted_calls(&none, -1)).ok());
    const pid_t child = ::fork();
    if (child == 0) {
      int count = 0;
      static_cast<void>(save(folder.at("c"), 'b', scripted_calls(&count, stop, scripted_calls::how::kill)));
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "call " << stop;
    before += holds(folder.at("c"), 'a');
    after += holds(folder.at("c"), 'b');
  }
  EXPECT_EQ(before, calls - 1);
  EXPECT_EQ(after, 1) << "the last call is the sync of the folder";
}

TEST(file_writer, a_failure_of_what_gives_the_tensors_or_another_number_of_bytes_is_no_checkpoint) {
  const scratch_folder folder;
  const auto short_by_one = [&](const auto& put) { return put(bytes_of(std::string(27, 'c'))); };
  const auto lost = [&](const auto& put) -> result<void> {
    if (auto r = put(bytes_of("abcd")); !r) return r;
    return fail(errc::device_lost, "the device is gone", "here", "open it again");
  };
  const auto cut = io::save_checkpoint(folder.at("c"), {}, entries, short_by_one),
             failed = io::save_checkpoint(folder.at("c"), {}, entries, lost);
  ASSERT_FALSE(cut.ok() || failed.ok());
  EXPECT_EQ(cut.error().code, errc::invalid_argument);
  EXPECT_EQ(failed.error().code, errc::device_lost);
  EXPECT_EQ(folder.files(), 0u);
}

}  // namespace file_writer_test
}  // namespace isotope
