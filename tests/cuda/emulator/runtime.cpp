// Threads of a block are fibers. A fiber runs one thread after the other until a thread has to wait, so threads that never wait cost no switch. Blocks run one
// after the other, but for those of a cluster and of launches whose blocks wait for each other. The order of threads alternates between ascending and descending
// with launches, blocks and barriers: a missing barrier shows in one of them.
#include "runtime.hpp"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <boost/context/stack_context.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "device_state.hpp"

namespace isotope_emulated {

position isotope_emulated_position{};

namespace {

/// Memory that the system gives when it is written.
unsigned char* reserve(std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    std::fprintf(stderr, "emulated device: no memory for %zu bytes of stacks or shared memory\n", bytes);
    std::abort();
  }
  return static_cast<unsigned char*>(at);
}
/// Stacks of fibers, which stay for the next launch. The first ones have a page below them that nobody may touch; the system has room for no more of these.
struct stacks {
  static constexpr std::size_t bytes = std::size_t(256) << 10, guarded = 4096;
  boost::context::stack_context allocate() {
    static std::size_t count = 0;
    unsigned char* const at = reserve(bytes);
    if (++count <= guarded) mprotect(at, 4096, PROT_NONE);
    boost::context::stack_context s;
    s.size = bytes;
    s.sp = at + bytes;
    return s;
  }
  void deallocate(boost::context::stack_context&) noexcept {}
};

std::string text(const index3& i) { return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")"; }

}  // namespace

void device::stop(const thread* t, const std::string& message) const {
  std::fprintf(stderr, "emulated device: kernel %s, block %s, thread %s: %s\n", kernel_ ? kernel_->name : "(none)",
               text(t != nullptr ? t->of->index : place().block).c_str(), t != nullptr ? text(t->index).c_str() : "(none)",
               message.c_str());
  std::fflush(stderr);
  std::abort();
}
void device::fail(const std::string& message) const { stop(running_, message); }

