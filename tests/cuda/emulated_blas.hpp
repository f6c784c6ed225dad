#pragma once
/// The emulated cuBLASLt on the emulated device, with a folder for the file of choices and a small product, for tests of products of the library.
#include "device.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

namespace isotope::cuda::cuda_blas_test {

namespace fs = std::filesystem;
using isotope_emulated::emulated_blas;

inline bool says(const std::string& text, std::string_view what) { return text.find(what) != std::string::npos; }

/// A folder for the file of choices.
struct folder {
  fs::path at = fs::temp_directory_path() / ("isotope_blas_" + std::to_string(::getpid()));
  folder() { fs::create_directories(at); }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  ~folder() {
    fs::permissions(at, fs::perms::owner_all);
    fs::remove_all(at);
  }
  std::string file() const { return (at / "choices").string(); }
};
inline std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// One opened device with its library, as a process has it.
struct opened {
  std::shared_ptr<context> c;
  std::shared_ptr<loaded_functions> functions;
  explicit opened(const options& o)
      : c(*isotope_test::there(context::open(o, fatbins::needs))), functions(std::make_shared<loaded_functions>(c)) {}
  blas_products* operator->() const { return functions->products.get(); }
  bool there() const { return functions->products != nullptr; }
};

/// d (2, 3) = a (2, 4) b (4, 3) in device memory, with whole numbers, which every algorithm sums exactly. `wide`: another stride, so another signature.
class small_product {
 public:
  explicit small_product(const opened& on, dtype type = dtype::f32, std::int64_t wide = 0)
      : on_(on), all_(*memory::allocate(on.c, 1 << 12, memory_use::device, "matrices")), moving_(on.c), type_(type) {
    EXPECT_TRUE(moving_.clear(all_, 0, all_.bytes()).ok());
    put(0, {1, 2, 3, 4, 5, 6, 7, 8});
    put(1024, {1, 0, 2, 0, 1, 1, 3, 0, 0, 1, 1, 1});
    p.m = 2, p.n = 3, p.k = 4, p.batches = 1;
    p.a = {all_.address(), type, 4, 1, 0};
    p.b = {all_.address() + 1024, type, 3, 1, 0};
    p.c = p.d = {all_.address() + 2048, type, 3 + wide, 1, 0};
  }
  std::vector<float> result(std::int64_t stride = 3) {
    std::vector<float> y;
    for (std::int64_t i = 0; i < 2; ++i)
      for (std::int64_t j = 0; j < 3; ++j) y.push_back(get(2048, i * stride + j));
    return y;
  }
  void run() {
    auto value = on_.c->submitted("a product", [&] {
      auto r = on_->start(p, on_.c->stream());
      EXPECT_TRUE(r.ok()) << (r ? std::string() : r.error().line());
      return status::success;
    });
    ASSERT_TRUE(value.ok() && on_.c->wait(*value).ok());
  }
  library_product p;

 private:
  const opened& on_;
  memory all_;
  transfer moving_;
  dtype type_;

  void put(std::int64_t at, const std::vector<float>& x) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bfloat16 brain(x[i]);
      const float16 half(x[i]);
      const auto* const from = type_ == dtype::bf16  ? static_cast<const void*>(&brain)
                               : type_ == dtype::f16 ? static_cast<const void*>(&half)
                                                     : &x[i];
      const auto bytes = std::int64_t(size_of(type_));
      EXPECT_TRUE(moving_.upload(all_, at + std::int64_t(i) * bytes, {static_cast<const std::byte*>(from), std::size_t(bytes)}).ok());
    }
  }
  float get(std::int64_t at, std::int64_t i) {
    std::array<std::byte, 4> raw{};
    const auto bytes = std::int64_t(size_of(type_));
    EXPECT_TRUE(moving_.download(all_, at + i * bytes, std::span(raw).first(std::size_t(bytes))).ok());
    float x = 0;
    bfloat16 brain;
    float16 half;
    std::memcpy(&x, raw.data(), 4);
    std::memcpy(&brain, raw.data(), 2);
    std::memcpy(&half, raw.data(), 2);
    return type_ == dtype::bf16 ? float(brain) : type_ == dtype::f16 ? float(half) : x;
  }
};
inline const std::vector<float> product{14, 6, 8, 34, 14, 24};

struct cuda_blas_fixture : testing::Test {
  cuda_test::emulator_settings restored;
  std::optional<emulated_blas> blas;
  options o = cuda_test::library_options();
  void SetUp() override {
    if (!cuda_test::emulator().there()) GTEST_SKIP() << "the emulated driver is not there";
    blas.emplace(std::string(cuda_test::emulated_blas) + "/libcublasLt.so.13");
    ASSERT_TRUE(blas->there());
    blas->reset();
  }
  std::int64_t timed() const { return blas->started(1) + blas->started(2) + blas->started(3); }
  /// Which algorithm a new process runs, with the file of choices.
  int algorithm_of_a_run() {
    const opened on(o);
    EXPECT_TRUE(on.there());
    small_product x(on);
    EXPECT_TRUE(on->choose(x.p).ok());
    const std::int64_t before[] = {blas->started(1), blas->started(2), blas->started(3)};
    x.run();
    for (int n = 1; n <= 3; ++n)
      if (blas->started(n) > before[n - 1]) return n;
    return 0;
  }
};

}  // namespace isotope::cuda::cuda_blas_test
