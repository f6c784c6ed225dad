// Threads of a block are fibers. A fiber runs one thread after the other until a thread has to wait, so threads that never wait cost no switch. Blocks run one
// after the other. The order of threads alternates between ascending and descending with launches, blocks and barriers: a missing barrier shows in one of them.
#include "runtime.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace isotope_emulated {

position isotope_emulated_position{};

namespace {

using boost::context::fiber;
constexpr std::size_t stack_bytes = std::size_t(256) << 10;
constexpr unsigned char poison = 0xff;  // NaN in every floating-point format

struct copy {
  void* to;
  const void* from;
  std::size_t bytes;
};
struct worker {
  fiber context, back;
  bool idle = true;
};
enum class state { unstarted, ready, at_barrier, in_warp, finished };
struct thread {
  index3 index;
  state now = state::unstarted;
  int line = 0;  // where it waits
  const char* waits_for = "";
  combine how = nullptr;
  std::uint32_t mask = 0;
  void* operand = nullptr;
  worker* on = nullptr;
  std::vector<std::vector<copy>> copies{};  // groups that are not finished; the last one is open
};

struct warp {
  std::uint32_t there = 0, waiting = 0;  // lanes that have not returned; those that wait for other lanes
};

std::string text(const index3& i) { return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")"; }

class device {
 public:
  void launch(const kernel& k, index3 grid, index3 block, std::size_t shared_bytes, const void* arguments);
  void fail(const std::string& message) const {
    std::fprintf(stderr, "emulated device: kernel %s, block %s, thread %s: %s\n", kernel_ ? kernel_->name : "(none)",
                 text(place().block).c_str(), running_ ? text(running_->index).c_str() : "(none)", message.c_str());
    std::fflush(stderr);
    std::abort();
  }
  int barrier(bool predicate, int line);
  void meet(combine how, std::uint32_t mask, void* operand, const char* name, int line);
  thread& running() { return *running_; }

 private:
  static position& place() { return isotope_emulated_position; }
  void run_block();
  void enter(thread& t) {
    running_ = &t;
    place().thread = t.index;
    place().lane = unsigned(&t - threads_.data()) % 32;
  }
  thread* next_unstarted() {
    if (unstarted_ == 0) return nullptr;
    --unstarted_;
    return descending_ ? &threads_[unstarted_] : &threads_[threads_.size() - 1 - unstarted_];
  }
  worker& idle_worker();
  void leave() {  // called by a thread that waits
    worker& w = *running_->on;
    thread& t = *running_;
    w.back = std::move(w.back).resume();
    enter(t);
  }
  void finish(thread& t);
  std::size_t warp_begin(const thread& t) const { return std::size_t(&t - threads_.data()) / 32 * 32; }
  std::uint32_t lane_bit(const thread& t) const { return 1u << std::size_t(&t - threads_.data()) % 32; }
  warp& warp_of(const thread& t) { return warps_[std::size_t(&t - threads_.data()) / 32]; }
  bool met(const thread& t);
  void release(thread& t);
  [[noreturn]] void report() const;

