#pragma once
/// Products that cuBLASLt computes. The algorithm of each product is chosen once: by timing, where that is asked for, else the
/// library's own first choice. A file that keeps the choices gives results the same bits in every run.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../queue/variant_cache.hpp"
#include "blas_library.hpp"
#include "launch.hpp"
#include "memory.hpp"

namespace isotope::cuda {

class blas_products {
 public:
  /// Whether the options allow the library.
  static bool allowed(const cuda::options& o) { return !o.diagnose.no_library && !o.diagnose.no_matrix_units; }
  /// Null without a cuBLASLt that serves, or if the options forbid it.
  static std::shared_ptr<blas_products> open(const std::shared_ptr<context>& c, std::shared_ptr<variant_cache> choices) {
    if (!allowed(c->options) || !c->f()->captures()) return nullptr;
    std::shared_ptr<blas_products> b(new blas_products);
    const auto here = c->current();
    b->library_ = blas_library::open(c->options.diagnose.library_folder, [&](const blas_library& l) {
      if (l->create(&b->handle_) == 0) return true;
      b->handle_ = nullptr;
      return false;
    });
    if (b->library_ == nullptr) return nullptr;
    b->context_ = c;
    b->where_ = c->physical().name + ", " + std::to_string(c->physical().limits.multiprocessors) + " multiprocessors, cublasLt " +
                std::to_string((*b->library_)->version());
    b->choices_ = std::move(choices);
    c->use_blas();
    return b;
  }
  blas_products(const blas_products&) = delete;
  blas_products& operator=(const blas_products&) = delete;
  ~blas_products() {
    if (handle_ == nullptr || context_->lost()) return;
    const auto here = context_->current();
    for (auto& [signature, made] : prepared_) release(made);
    (*library_)->destroy(handle_);
  }

  /// Starts a product on a stream. @error missing_feature where cuBLASLt has no algorithm for it
  result<void> start(const library_product& p, stream_handle stream) {
    auto made = prepare(p);
    if (!made) return made.error();
    const auto here = context_->current();
    if (const int s = call(p, **made, (*made)->chosen, pointers_of(p), stream); s != 0) return refused(p, s);
    return {};
  }
  /// Chooses the algorithm of a product, if that has not been done. @error missing_feature where cuBLASLt has none
  result<void> choose(const library_product& p) {
    if (auto made = prepare(p); !made) return made.error();
    return {};
  }
  /// A digest of the device, the library and the algorithms of products that were chosen. Runs of the same digest compute them with the same bits.
  std::string digest_of(const std::vector<library_product>& all) const {
    const std::lock_guard lock(mutex_);
    std::set<std::string> lines;
    for (const library_product& p : all) {
      const std::string signature = signature_of(p);
      if (const auto at = prepared_.find(signature); at != prepared_.end())
        lines.insert(signature + "\t" + text_of(at->second.chosen) + "\n");
    }
    if (lines.empty()) return {};
    std::string text = where_ + "\n";
    for (const std::string& line : lines) text += line;
    return words_text(std::array{choice_file::hash_of(text)});
  }

 private:
  struct prepared {
    blas::description description = nullptr;
    blas::layout a = nullptr, b = nullptr, c = nullptr, d = nullptr;
    blas::algorithm chosen;
  };
  struct pointers {
    const void *a, *b, *c;
    void *d, *workspace;
  };
  std::shared_ptr<context> context_;
  std::shared_ptr<const blas_library> library_;
  std::string where_;  // the device and the library
  blas::handle handle_ = nullptr;
  std::map<std::string, prepared> prepared_;
  std::shared_ptr<variant_cache> choices_;
  mutable std::mutex mutex_;  // of what is prepared, which stays in place

  blas_products() = default;