thread* device::next_unstarted() {
  if (unstarted_ == 0) return nullptr;
  --unstarted_;
  running_block* b = &blocks_.back();
  while (b->unstarted == 0) --b;
  --b->unstarted;
  return &threads_[b->first + (b->descending ? b->unstarted : threads_of_block_ - 1 - b->unstarted)];
}
worker& device::idle_worker() {
  if (idle_.empty()) {
    workers_.push_back(std::make_unique<worker>());
    worker& w = *workers_.back();
    w.context = fiber{std::allocator_arg, stacks{}, [this, &w](fiber&& back) {
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
  if (!t.products.empty() && (t.products.size() > 1 || !t.products.front().empty())) fail("returns before it has waited for its products");
  ++finished_;
  ++t.of->finished;
  if (cluster_ > 1) {
    running_cluster& c = cluster_of(t);
    ++(t.cluster_phase == c.phase ? c.left : c.absent);
    end_cluster_phase(c);
  }
  warp& w = warp_of(t);
  w.there &= ~lane_bit(t);
  if (w.waiting == 0) return;
  for (std::size_t k = warp_begin(t); k < warp_end(t); ++k)
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
    wake(other);
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
  running_block& b = *t.of;
  t.waits_for = "__syncthreads";
  t.line = line;
  b.accumulated += predicate ? 1 : 0;
  t.now = state::at_barrier;
  if (++b.at_barrier < threads_of_block_) {
    leave();
    return b.counted;
  }
  thread* const first = threads_.data() + b.first;
  for (std::size_t k = 0; k < threads_of_block_; ++k)
    if (first[k].line != line)
      fail("__syncthreads at line " + std::to_string(line) + ", but thread " + text(first[k].index) + " has reached the one at line " +
           std::to_string(first[k].line));
  b.counted = std::exchange(b.accumulated, 0);
  b.at_barrier = 0;
  ++b.barriers;
  const bool ascending = (launches_ + b.number + b.barriers) % 2 == 0;
  for (std::size_t k = 0; k < threads_of_block_; ++k) wake(first[ascending ? k : threads_of_block_ - 1 - k]);
  return b.counted;
}

void device::report() const {
  const thread* waits = nullptr;
  for (const thread& t : threads_)
    if (t.now != state::finished && (waits == nullptr || (waits->now == state::at_barrier && t.now != state::at_barrier))) waits = &t;
  std::string message = "waits in vain at " + std::string(waits->waits_for) + ", line " + std::to_string(waits->line);
  std::size_t first = waits->of->first, end = first + threads_of_block_;
  if (waits->now == state::in_warp) {
    first = warp_begin(*waits), end = warp_end(*waits);
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
  stop(waits, message);
}

void device::begin(running_block& b, index3 index, std::size_t number, std::size_t slot) {
  b.index = index;
  b.number = number;
  b.shared = shared_ + slot * slot_bytes;
  b.first = slot * threads_of_block_;
  b.first_warp = slot * ((threads_of_block_ + 31) / 32);
  b.descending = (launches_ + number) % 2 == 1;
  b.barriers = 0;
  b.finished = b.at_barrier = 0;
  b.accumulated = 0;
  b.unstarted = threads_of_block_;
  for (named_barrier& n : b.named) n.arrived = 0;
  for (std::size_t k = 0; k < threads_of_block_; ++k) {
    thread& t = threads_[b.first + k];
    t.now = state::unstarted, t.of = &b, t.cluster_phase = thread::never;
  }
  for (std::size_t k = 0; 32 * k < threads_of_block_; ++k) {
    const std::size_t lanes = std::min<std::size_t>(threads_of_block_ - 32 * k, 32);
    warps_[b.first_warp + k] = {.there = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1, .waiting = 0};
  }
  unstarted_ += threads_of_block_;
}
void device::swap_statics(running_block* next) {
  auto* const statics = static_cast<unsigned char*>(kernel_->statics);
  if (owner_ != nullptr) std::memcpy(owner_->shared + kept_statics, statics, kernel_->static_bytes);
  std::memcpy(statics, next->shared + kept_statics, kernel_->static_bytes);
  owner_ = next;
}
void device::run_blocks() {
  constexpr int most_turns = 1000;
  turns_without_ = 0;
  while (finished_ < threads_.size()) {
    if (!ready_.empty()) {
      thread& t = *ready_.back();
      ready_.pop_back();
      worker& w = *t.on;
      w.context = std::move(w.context).resume();
    } else if (unstarted_ != 0) {
      worker& w = idle_worker();
      w.context = std::move(w.context).resume();
    } else if (!transfers_.empty()) {
      complete_transfer();
    } else if (!polling_.empty() && turns_without_ < most_turns) {
      turns_without_ = std::exchange(stores_seen_, stores_) == stores_ ? turns_without_ + 1 : 0;
      ready_.swap(polling_);
    } else {
      report();
    }
  }
  running_ = nullptr;
  if (!transfers_.empty()) fail("all threads have returned before the bytes that are on their way to shared memory came");
  waiting_.clear();
}

void device::launch(const kernel& k, index3 grid, index3 block, std::size_t shared_bytes, const void* arguments, unsigned cluster,
                    bool together) {
  kernel_ = &k;
  arguments_ = arguments;
  running_ = nullptr;
  place().block = {0, 0, 0};
  const std::size_t threads = std::size_t(block.x) * block.y * block.z, all = std::size_t(grid.x) * grid.y * grid.z;
  if (threads == 0 || threads > 1024 || all == 0) fail("launched with " + std::to_string(threads) + " threads in blocks " + text(grid));
  if (k.most_threads != 0 && threads > std::size_t(k.most_threads))
    fail("launched with " + std::to_string(threads) + " threads, its __launch_bounds__ allows " + std::to_string(k.most_threads));
  if (cluster == 0 || grid.x % cluster != 0) fail("launched with " + text(grid) + " blocks in clusters of " + std::to_string(cluster));
  constexpr std::size_t guard_bytes = 1024, most_blocks = 4096;
  const std::size_t beside = together ? all : cluster;  // blocks that run beside each other
  if (beside > most_blocks || shared_bytes + guard_bytes > kept_statics)
    fail("launched with " + std::to_string(beside) + " blocks beside each other, of " + std::to_string(shared_bytes) +
         " bytes of shared memory");
  if (slots_ < beside) shared_ = reserve(beside * slot_bytes), slots_ = beside;
  threads_of_block_ = threads;
  cluster_ = cluster;
  blocks_.resize(beside);
  clusters_.assign(beside / cluster, {});
  threads_.resize(beside * threads);
  warps_.resize(beside * ((threads + 31) / 32));
  std::size_t at = 0;
  for (std::size_t b = 0; b < beside; ++b)
    for (unsigned z = 0; z < block.z; ++z)
      for (unsigned y = 0; y < block.y; ++y)
        for (unsigned x = 0; x < block.x; ++x) threads_[at++].index = {x, y, z};
  constexpr unsigned char guard = 0xa5;  // the bytes behind the block's dynamic shared memory
  for (std::size_t b = 0; b < beside; ++b) std::memset(shared_ + b * slot_bytes + shared_bytes, guard, guard_bytes);
  if (k.statics != nullptr) std::memset(k.statics, poison, k.static_bytes);
  owner_ = nullptr;
  swaps_statics_ = k.statics != nullptr && beside > 1 && k.static_bytes > 0;
  if (swaps_statics_ && k.static_bytes > slot_bytes - kept_statics) fail("has too many __shared__ variables for blocks beside each other");
  position& p = place();
  p.block_size = block;
  p.grid_size = grid;
  p.shared_bytes = shared_bytes;
  p.cluster_size = cluster;
  ++launches_;
  for (std::size_t first = 0; first < all; first += beside) {
    finished_ = unstarted_ = 0;
    owner_ = nullptr;
    for (std::size_t b = 0; b < beside; ++b) {
      const std::size_t n = first + b;
      std::memset(shared_ + b * slot_bytes, poison, shared_bytes);
      if (swaps_statics_) std::memset(shared_ + b * slot_bytes + kept_statics, poison, k.static_bytes);
      begin(blocks_[b], {unsigned(n % grid.x), unsigned(n / grid.x % grid.y), unsigned(n / grid.x / grid.y)}, n, b);
    }
    for (running_cluster& c : clusters_) c.arrived = c.left = c.absent = 0;
    run_blocks();
    for (std::size_t b = 0; b < beside; ++b)
      for (std::size_t i = 0; i < guard_bytes; ++i)
        if (shared_[b * slot_bytes + shared_bytes + i] != guard)
          fail("writes behind its " + std::to_string(shared_bytes) + " bytes of dynamic shared memory");
  }
  kernel_ = nullptr;
}

device& the_device() {
  static device& d = *new device;  // fibers are not unwound at the end of the program
  return d;
}

namespace {

std::mutex& one_launch() {
  static std::mutex m;
  return m;
}

}  // namespace

void isotope_emulated_launch(const kernel* which, index3 grid, index3 block, std::size_t shared_bytes, const void* arguments,
                             unsigned cluster, bool together) {
  const std::lock_guard lock(one_launch());
  the_device().launch(*which, grid, block, shared_bytes, arguments, cluster, together);
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