  const kernel* kernel_ = nullptr;
  const void* arguments_ = nullptr;
  std::vector<thread> threads_;
  std::vector<warp> warps_;
  std::vector<thread*> ready_;  // the last one runs next
  std::vector<std::unique_ptr<worker>> workers_;
  std::vector<worker*> idle_;
  std::unique_ptr<unsigned char[]> shared_;
  std::size_t shared_capacity_ = 0;
  thread* running_ = nullptr;
  std::size_t unstarted_ = 0, finished_ = 0, at_barrier_ = 0;
  int accumulated_ = 0, counted_ = 0;  // of the predicates of a barrier
  std::uint64_t launches_ = 0, blocks_ = 0, barriers_ = 0;
  bool descending_ = false;
};

worker& device::idle_worker() {
  if (idle_.empty()) {
    workers_.push_back(std::make_unique<worker>());
    worker& w = *workers_.back();
    w.context = fiber{std::allocator_arg, boost::context::protected_fixedsize_stack{stack_bytes}, [this, &w](fiber&& back) {
                        w.back = std::move(back);
                        // Stacks begin at multiples of a page; without an offset their frames would all be in the same few sets of the cache.
                        volatile auto* const offset = static_cast<unsigned char*>(__builtin_alloca(workers_.size() % 31 * 448 + 1));
                        *offset = 0;
                        for (;;) {
                          while (thread* t = next_unstarted()) {
                            t->on = &w;
                            enter(*t);
                            kernel_->run(arguments_);
                            finish(*t);
                          }
                          idle_.push_back(&w);
                          w.back = std::move(w.back).resume();
                        }
                        return std::move(w.back);
                      }};
    return w;
  }
  worker& w = *idle_.back();
  idle_.pop_back();
  return w;
}

void device::finish(thread& t) {
  t.now = state::finished;
  if (!t.copies.empty()) t.copies.clear();
  ++finished_;
  warp& w = warp_of(t);
  w.there &= ~lane_bit(t);
  if (w.waiting == 0) return;
  const std::size_t first = warp_begin(t);
  for (std::size_t k = first; k < std::min(first + 32, threads_.size()); ++k)
    if (threads_[k].now == state::in_warp && met(threads_[k])) release(threads_[k]);
}

/// Have all lanes come that t waits for?
bool device::met(const thread& t) {
  const warp& w = warp_of(t);
  std::uint32_t lanes = t.mask & w.there;
  if ((lanes & ~w.waiting) != 0) return false;
  const thread* const first = threads_.data() + warp_begin(t);
  for (; lanes != 0; lanes &= lanes - 1) {
    const thread& other = first[std::countr_zero(lanes)];
    if (other.how != t.how || other.mask != t.mask || other.line != t.line) return false;
  }
  return true;
}
void device::release(thread& t) {
  void* operands[32] = {};
  warp& w = warp_of(t);
  thread* const first = threads_.data() + warp_begin(t);
  const combine how = t.how;
  const std::uint32_t all = t.mask & w.there;
  for (std::uint32_t lanes = all; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    thread& other = first[lane];
    operands[lane] = other.operand;
    other.now = state::ready;
    if (&other != running_) ready_.push_back(&other);
  }
  w.waiting &= ~all;
  how(operands);
}

void device::meet(combine how, std::uint32_t mask, void* operand, const char* name, int line) {
  thread& t = *running_;
  if ((mask >> place().lane & 1) == 0)
    fail(std::string(name) + " at line " + std::to_string(line) + " is called by a lane that its mask leaves out");
  t.now = state::in_warp;
  t.how = how;
  t.mask = mask;
  t.operand = operand;
  t.waits_for = name;
  t.line = line;
  warp_of(t).waiting |= lane_bit(t);
  if (met(t)) release(t);
  else leave();
}

int device::barrier(bool predicate, int line) {
  thread& t = *running_;
  t.waits_for = "__syncthreads";
  t.line = line;
  accumulated_ += predicate ? 1 : 0;
  t.now = state::at_barrier;
  if (++at_barrier_ < threads_.size()) {
    leave();
    return counted_;
  }
  for (const thread& other : threads_)
    if (other.line != line)
      fail("__syncthreads at line " + std::to_string(line) + ", but thread " + text(other.index) + " has reached the one at line " +
           std::to_string(other.line));
  counted_ = accumulated_;
  accumulated_ = 0;
  at_barrier_ = 0;
  ++barriers_;
  for (std::size_t k = 0; k < threads_.size(); ++k) {
    thread& other = threads_[(launches_ + blocks_ + barriers_) % 2 == 0 ? k : threads_.size() - 1 - k];
    other.now = state::ready;
    if (&other != &t) ready_.push_back(&other);
  }
  return counted_;
}

void device::report() const {
  const thread* waits = nullptr;
  for (const thread& t : threads_)
    if (t.now != state::finished && (waits == nullptr || (waits->now == state::at_barrier && t.now == state::in_warp))) waits = &t;
  std::string message = "waits in vain at " + std::string(waits->waits_for) + ", line " + std::to_string(waits->line);
  std::size_t first = 0, end = threads_.size();
  if (waits->now == state::in_warp) {
    first = warp_begin(*waits);
    end = std::min(first + 32, threads_.size());
    char mask[16];
    std::snprintf(mask, sizeof mask, "0x%08x", unsigned(waits->mask));
    message += " with mask " + std::string(mask);
  }
  for (std::size_t k = first; k < end; ++k) {
    const thread& t = threads_[k];
    if (waits->now == state::in_warp && (waits->mask >> (k - first) & 1) == 0) continue;
    if (t.now == state::finished && waits->now == state::at_barrier) {
      message += ": thread " + text(t.index) + " has returned";
      break;
    }
    if (t.now != state::finished && (t.now != waits->now || t.how != waits->how || t.mask != waits->mask || t.line != waits->line)) {
      message += ": thread " + text(t.index) + " waits at " + t.waits_for + ", line " + std::to_string(t.line);
      break;
    }
  }
  std::fprintf(stderr, "emulated device: kernel %s, block %s, thread %s: %s\n", kernel_->name, text(place().block).c_str(),
               text(waits->index).c_str(), message.c_str());
  std::fflush(stderr);
  std::abort();
}

void device::run_block() {
  descending_ = (launches_ + blocks_) % 2 == 1;
  barriers_ = 0;
  finished_ = at_barrier_ = 0;
  accumulated_ = 0;
  unstarted_ = threads_.size();
  for (thread& t : threads_) t.now = state::unstarted;
  for (std::size_t k = 0; k < warps_.size(); ++k) {
    const std::size_t lanes = std::min<std::size_t>(threads_.size() - 32 * k, 32);
    warps_[k] = {.there = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1, .waiting = 0};
  }
  while (finished_ < threads_.size()) {
    if (!ready_.empty()) {
      thread& t = *ready_.back();
      ready_.pop_back();
      worker& w = *t.on;
      w.context = std::move(w.context).resume();
    } else if (unstarted_ != 0) {
      worker& w = idle_worker();
      w.context = std::move(w.context).resume();
    } else {
      report();
    }
  }
  running_ = nullptr;
}

void device::launch(const kernel& k, index3 grid, index3 block, std::size_t shared_bytes, const void* arguments) {
  kernel_ = &k;
  arguments_ = arguments;
  running_ = nullptr;
  place().block = {0, 0, 0};
  const std::size_t threads = std::size_t(block.x) * block.y * block.z;
  if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0)
    fail("launched with " + std::to_string(threads) + " threads in blocks " + text(grid));
  if (k.most_threads != 0 && threads > std::size_t(k.most_threads))
    fail("launched with " + std::to_string(threads) + " threads, its __launch_bounds__ allows " + std::to_string(k.most_threads));
  threads_.resize(threads);
  warps_.resize((threads + 31) / 32);
  std::size_t at = 0;
  for (unsigned z = 0; z < block.z; ++z)
    for (unsigned y = 0; y < block.y; ++y)
      for (unsigned x = 0; x < block.x; ++x) threads_[at++].index = {x, y, z};
  if (shared_capacity_ < shared_bytes + 2048) {
    shared_capacity_ = shared_bytes + 2048;
    shared_ = std::make_unique<unsigned char[]>(shared_capacity_);
  }
  unsigned char* const aligned = shared_.get() + (1024 - reinterpret_cast<std::uintptr_t>(shared_.get()) % 1024) % 1024;
  constexpr unsigned char guard = 0xa5;  // the bytes behind the block's dynamic shared memory
  std::memset(aligned + shared_bytes, guard, 1024);
  if (k.statics != nullptr) std::memset(k.statics, poison, k.static_bytes);
  position& p = place();
  p.block_size = block;
  p.grid_size = grid;
  p.shared = aligned;
  p.shared_bytes = shared_bytes;
  ++launches_;
  blocks_ = 0;
  for (p.block.z = 0; p.block.z < grid.z; ++p.block.z)
    for (p.block.y = 0; p.block.y < grid.y; ++p.block.y)
      for (p.block.x = 0; p.block.x < grid.x; ++p.block.x) {
        std::memset(aligned, poison, shared_bytes);
        run_block();
        ++blocks_;
        for (std::size_t b = 0; b < 1024; ++b)
          if (aligned[shared_bytes + b] != guard)
            fail("writes behind its " + std::to_string(shared_bytes) + " bytes of dynamic shared memory");
      }
  kernel_ = nullptr;
}