  static int number_of(dtype t) { return t == dtype::bf16 ? 14 : t == dtype::f16 ? 2 : 0; }  // cudaDataType
  static pointers pointers_of(const library_product& p) {
    const auto at = [](std::uint64_t a) { return reinterpret_cast<void*>(a); };
    return {at(p.a.at), at(p.b.at), at(p.beta != 0 ? p.c.at : p.d.at), at(p.d.at), at(p.workspace)};
  }
  /// The largest power of two, up to what the library takes for granted, that divides an address.
  static std::uint32_t alignment_of(std::uint64_t at) { return std::uint32_t(std::min<std::uint64_t>(at & (~at + 1), granted_alignment)); }
  static constexpr std::uint32_t granted_alignment = 256;
  static std::string signature_of(const library_product& p) {
    const auto of = [](const library_product::matrix& x) {
      const auto aligned = alignment_of(x.at);
      return std::string(name_of(x.type)) + (aligned < granted_alignment ? " at multiples of " + std::to_string(aligned) : std::string()) +
             (x.column_stride == 1 ? " rows " + std::to_string(x.row_stride) : " columns " + std::to_string(x.column_stride)) +
             (x.batch_stride != 0 ? " batch " + std::to_string(x.batch_stride) : std::string());
    };
    return "m=" + std::to_string(p.m) + " n=" + std::to_string(p.n) + " k=" + std::to_string(p.k) +
           " batches=" + std::to_string(p.batches) + ", " + of(p.a) + ", " + of(p.b) + ", " + of(p.d) +
           (p.beta != 0 ? ", adds " + of(p.c) : std::string()) + ", workspace " + std::to_string(p.workspace_bytes);
  }
  failure refused(const library_product& p, int s) const {
    constexpr int allocation_failed = 3;
    if (s == allocation_failed)
      return fail(errc::out_of_memory, "cuBLASLt has no memory for " + signature_of(p), context_->physical().name,
                  "use a smaller batch or model, recompute blocks, or another device");
    return fail(errc::missing_feature, "cuBLASLt does not compute " + signature_of(p) + ": status " + std::to_string(s),
                context_->physical().name,
                (choices_->kept() ? "remove " + context_->options.cache + ", which keeps the algorithms, or " : std::string()) +
                    "forbid the library, so that own kernels run");
  }

