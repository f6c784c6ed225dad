// What devices of compute capability 9.0 have beside the rest: barriers in shared memory, bytes that come there while threads go on, clusters, and words that blocks
// wait for. What may happen later happens as late as it may, so that a kernel that does not wait for it reads bytes 0xff or old numbers.
#include <cstring>
#include <utility>

#include "device_state.hpp"

namespace isotope_emulated {

namespace {

/// The 8 bytes of a barrier.
struct barrier_word {
  std::int32_t bytes;  // that are expected and have not come
  std::uint32_t pending : 10, arrivals : 10, phase : 1, valid : 11;
  static constexpr std::uint32_t mark = 0x2b5;
};
static_assert(sizeof(barrier_word) == 8);
constexpr std::uint32_t most_arrivals = 1023;  // of the emulated ones

}  // namespace

std::uint32_t device::address(const void* shared) const {
  const auto* const p = static_cast<const unsigned char*>(shared);
  if (const auto* const statics = static_cast<const unsigned char*>(kernel_->statics); p >= statics && p < statics + kernel_->static_bytes)
    return std::uint32_t(std::size_t(running_->of->shared - shared_) + kept_statics + std::size_t(p - statics));
  if (p < shared_ || p >= shared_ + slots_ * slot_bytes) fail("takes the address of shared memory of what is not there");
  return std::uint32_t(p - shared_);
}
unsigned char* device::at(std::uint32_t address, std::size_t bytes) const {
  const std::size_t slot = address / slot_bytes, offset = address % slot_bytes;
  if (slot < blocks_.size() && offset >= kept_statics && offset + bytes <= kept_statics + kernel_->static_bytes) {
    const bool here = !swaps_statics_ || &blocks_[slot] == owner_;
    return here ? static_cast<unsigned char*>(kernel_->statics) + (offset - kept_statics) : shared_ + address;
  }
  if (slot >= blocks_.size() || offset + bytes > place().shared_bytes)
    fail("reaches byte " + std::to_string(address % slot_bytes) + " of a block's " + std::to_string(place().shared_bytes) +
         " bytes of shared memory");
  if (blocks_[slot].finished == threads_of_block_) fail("reaches the shared memory of a block that has ended");
  return shared_ + address;
}
std::uint32_t device::address_in(std::uint32_t own, unsigned rank) const {
  const std::size_t slot = std::size_t(running_->of - blocks_.data());
  if (own / slot_bytes != slot) fail("takes the place in another block of an address that is not its own");
  if (rank >= cluster_) fail("names block " + std::to_string(rank) + " of a cluster of " + std::to_string(cluster_));
  return std::uint32_t((slot / cluster_ * cluster_ + rank) * slot_bytes + own % slot_bytes);
}

void device::memory_barrier_init(std::uint32_t where, std::uint32_t arrivals) {
  if (where % 8 != 0) fail("a barrier in shared memory is not aligned to 8 bytes");
  if (arrivals == 0 || arrivals > most_arrivals) fail("a barrier is for " + std::to_string(arrivals) + " arrivals");
  const barrier_word w{0, arrivals, arrivals, 0, barrier_word::mark};
  std::memcpy(at(where, 8), &w, sizeof w);
}
/// Lets `change` count, and ends the phase if nothing is missing.
template <class Change> static bool counted(unsigned char* at, const Change& change, bool& valid) {
  barrier_word w;
  std::memcpy(&w, at, sizeof w);
  valid = w.valid == barrier_word::mark;
  if (!valid) return false;
  change(w);
  const bool ends = w.pending == 0 && w.bytes == 0;
  if (ends) w.phase ^= 1, w.pending = w.arrivals;
  std::memcpy(at, &w, sizeof w);
  return ends;
}
void device::end_phase(std::uint32_t where) {
  const auto found = waiting_.find(where);
  if (found == waiting_.end()) return;
  const std::vector<thread*> all = std::exchange(found->second, {});
  for (thread* const t : all) wake(*t);
}
void device::memory_barrier_arrive(std::uint32_t where, std::uint32_t bytes) {
  bool valid = false, too_many = false;
  const bool ends = counted(
      at(where, 8),
      [&](barrier_word& w) {
        too_many = w.pending == 0;
        w.bytes += std::int32_t(bytes);
        --w.pending;
      },
      valid);
  if (!valid) fail("arrives at a barrier that was not initialised");
  if (too_many) fail("arrives at a barrier at which all have arrived in this phase");
  if (ends) end_phase(where);
}
void device::memory_barrier_wait(std::uint32_t where, std::uint32_t parity, int line) {
  barrier_word w;
  std::memcpy(&w, at(where, 8), sizeof w);
  if (w.valid != barrier_word::mark) fail("waits for a barrier that was not initialised");
  if (w.phase != (parity & 1)) return;
  waiting_[where].push_back(running_);
  wait_as(state::at_memory_barrier, "a barrier in shared memory", line);
}

void device::start(transfer t) { transfers_.push_back(std::move(t)); }
void device::complete_transfer() {
  running_ = nullptr;
  const bool last = launches_ % 2 == 0;
  const transfer t = std::move(last ? transfers_.back() : transfers_.front());
  if (last) transfers_.pop_back();
  else transfers_.pop_front();
  place().block = blocks_[t.to / slot_bytes].index;
  at(t.to, t.bytes);
  t.carry();
  bool valid = false;
  if (counted(at(t.barrier, 8), [&](barrier_word& w) { w.bytes -= std::int32_t(t.bytes); }, valid)) end_phase(t.barrier);
  if (!valid) fail("bytes come for a barrier that was not initialised");
}

void device::named(int number, int threads, bool waits, int line) {
  if (number < 1 || number > 15 || threads % 32 != 0) fail("comes to barrier " + std::to_string(number) + " of " + std::to_string(threads));
  named_barrier& b = running_->of->named[std::size_t(number)];
  if (b.arrived > 0 && b.expected != threads)
    fail("comes to barrier " + std::to_string(number) + " for " + std::to_string(threads) + " threads, where others wait for " +
         std::to_string(b.expected));
  b.expected = threads;
  if (++b.arrived == threads) {
    b.arrived = 0;
    const std::vector<thread*> all = std::exchange(b.waiting, {});
    for (thread* const t : all) wake(*t);
    return;
  }
  if (!waits) return;
  b.waiting.push_back(running_);
  wait_as(state::at_named_barrier, "a named barrier", line);
}

void device::end_cluster_phase(running_cluster& c) {
  if (c.arrived == 0 || c.arrived + c.absent < cluster_ * threads_of_block_) return;
  c.arrived = 0;
  c.absent += std::exchange(c.left, 0);
  ++c.phase;
  const std::vector<thread*> all = std::exchange(c.waiting, {});
  for (thread* const t : all) wake(*t);
}
void device::cluster_arrive() {
  running_cluster& c = cluster_of(*running_);
  running_->cluster_phase = c.phase;
  ++c.arrived;
  end_cluster_phase(c);
}
void device::cluster_wait(int line) {
  running_cluster& c = cluster_of(*running_);
  if (c.phase > running_->cluster_phase) return;
  c.waiting.push_back(running_);
  wait_as(state::at_cluster_barrier, "the barrier of the cluster", line);
}

void device::poll() {
  polling_.push_back(running_);
  wait_as(state::polling, "a word that another block stores", 0);
}

std::uint32_t isotope_emulated_shared_address(const void* shared) { return the_device().address(shared); }
void* isotope_emulated_shared_at(std::uint32_t address, std::size_t bytes) { return the_device().at(address, bytes); }
std::uint32_t isotope_emulated_address_in(std::uint32_t own, unsigned rank) { return the_device().address_in(own, rank); }
void isotope_emulated_memory_barrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  the_device().memory_barrier_init(barrier, arrivals);
}
void isotope_emulated_memory_barrier_arrive(std::uint32_t barrier, std::uint32_t expected_bytes) {
  the_device().memory_barrier_arrive(barrier, expected_bytes);
}
void isotope_emulated_memory_barrier_wait(std::uint32_t barrier, std::uint32_t parity, int line) {
  the_device().memory_barrier_wait(barrier, parity, line);
}
void isotope_emulated_named_barrier(int number, int threads, bool waits, int line) { the_device().named(number, threads, waits, line); }
void isotope_emulated_cluster_arrive() { the_device().cluster_arrive(); }
void isotope_emulated_cluster_wait(int line) { the_device().cluster_wait(line); }
void isotope_emulated_poll() { the_device().poll(); }
void isotope_emulated_stored() { the_device().stored(); }
product_groups* isotope_emulated_products() {
  product_groups& p = the_device().running().products;
  if (p.empty()) p.emplace_back();
  return &p;
}

