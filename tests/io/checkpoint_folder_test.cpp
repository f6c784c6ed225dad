#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>

#include <isotope/io/checkpoint_writer.hpp>
#include <string>
#include <vector>

#include "io/scratch_folder.hpp"

namespace isotope {
namespace checkpoint_folder_test {

const std::vector<float> weights = {1, 2, 3};

io::checkpoint_view at_step(std::int64_t step) {
  io::checkpoint_view view;
  view.state.step = step;
  view.tensors.push_back(io::f32_tensor("w", {3}, weights));
  return view;
}

std::vector<std::int64_t> steps(const io::checkpoint_folder& folder) {
  std::vector<std::int64_t> out;
  for (const auto& e : folder.list()) out.push_back(e.step);
  return out;
}

TEST(checkpoint_folder, the_folder_is_made_and_files_are_named_by_step) {
  const scratch_folder scratch;
  const auto folder = io::checkpoint_writer::open(scratch.at("a/b"));
  ASSERT_TRUE(folder.ok()) << folder.error().line();
  ASSERT_TRUE(folder->save(at_step(500)).ok());
  EXPECT_EQ(folder->path_of(500), scratch.at("a/b/step-00000500.safetensors"));
  EXPECT_TRUE(io::load_checkpoint(scratch.at("a/b/step-00000500.safetensors")).ok());
  EXPECT_EQ(folder->path_of(1'234'567'890), scratch.at("a/b/step-1234567890.safetensors"));
}

TEST(checkpoint_folder, the_newest_few_and_the_best_are_kept) {
  const scratch_folder scratch;
  const auto folder = io::checkpoint_writer::open(scratch.at("c"), 2);
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(folder->save_best(at_step(100)).ok());
  for (const std::int64_t step : {100, 200, 300, 99'999'999, 100'000'000}) ASSERT_TRUE(folder->save(at_step(step)).ok());
  EXPECT_EQ(steps(*folder), (std::vector<std::int64_t>{99'999'999, 100'000'000}));
  const auto best = io::load_checkpoint(folder->best_path());
  ASSERT_TRUE(best.ok());
  EXPECT_EQ(best->state.step, 100);
}

TEST(checkpoint_folder, a_save_never_removes_itself_for_later_steps_of_an_abandoned_run) {
  const scratch_folder scratch;
  const auto folder = io::checkpoint_writer::open(scratch.at("c"), 1);
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(folder->save(at_step(900)).ok());
  ASSERT_TRUE(folder->save(at_step(100)).ok());
  EXPECT_EQ(steps(*folder), (std::vector<std::int64_t>{100, 900}));
}

TEST(checkpoint_folder, latest_skips_a_damaged_newer_file_and_says_so) {
  const scratch_folder scratch;
  const auto folder = io::checkpoint_writer::open(scratch.at("c"));
  ASSERT_TRUE(folder.ok());
  for (const std::int64_t step : {1, 2, 3}) ASSERT_TRUE(folder->save(at_step(step)).ok());
  const std::string newest = scratch.read("c/step-00000003.safetensors");
  scratch.put("c/step-00000003.safetensors", newest.substr(0, newest.size() / 2));
  const auto found = folder->latest();
  ASSERT_TRUE(found.ok()) << found.error().line();
  EXPECT_EQ(found->contents.state.step, 2);
  EXPECT_EQ(found->path, folder->path_of(2));
  ASSERT_EQ(found->skipped.size(), 1u);
  EXPECT_EQ(found->skipped[0].code, errc::truncated);
  EXPECT_NE(found->skipped[0].line().find("step-00000003"), std::string::npos);
}

TEST(checkpoint_folder, without_a_valid_file_latest_says_how_many_were_damaged) {
  const scratch_folder scratch;
  const auto folder = io::checkpoint_writer::open(scratch.at("c"));
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(folder->latest().error().code, errc::not_found);
  scratch.put("c/step-00000003.safetensors", "rubbish");
  scratch.put("c/step-00000004.safetensors", "");
  const auto none = folder->latest();
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, errc::not_found);
  EXPECT_NE(none.error().what.find("none of the 2"), std::string::npos) << none.error().line();
}

TEST(checkpoint_folder, other_files_are_left_alone_and_not_listed) {
  const scratch_folder scratch;
  const auto folder = io::checkpoint_writer::open(scratch.at("c"), 1);
  ASSERT_TRUE(folder.ok());
  const std::vector<std::string> others = {"notes.txt", "step-1.safetensors", "step-0000000x.safetensors", "step-00000001.safetensors.bak",
                                           "notes.writing-1-0"};
  for (const auto& name : others) scratch.put("c/" + name, "mine");
  for (const std::int64_t step : {1, 2}) ASSERT_TRUE(folder->save(at_step(step)).ok());
  EXPECT_EQ(steps(*folder), (std::vector<std::int64_t>{2}));
  for (const auto& name : others) EXPECT_EQ(scratch.read("c/" + name), "mine") << name;
}

TEST(checkpoint_folder, opening_removes_what_a_killed_writer_left) {
  const scratch_folder scratch;
  ASSERT_TRUE(io::checkpoint_writer::open(scratch.at("c")).ok());
  scratch.put("c/step-00000007.safetensors.writing-123-0", "half");
  scratch.put("c/best.safetensors.writing-123-1", "half");
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  ::waitpid(ended, nullptr, 0);
  scratch.put("c/loss.svg.writing-" + std::to_string(ended) + "-0", "half");
  const std::string living = "loss.svg.writing-" + std::to_string(::getpid()) + "-0",
                    other = "loss.svg.writing-" + std::to_string(ended) + "-draft";
  scratch.put("c/" + living, "half");
  scratch.put("c/" + other, "whole");
  ASSERT_TRUE(io::checkpoint_writer::open(scratch.at("c")).ok());
  std::vector<std::string> left = {living, other, "writer.lock"};
  std::sort(left.begin(), left.end());
  EXPECT_EQ(scratch.names("c"), left);
}

/// Counts the writes of a checkpoint, and calls a function at the first.
struct interrupted_calls : io::file_calls {
  std::function<void()> act;
  mutable int calls = 0;
  ssize_t write(int file, const void* bytes, std::size_t size) const override {
    if (calls++ == 0) act();
    return io::file_calls::write(file, bytes, size);
  }
};

TEST(checkpoint_folder, readers_beside_a_writer_neither_write_nor_remove) {
  const scratch_folder scratch;
  const auto folder = io::checkpoint_writer::open(scratch.at("c"));
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(folder->save(at_step(1)).ok());
  interrupted_calls calls;
  calls.act = [&] {
    const auto before = scratch.names("c");
    const auto latest = io::checkpoint_folder(scratch.at("c")).latest();
    ASSERT_TRUE(latest.ok());
    EXPECT_EQ(latest->contents.state.step, 1);
    EXPECT_EQ(scratch.names("c"), before);
  };
  const auto saved = folder->save(at_step(2), calls);
  ASSERT_TRUE(saved.ok()) << saved.error().line();
  EXPECT_EQ(steps(*folder), (std::vector<std::int64_t>{1, 2}));
}

TEST(checkpoint_folder, a_second_writer_is_refused_by_the_number_of_the_first_and_removes_nothing) {
  const scratch_folder scratch;
  const auto folder = io::checkpoint_writer::open(scratch.at("c"));
  ASSERT_TRUE(folder.ok());
  interrupted_calls calls;
  calls.act = [&] {
    const auto second = io::checkpoint_writer::open(scratch.at("c"));
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, errc::in_use);
    EXPECT_NE(second.error().what.find("process " + std::to_string(::getpid()) + " "), std::string::npos) << second.error().line();
  };
  EXPECT_TRUE(folder->save(at_step(1), calls).ok());
}

TEST(checkpoint_folder, the_lock_ends_with_its_writer_even_one_that_is_killed) {
  const scratch_folder scratch;
  { ASSERT_TRUE(io::checkpoint_writer::open(scratch.at("c")).ok()); }
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = io::checkpoint_writer::open(scratch.at("c"));
    const char byte = held.ok() ? 'y' : 'n';
    if (::write(ready[1], &byte, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  const auto beside = io::checkpoint_writer::open(scratch.at("c"));
  EXPECT_FALSE(beside.ok());
  EXPECT_NE((beside.ok() ? "" : beside.error().line()).find(std::to_string(child)), std::string::npos);
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(io::checkpoint_writer::open(scratch.at("c")).ok());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(checkpoint_folder, reading_a_folder_that_is_not_there_makes_none) {
  const scratch_folder scratch;
  EXPECT_EQ(io::checkpoint_folder(scratch.at("none")).latest().error().code, errc::not_found);
  EXPECT_FALSE(std::filesystem::exists(scratch.at("none")));
}

TEST(checkpoint_folder, a_file_in_the_folders_place_and_keeping_none_are_refused) {
  const scratch_folder scratch;
  const auto taken = io::checkpoint_writer::open(scratch.put("f", "x"));
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, errc::write_failed);
  EXPECT_EQ(io::checkpoint_writer::open(scratch.at("c"), 0).error().code, errc::invalid_argument);
}

}  // namespace checkpoint_folder_test
}  // namespace isotope