  int call(const library_product& p, const prepared& made, const blas::algorithm& how, const pointers& x, stream_handle stream) const {
    // The library's matrices are column-major, so it computes d^T = b^T a^T.
    return (*library_)->matmul(handle_, made.description, &p.alpha, x.b, made.b, x.a, made.a, &p.beta, x.c, made.c, x.d, made.d, &how,
                               x.workspace, std::size_t(p.workspace_bytes), stream);
  }
  void release(prepared& made) const {
    for (auto* l : {&made.a, &made.b, &made.c, &made.d})
      if (*l != nullptr) (*library_)->destroy_layout(*l);
    if (made.description != nullptr) (*library_)->destroy_description(made.description);
    made = {};
  }
  /// The layout of a matrix (rows, columns) as the library's: a matrix whose rows are contiguous is the transpose of a column-major one.
  int describe(blas::layout& to, const library_product::matrix& x, std::int64_t rows, std::int64_t columns, std::int64_t batches) const {
    const bool by_rows = x.column_stride == 1;
    const auto& lt = *library_;
    int s = lt->create_layout(&to, number_of(x.type), std::uint64_t(by_rows ? columns : rows), std::uint64_t(by_rows ? rows : columns),
                              by_rows ? x.row_stride : x.column_stride);
    const auto n = std::int32_t(batches);
    if (s == 0 && batches > 1) s = lt->set_layout(to, blas::layout_attribute::batches, &n, sizeof n);
    if (s == 0 && batches > 1) s = lt->set_layout(to, blas::layout_attribute::batch_stride, &x.batch_stride, sizeof x.batch_stride);
    return s;
  }
  int make(const library_product& p, prepared& m) const {
    const auto& lt = *library_;
    constexpr int f32 = 0;
    int s = lt->create_description(&m.description, blas::compute::f32, f32);
    const std::int32_t turn_first = p.b.column_stride == 1 ? 0 : 1, turn_second = p.a.column_stride == 1 ? 0 : 1;
    if (s == 0) s = lt->set_description(m.description, blas::description_attribute::transpose_a, &turn_first, sizeof turn_first);
    if (s == 0) s = lt->set_description(m.description, blas::description_attribute::transpose_b, &turn_second, sizeof turn_second);
    if (s == 0) s = describe(m.a, p.a, p.m, p.k, p.batches);
    if (s == 0) s = describe(m.b, p.b, p.k, p.n, p.batches);
    if (s == 0) s = describe(m.c, p.beta != 0 ? p.c : p.d, p.m, p.n, p.batches);
    if (s == 0) s = describe(m.d, p.d, p.m, p.n, p.batches);
    return s;
  }
  result<const prepared*> prepare(const library_product& p) {
    const std::lock_guard lock(mutex_);
    const std::string signature = signature_of(p);
    if (const auto at = prepared_.find(signature); at != prepared_.end()) return &at->second;
    const auto here = context_->current();
    prepared m;
    if (const int s = make(p, m); s != 0) {
      release(m);
      return refused(p, s);
    }
    const std::string key = "cublasLt " + std::to_string((*library_)->version()) + ' ' + signature;
    if (!parse(choices_->find(key), m.chosen)) {
      auto candidates = candidates_of(p, m);
      if (candidates.empty()) {
        release(m);
        return refused(p, 15);
      }
      const auto best = choices_->level() == tuning::measure ? fastest(p, m, candidates) : result<int>(-1);
      if (!best) {
        release(m);
        return best.error();
      }
      m.chosen = candidates[std::size_t(std::max(*best, 0))].algorithm;
      if (*best >= 0) choices_->put_measured(key, text_of(m.chosen));
      else choices_->put_estimated(key, text_of(m.chosen));
      choices_->save();  // at once: steps of other phases are recorded while a program runs, which may be killed
    }
    return &prepared_.emplace(signature, m).first->second;
  }
  std::vector<blas::candidate> candidates_of(const library_product& p, const prepared& m) const {
    constexpr int most = 24;
    std::vector<blas::candidate> all(most);
    blas::preference wish = nullptr;
    const auto& lt = *library_;
    if (lt->create_preference(&wish) != 0) return {};
    const auto workspace = std::uint64_t(p.workspace_bytes);
    lt->set_preference(wish, blas::preference_attribute::workspace_bytes, &workspace, sizeof workspace);
    const std::uint32_t sums_in_f32 = 2;  // split K keeps partial sums in the format of the computation
    lt->set_preference(wish, blas::preference_attribute::reduction_schemes, &sums_in_f32, sizeof sums_in_f32);
    const std::pair<blas::preference_attribute, std::uint64_t> places[] = {
        {blas::preference_attribute::alignment_a, p.b.at},
        {blas::preference_attribute::alignment_b, p.a.at},
        {blas::preference_attribute::alignment_c, p.beta != 0 ? p.c.at : p.d.at},
        {blas::preference_attribute::alignment_d, p.d.at}};
    for (const auto& [which, at] : places) {
      const std::uint32_t bytes = alignment_of(at);
      if (bytes < granted_alignment) lt->set_preference(wish, which, &bytes, sizeof bytes);
    }
    int found = 0;
    if (lt->heuristic(handle_, m.description, m.b, m.a, m.c, m.d, wish, most, all.data(), &found) != 0) found = 0;
    lt->destroy_preference(wish);
    all.resize(std::size_t(found));
    std::erase_if(all, [](const blas::candidate& c) { return c.status != 0; });
    return all;
  }
  /// Times each candidate on memory of its own, so that no tensor changes: the median of three runs after one to warm up. -1 where memory is
  /// short or none ran. @error timeout, device_lost
  result<int> fastest(const library_product& p, const prepared& m, const std::vector<blas::candidate>& all) {
    const auto bytes = [&](const library_product::matrix& x, std::int64_t rows, std::int64_t columns) {
      return size_of(x.type) * ((p.batches - 1) * x.batch_stride + (rows - 1) * x.row_stride + (columns - 1) * x.column_stride + 1);
    };
    auto a = memory::allocate(context_, bytes(p.a, p.m, p.k), memory_use::device, "operand of a timed product");
    auto b = memory::allocate(context_, bytes(p.b, p.k, p.n), memory_use::device, "operand of a timed product");
    auto d = memory::allocate(context_, bytes(p.d, p.m, p.n), memory_use::device, "result of a timed product");
    if (!a || !b || !d) return -1;
    const auto& f = context_->f();
    const stream_handle stream = context_->stream();
    for (auto* x : {&*a, &*b}) fill_with_noise(*x);
    f->fill_words(d->address(), 0, std::size_t(d->bytes() / 4), stream);
    const auto at = [](std::uint64_t x) { return reinterpret_cast<void*>(x); };
    const pointers x{at(a->address()), at(b->address()), at(d->address()), at(d->address()), at(p.workspace)};
    std::array<event_handle, 2> events{};
    for (auto& e : events)
      if (f->create_event(&e, 0) != status::success) e = nullptr;
    int best = -1;
    float least = 0;
    result<void> alive;
    for (std::size_t i = 0; i < all.size() && alive; ++i) {
      std::array<float, 3> times{};
      bool runs = call(p, m, all[i].algorithm, x, stream) == 0;
      for (float& t : times) {
        f->record_event(events[0], stream);
        runs = runs && call(p, m, all[i].algorithm, x, stream) == 0;
        f->record_event(events[1], stream);
        const auto ended = context_->wait_for(events[1], "timing an algorithm of cuBLASLt for " + signature_of(p));
        if (!ended && context_->lost()) alive = ended;
        runs = runs && ended && f->elapsed_milliseconds(&t, events[0], events[1]) == status::success;
        if (!alive) break;
      }
      if (!runs) continue;
      std::sort(times.begin(), times.end());
      if (best < 0 || times[1] < least) least = times[1], best = int(i);
    }
    if (!alive) return alive.error();
    for (auto e : events)
      if (e != nullptr) f->destroy_event(e);
    return best;
  }
  /// Numbers of magnitude 0.5 to 2 in every format: zeros would draw less power and time too fast.
  void fill_with_noise(const memory& m) const {
    std::vector<std::uint32_t> block(1 << 18);
    std::uint32_t x = 12345;
    for (auto& w : block) {
      x = x * 1664525u + 1013904223u;
      w = (x & 0x80ff80ffu) | 0x3f003f00u;
    }
    const auto whole = std::int64_t(4 * block.size());
    for (std::int64_t at = 0; at < m.bytes(); at += whole)
      context_->f()->copy_to_device(m.address() + std::uint64_t(at), block.data(), std::size_t(std::min(whole, m.bytes() - at)),
                                    context_->stream());
  }

  static std::string text_of(const blas::algorithm& a) { return words_text(a.words); }
  static std::string words_text(std::span<const std::uint64_t> words) {
    std::string s;
    for (const auto w : words) {
      std::array<char, 20> digits{};
      const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), w, 16).ptr;
      s += (s.empty() ? "" : " ") + std::string(digits.data(), end);
    }
    return s;
  }
  static bool parse(const std::string& s, blas::algorithm& a) {
    const char* at = s.data();
    const char* const end = at + s.size();
    for (auto& w : a.words) {
      while (at != end && *at == ' ') ++at;
      const auto r = std::from_chars(at, end, w, 16);
      if (r.ec != std::errc{}) return false;
      at = r.ptr;
    }
    return at == end;
  }
};

}  // namespace isotope::cuda
