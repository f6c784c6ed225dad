/// Time of all_reduce by size and number of ranks, between threads of one process and over TCP on the loopback interface: medians of repeated calls.
#include <isotope/comm/tcp_group.hpp>
#include <isotope/comm/thread_group.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace isotope;

/// Median microseconds of all_reduce on rank 0.
double median(communicator& c, std::size_t bytes, dtype t) {
  std::vector<std::byte> x(bytes);
  std::vector<double> times;
  const int count = bytes < (1u << 20) ? 200 : 20;
  for (int i = 0; i < count; ++i) {
    if (!c.barrier()) return -1;
    const auto begin = std::chrono::steady_clock::now();
    if (!c.all_reduce(x, t, reduction::sum)) return -1;
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + count / 2, times.end());
  return times[std::size_t(count / 2)];
}

template <class Join> void rows(const char* transport, int ranks, const Join& join) {
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      auto c = join(r);
      if (!c) {
        std::puts(c.error().line().c_str());
        return;
      }
      for (const dtype t : {dtype::f32, dtype::bf16})
        for (std::size_t bytes = 64; bytes <= (std::size_t(64) << 20); bytes *= 16) {
          const double us = median(**c, bytes, t);
          if (r == 0)
            std::printf("%-8s %5d  %-5s %10zu %12.1f %10.2f\n", transport, ranks, std::string(name_of(t)).c_str(), bytes, us,
                        double(bytes) / us / 1e3);
        }
      (void)(*c)->barrier();
    });
  for (auto& t : threads) t.join();
}

}  // namespace

int main() {
  std::printf("%-8s %5s  %-5s %10s %12s %10s\n", "by", "ranks", "type", "bytes", "us", "GB/s");
  for (const int ranks : {2, 4}) {
    thread_group group(ranks);
    rows("threads", ranks, [&](int r) { return group.join(r); });
    std::vector<tcp_address> at;
    std::vector<std::shared_ptr<tcp_listener>> listeners;
    for (int r = 0; r < ranks; ++r) {
      auto l = tcp_listener::open({"127.0.0.1", 0});
      if (!l) return std::puts(l.error().line().c_str()), 1;
      at.push_back((*l)->at());
      listeners.push_back(*std::move(l));
    }
    rows("tcp", ranks, [&](int r) { return tcp_group(at, {}, listeners[std::size_t(r)]).join(r); });
  }
}
