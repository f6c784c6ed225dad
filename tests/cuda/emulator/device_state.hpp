#pragma once
// The emulated device: blocks that run beside each other, their threads, which are fibers, and what threads wait for.
#include <algorithm>
#include <boost/context/fiber.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime.hpp"

namespace isotope_emulated {

using boost::context::fiber;
inline constexpr unsigned char poison = 0xff;  // NaN in every floating-point format
/// Shared memory of the blocks that run beside each other: block k has the bytes from k times this on. It is more than a block may have and the variables of all kernels of a module take.
inline constexpr std::size_t slot_bytes = std::size_t(512) << 10;
/// Where in it the block's __shared__ variables are kept while another block runs: behind all dynamic shared memory.
inline constexpr std::size_t kept_statics = std::size_t(230) << 10;

struct copy {
  void* to;
  const void* from;
  std::size_t bytes;
};
struct worker {
  fiber context, back;
};
enum class state { unstarted, ready, at_barrier, in_warp, at_named_barrier, at_memory_barrier, at_cluster_barrier, polling, finished };

struct running_block;
struct thread {
  index3 index;
  running_block* of = nullptr;
  state now = state::unstarted;
  int line = 0;  // where it waits
  const char* waits_for = "";
  combine how = nullptr;
  std::uint32_t mask = 0;
  void* operand = nullptr;
  worker* on = nullptr;
  std::vector<std::vector<copy>> copies{};  // groups that are not finished; the last one is open
  product_groups products{};
  std::uint64_t cluster_phase = never;  // in which it has arrived at its cluster's barrier
  static constexpr std::uint64_t never = ~std::uint64_t(0);
};
struct warp {
  std::uint32_t there = 0, waiting = 0;  // lanes that have not returned; those that wait for other lanes
};
struct named_barrier {
  int expected = 0, arrived = 0;
  std::vector<thread*> waiting;
};
/// A block that has begun and not ended.
struct running_block {
  index3 index;
  unsigned char* shared = nullptr;
  std::size_t first = 0, first_warp = 0;  // of its threads and warps
  std::size_t unstarted = 0, finished = 0, at_barrier = 0;
  int accumulated = 0, counted = 0;  // of the predicates of a barrier
  std::uint64_t number = 0, barriers = 0;
  bool descending = false;
  std::vector<named_barrier> named = std::vector<named_barrier>(16);
};
struct running_cluster {
  std::size_t arrived = 0, left = 0, absent = 0;  // threads: in this phase, of these those that have returned, and others that have
  std::uint64_t phase = 0;
  std::vector<thread*> waiting;
};
/// Bytes on their way to shared memory, which count at a barrier when they come.
struct transfer {
  std::function<void()> carry;
  std::uint32_t to, bytes, barrier;
};

class device {
 public:
  void launch(const kernel& k, index3 grid, index3 block, std::size_t shared_bytes, const void* arguments, unsigned cluster, bool together);
  [[noreturn]] void fail(const std::string& message) const;
  thread& running() { return *running_; }

  int barrier(bool predicate, int line);
  void meet(combine how, std::uint32_t mask, void* operand, const char* name, int line);

  std::uint32_t address(const void* shared) const;
  unsigned char* at(std::uint32_t address, std::size_t bytes) const;
  std::uint32_t address_in(std::uint32_t own, unsigned rank) const;
  void memory_barrier_init(std::uint32_t at, std::uint32_t arrivals);
  void memory_barrier_arrive(std::uint32_t at, std::uint32_t bytes);
  void memory_barrier_wait(std::uint32_t at, std::uint32_t parity, int line);
  void start(transfer t);
  void named(int number, int threads, bool waits, int line);
  void cluster_arrive();
  void cluster_wait(int line);
  void poll();
  void stored() { ++stores_; }

 private:
  static position& place() { return isotope_emulated_position; }
  void run_blocks();
  void begin(running_block& b, index3 index, std::size_t number, std::size_t slot);
  void enter(thread& t) {
    running_ = &t;
    place().thread = t.index;
    place().lane = unsigned(number_of(t)) % 32;
    place().block = t.of->index;
    place().shared = t.of->shared;
    if (swaps_statics_ && t.of != owner_) swap_statics(t.of);
  }
  /// The module's __shared__ variables are those of one block at a time.
  void swap_statics(running_block* next);
  thread* next_unstarted();
  worker& idle_worker();
  /// Called by a thread that waits.
  void leave() {
    worker& w = *running_->on;
    thread& t = *running_;
    w.back = std::move(w.back).resume();
    enter(t);
  }
  void wait_as(state s, const char* name, int line) {
    running_->now = s;
    running_->waits_for = name;
    running_->line = line;
    leave();
  }
  void wake(thread& t) {
    t.now = state::ready;
    if (&t != running_) ready_.push_back(&t);
  }
  void finish(thread& t);
  std::size_t number_of(const thread& t) const { return std::size_t(&t - threads_.data()) - t.of->first; }
  std::size_t warp_begin(const thread& t) const { return t.of->first + number_of(t) / 32 * 32; }
  std::size_t warp_end(const thread& t) const { return std::min(warp_begin(t) + 32, t.of->first + threads_of_block_); }
  std::uint32_t lane_bit(const thread& t) const { return 1u << number_of(t) % 32; }
  warp& warp_of(const thread& t) { return warps_[t.of->first_warp + number_of(t) / 32]; }
  bool met(const thread& t);
  void release(thread& t);
  running_cluster& cluster_of(const thread& t) { return clusters_[std::size_t(t.of - blocks_.data()) / cluster_]; }
  void end_cluster_phase(running_cluster& c);
  void end_phase(std::uint32_t at);
  void complete_transfer();
  [[noreturn]] void report() const;
  [[noreturn]] void stop(const thread* t, const std::string& message) const;

  const kernel* kernel_ = nullptr;
  const void* arguments_ = nullptr;
  std::vector<running_block> blocks_;
  std::vector<running_cluster> clusters_;
  std::vector<thread> threads_;
  std::vector<warp> warps_;
  std::size_t threads_of_block_ = 0, cluster_ = 1;
  std::vector<thread*> ready_, polling_;  // the last one of ready_ runs next
  std::deque<transfer> transfers_;
  std::unordered_map<std::uint32_t, std::vector<thread*>> waiting_;  // at barriers in shared memory, by address
  std::vector<std::unique_ptr<worker>> workers_;
  std::vector<worker*> idle_;
  bool swaps_statics_ = false;
  running_block* owner_ = nullptr;  // of what the module's __shared__ variables hold
  unsigned char* shared_ = nullptr;
  std::size_t slots_ = 0;
  thread* running_ = nullptr;
  std::size_t unstarted_ = 0, finished_ = 0;
  std::uint64_t launches_ = 0;
  std::uint64_t stores_ = 0, stores_seen_ = 0;  // of words that other blocks wait for
  int turns_without_ = 0;                       // of all threads that poll, since one of these was stored
};

device& the_device();

}  // namespace isotope_emulated