void isotope_emulated_bulk_copy(std::uint32_t to, const void* global, std::uint32_t bytes, std::uint32_t barrier) {
  device& d = the_device();
  if (to % 16 != 0 || reinterpret_cast<std::uintptr_t>(global) % 16 != 0 || bytes % 16 != 0)
    d.fail("copies " + std::to_string(bytes) + " bytes from or to an address that is not aligned to 16 bytes");
  std::memset(d.at(to, bytes), poison, bytes);
  d.start({[&d, to, global, bytes] { std::memcpy(d.at(to, bytes), global, bytes); }, to, bytes, barrier});
}
void isotope_emulated_send(std::uint32_t to, const void* value, std::uint32_t bytes, std::uint32_t barrier) {
  device& d = the_device();
  if (to % bytes != 0) d.fail("sends " + std::to_string(bytes) + " bytes to an address that is not a multiple of them");
  std::uint64_t kept[2] = {};
  std::memcpy(kept, value, bytes);
  d.at(to, bytes);
  d.start({[&d, to, a = kept[0], b = kept[1], bytes] {
             const std::uint64_t all[2] = {a, b};
             std::memcpy(d.at(to, bytes), all, bytes);
           },
           to, bytes, barrier});
}
void isotope_emulated_tensor_copy(std::uint32_t to, const void* description, const std::int32_t* first, int rank, std::uint32_t barrier) {
  device& d = the_device();
  tensor_description t;
  std::memcpy(&t, description, sizeof t);
  if (t.magic != tensor_description::valid || int(t.rank) != rank)
    d.fail("copies a box of what is no tensor of " + std::to_string(rank) + " axes");
  if (to % 128 != 0 || (t.swizzle_bytes == 128 && to % 1024 != 0))
    d.fail("copies a box to byte " + std::to_string(to % slot_bytes) + " of shared memory, which is not aligned enough");
  std::uint32_t bytes = t.element_bytes;
  for (int k = 0; k < rank; ++k) bytes *= t.box[k];
  std::memset(d.at(to, bytes), poison, bytes);
  std::int64_t from[5] = {};
  for (int k = 0; k < rank; ++k) from[k] = first[k];
  const auto carry = [&d, t, from0 = from[0], from1 = from[1], from2 = from[2], from3 = from[3], from4 = from[4], to, bytes] {
    const std::int64_t begin[5] = {from0, from1, from2, from3, from4};
    const std::uint32_t swizzled = t.swizzle_bytes == 128 ? 7 : t.swizzle_bytes == 64 ? 3 : t.swizzle_bytes == 32 ? 1 : 0;
    unsigned char* const block = d.at(to, bytes);
    const std::uint32_t line = t.box[0] * t.element_bytes;
    for (std::uint32_t row = 0; row < bytes / line; ++row) {
      std::uint32_t rest = row;
      bool inside = true;
      std::uint64_t source = t.address;
      for (std::uint32_t k = 1; k < t.rank; ++k) {
        const std::int64_t i = begin[k] + rest % t.box[k];
        rest /= t.box[k];
        inside = inside && i >= 0 && std::uint64_t(i) < t.dims[k];
        if (inside) source += std::uint64_t(i) * t.strides[k];
      }
      for (std::uint32_t chunk = 0; chunk < line; chunk += 16) {
        const std::uint32_t at = to + row * line + chunk, place = at ^ ((at >> 7 & swizzled) << 4);
        for (std::uint32_t byte = 0; byte < 16; byte += t.element_bytes) {
          const std::int64_t i = begin[0] + (chunk + byte) / t.element_bytes;
          unsigned char* const element = block + (place - to) + byte;
          if (inside && i >= 0 && std::uint64_t(i) < t.dims[0])
            std::memcpy(element, reinterpret_cast<const void*>(source + std::uint64_t(i) * t.element_bytes), t.element_bytes);
          else std::memset(element, 0, t.element_bytes);
        }
      }
    }
  };
  d.start({carry, to, bytes, barrier});
}

}  // namespace isotope_emulated