std::mutex& one_launch() {
  static std::mutex m;
  return m;
}
device& the_device() {
  static device& d = *new device;  // fibers are not unwound at the end of the program
  return d;
}

}  // namespace

void isotope_emulated_launch(const kernel* which, index3 grid, index3 block, std::size_t shared_bytes, const void* arguments) {
  const std::lock_guard lock(one_launch());
  the_device().launch(*which, grid, block, shared_bytes, arguments);
}
void isotope_emulated_launch_name(const char* name, index3 grid, index3 block, std::size_t shared_bytes, const void* arguments,
                                  std::size_t argument_bytes) {
  const auto* const k = static_cast<const kernel*>(dlsym(RTLD_DEFAULT, ("isotope_emulated_" + std::string(name)).c_str()));
  if (k == nullptr) {
    std::fprintf(stderr, "emulated device: no kernel %s (link with -rdynamic)\n", name);
    std::abort();
  }
  if (k->argument_bytes != argument_bytes) {
    std::fprintf(stderr, "emulated device: kernel %s takes %zu bytes, not %zu\n", name, k->argument_bytes, argument_bytes);
    std::abort();
  }
  isotope_emulated_launch(k, grid, block, shared_bytes, arguments);
}

void isotope_emulated_fail(const char* message) {
  the_device().fail(message);
  std::abort();
}
int isotope_emulated_barrier(bool predicate, int line) { return the_device().barrier(predicate, line); }
void isotope_emulated_meet(combine how, std::uint32_t mask, void* operand, const char* name, int line) {
  the_device().meet(how, mask, operand, name, line);
}

void isotope_emulated_copy(void* shared, const void* global, std::size_t bytes) {
  auto& groups = the_device().running().copies;
  if (groups.empty()) groups.emplace_back();
  groups.back().push_back({shared, global, bytes});
  std::memset(shared, poison, bytes);
}
void isotope_emulated_commit() {
  auto& groups = the_device().running().copies;
  if (groups.empty()) groups.emplace_back();
  groups.emplace_back();
}
void isotope_emulated_wait(int unfinished) {
  auto& groups = the_device().running().copies;
  while (groups.size() > std::size_t(unfinished) + 1) {
    for (const copy& c : groups.front()) {
      if (c.from == nullptr) std::memset(c.to, 0, c.bytes);
      else std::memcpy(c.to, c.from, c.bytes);
    }
    groups.erase(groups.begin());
  }
}

}  // namespace isotope_emulated
