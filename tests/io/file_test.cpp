#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <isotope/core/philox.hpp>
#include <isotope/io/file.hpp>
#include <string>
#include <vector>

#include "io/scratch_folder.hpp"
#include "io/scripted_calls.hpp"

namespace isotope {
namespace file_test {

const std::string old_text = "the old text", new_text = "a newer and somewhat longer text";

TEST(file, what_was_written_is_read_back) {
  const scratch_folder folder;
  const std::string text("zero \0 and high \xff", 17);
  ASSERT_TRUE(io::write_file(folder.at("f"), text).ok());
  const auto back = io::read_file(folder.at("f"));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->text(), text);
  EXPECT_EQ(folder.files(), 1u);
}

TEST(file, an_empty_file_reads_as_no_bytes) {
  const scratch_folder folder;
  const auto back = io::read_file(folder.put("f", ""));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->size(), 0u);
}

TEST(file, a_pipe_is_read_to_its_end) {
  const scratch_folder folder;
  ASSERT_EQ(::mkfifo(folder.at("pipe").c_str(), 0600), 0);
  const pid_t writer = ::fork();
  if (writer == 0) {
    std::ofstream(folder.at("pipe")) << std::string(200'000, 'x');
    ::_exit(0);
  }
  const auto back = io::read_file(folder.at("pipe"));
  ::waitpid(writer, nullptr, 0);
  ASSERT_TRUE(back.ok()) << back.error().line();
  EXPECT_EQ(back->text(), std::string(200'000, 'x'));
}

TEST(file, a_missing_file_is_not_found_with_its_path) {
  const scratch_folder folder;
  const auto got = io::read_file(folder.at("absent"));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, errc::not_found);
  EXPECT_EQ(got.error().where, folder.at("absent"));
}

TEST(file, a_folder_and_a_device_are_unreadable) {
  const scratch_folder folder;
  EXPECT_EQ(io::read_file(folder.at(".")).error().code, errc::unreadable);
  EXPECT_EQ(io::read_file("/dev/zero").error().code, errc::unreadable);
}

TEST(file, without_permission_the_file_is_unreadable_and_the_reason_is_named) {
  const scratch_folder folder;
  ::chmod(folder.at(".").c_str(), 0755);
  ::chmod(folder.put("f", "x").c_str(), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    // Root may read every file, so the user `nobody` reads this one.
    const bool nobody = ::geteuid() != 0 || (::setgid(65534) == 0 && ::setuid(65534) == 0);
    const auto got = io::read_file(folder.at("f"));
    ::_exit(nobody && !got.ok() && got.error().code == errc::unreadable && got.error().what == "cannot open: Permission denied" ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(file, writing_into_a_missing_folder_fails_with_the_reason) {
  const scratch_folder folder;
  const auto wrote = io::write_file(folder.at("absent/f"), "x");
  ASSERT_FALSE(wrote.ok());
  EXPECT_EQ(wrote.error().code, errc::write_failed);
}

TEST(file, a_replaced_file_keeps_its_mode) {
  const scratch_folder folder;
  ::chmod(folder.put("f", old_text).c_str(), 0600);
  ASSERT_TRUE(io::write_file(folder.at("f"), new_text).ok());
  struct stat status{};
  ASSERT_EQ(::stat(folder.at("f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777u, 0600u);
}

TEST(file, a_symbolic_link_stays_and_its_target_is_replaced) {
  const scratch_folder scratch;
  scratch.put("target", "old");
  std::filesystem::create_directory(scratch.at("links"));
  ASSERT_EQ(::symlink("../target", scratch.at("links/first").c_str()), 0);
  ASSERT_EQ(::symlink("links/first", scratch.at("second").c_str()), 0);
  ASSERT_EQ(::symlink("made", scratch.at("dangling").c_str()), 0);
  ASSERT_TRUE(io::write_file(scratch.at("second"), "new").ok());
  ASSERT_TRUE(io::write_file(scratch.at("dangling"), "first").ok());
  EXPECT_EQ(scratch.read("target"), "new");
  EXPECT_EQ(scratch.read("made"), "first");
  for (const char* link : {"links/first", "second", "dangling"}) EXPECT_TRUE(std::filesystem::is_symlink(scratch.at(link))) << link;
  EXPECT_EQ(scratch.names("links"), (std::vector<std::string>{"first"}));
}

TEST(file, a_pipe_is_written_to_and_stays) {
  const scratch_folder scratch;
  ASSERT_EQ(::mkfifo(scratch.at("p").c_str(), 0600), 0);
  std::string got(16, '\0');
  const int reader = ::open(scratch.at("p").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(io::write_file(scratch.at("p"), "through").ok());
  got.resize(std::size_t(std::max<ssize_t>(0, ::read(reader, got.data(), got.size()))));
  ::close(reader);
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(scratch.at("p")));
  EXPECT_EQ(scratch.names("").size(), 1u);
}

/// Reports every file as a device.
struct device_calls : io::file_calls {
  int stat(const char* path, struct stat* status) const override {
    const int r = io::file_calls::stat(path, status);
    status->st_mode = (status->st_mode & ~mode_t(S_IFMT)) | S_IFCHR;
    return r;
  }
};
TEST(file, a_device_is_written_to_and_stays) {
  const scratch_folder scratch;
  const std::string path = scratch.put("d", "before");
  struct stat before{}, after{};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  ASSERT_TRUE(io::write_file(path, "written", device_calls{}).ok());
  ASSERT_EQ(::stat(path.c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);
  EXPECT_EQ(scratch.read("d"), "written");
  EXPECT_EQ(scratch.names("").size(), 1u);
}

TEST(file, an_open_file_named_by_the_system_is_written_on) {
  const scratch_folder scratch;
  const int open_file = ::open(scratch.at("f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_GE(open_file, 0);
  ASSERT_EQ(::write(open_file, "one ", 4), 4);
  struct stat before{}, after{};
  ASSERT_EQ(::fstat(open_file, &before), 0);
  const std::string number = std::to_string(open_file);
  std::string wanted = "one ";
  ASSERT_EQ(::symlink(("/dev/fd/" + number).c_str(), scratch.at("link").c_str()), 0);
  for (const std::string& name : {"/dev/fd/" + number, "/proc/self/fd/" + number, scratch.at("link")}) {
    const auto written = io::write_file(name, "more ");
    ASSERT_TRUE(written.ok()) << written.error().line();
    wanted += "more ";
    EXPECT_EQ(io::read_file(scratch.at("f"))->text(), wanted) << name;
  }
  ASSERT_EQ(::stat(scratch.at("f").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  ::close(open_file);
}

TEST(file, what_is_written_through_is_not_said_to_be_unchanged) {
  const auto full = io::write_file("/dev/full", "text");
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().line().find("unchanged"), std::string::npos) << full.error().line();
  EXPECT_NE(full.error().line().find("write failed"), std::string::npos) << full.error().line();
}

TEST(file, a_folder_is_not_replaced) {
  const scratch_folder scratch;
  std::filesystem::create_directory(scratch.at("f"));
  const auto r = io::write_file(scratch.at("f"), "x");
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, errc::write_failed);
  EXPECT_TRUE(std::filesystem::is_directory(scratch.at("f")));
}

TEST(file, a_failure_at_any_call_leaves_the_old_file_and_nothing_else) {
  int calls = 0;
  {
    const scratch_folder folder;
    ASSERT_TRUE(io::write_file(folder.put("f", old_text), new_text, scripted_calls(&calls, -1)).ok());
    EXPECT_EQ(folder.read("f"), new_text);
  }
  // There are ceil(32 / 7) writes, fsync, rename, and fsync of the folder.
  ASSERT_EQ(calls, 5 + 3);
  for (int stop = 0; stop < calls - 1; ++stop) {
    const scratch_folder folder;
    int count = 0;
    const auto wrote = io::write_file(folder.put("f", old_text), new_text, scripted_calls(&count, stop));
    ASSERT_FALSE(wrote.ok()) << "call " << stop;
    EXPECT_EQ(wrote.error().code, errc::write_failed);
    EXPECT_EQ(folder.read("f"), old_text) << "call " << stop;
    EXPECT_EQ(folder.files(), 1u) << "call " << stop;
  }
}

TEST(file, a_full_disk_is_reported_with_the_bytes_asked_for_and_written) {
  const scratch_folder folder;
  int count = 0;
  const auto wrote = io::write_file(folder.put("f", old_text), new_text, scripted_calls(&count, 2));
  ASSERT_FALSE(wrote.ok());
  EXPECT_NE(wrote.error().what.find("32 bytes"), std::string::npos) << wrote.error().line();
  EXPECT_NE(wrote.error().what.find("after 14 bytes"), std::string::npos) << wrote.error().line();
  EXPECT_NE(wrote.error().what.find("No space left"), std::string::npos) << wrote.error().line();
}

TEST(file, a_kill_at_any_call_leaves_the_old_file_or_the_new_one_whole) {
  int seen_old = 0, seen_new = 0;
  for (int stop = 0; stop < 8; ++stop) {
    const scratch_folder folder;
    folder.put("f", old_text);
    const pid_t child = ::fork();
    if (child == 0) {
      int count = 0;
      static_cast<void>(io::write_file(folder.at("f"), new_text, scripted_calls(&count, stop, scripted_calls::how::kill)));
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "call " << stop;
    const std::string text = folder.read("f");
    seen_old += text == old_text;
    seen_new += text == new_text;
    EXPECT_TRUE(text == old_text || text == new_text) << "call " << stop << ": " << text;
    ASSERT_TRUE(io::write_file(folder.at("f"), "after").ok()) << "what the killed writer left must not stop the next one";
  }
  EXPECT_EQ(seen_old, 7);
  EXPECT_EQ(seen_new, 1);
}

TEST(file, a_kill_from_outside_leaves_one_of_the_texts_whole) {
  const scratch_folder folder;
  const std::string a(300'000, 'a'), b(200'000, 'b');
  folder.put("f", a);
  for (std::uint32_t round = 0; round < 40; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) {
        static_cast<void>(io::write_file(folder.at("f"), b));
        static_cast<void>(io::write_file(folder.at("f"), a));
      }
    }
    // The pause is a number of yields instead of a time: from none to a dozen or two replacements of the file.
    for (std::uint32_t turns = philox(1, 0, round, 0)[0] % 1500; turns > 0; --turns) ::sched_yield();
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::string text = folder.read("f");
    ASSERT_TRUE(text == a || text == b) << "round " << round << ": " << text.size() << " bytes";
  }
}

}  // namespace file_test
}  // namespace isotope
