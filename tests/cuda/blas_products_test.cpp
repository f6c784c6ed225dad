/// Products of cuBLASLt on an emulated library: which library is opened, how algorithms are chosen and kept, and what fails.
#include "emulated_blas.hpp"

namespace isotope::cuda {
namespace blas_products_test {

using namespace cuda_blas_test;
struct cuda_blas : cuda_blas_fixture {};

TEST_F(cuda_blas, products_of_every_format_transposed_scaled_and_added_are_those_of_the_formula) {
  const opened on(o);
  ASSERT_TRUE(on.there());
  for (const dtype type : {dtype::f32, dtype::bf16, dtype::f16}) {
    small_product x(on, type);
    x.run();
    EXPECT_EQ(x.result(), product) << name_of(type);
    x.p.beta = 1, x.p.alpha = 2;
    x.run();
    auto want = product;
    for (float& y : want) y *= 3;
    EXPECT_EQ(x.result(), want) << name_of(type);
  }
  small_product x(on);
  std::swap(x.p.b.row_stride, x.p.b.column_stride);  // the same bytes as a matrix whose columns are contiguous
  x.p.b.column_stride = 4;
  x.run();
  EXPECT_EQ(x.result(), (std::vector<float>{7, 12, 9, 19, 32, 21})) << "the columns are (1 0 2 0), (1 1 3 0), (0 1 1 1)";
}
TEST_F(cuda_blas, without_a_file_the_first_choice_runs_and_nothing_is_timed) {
  const opened on(o);
  small_product x(on);
  ASSERT_TRUE(on->choose(x.p).ok());
  EXPECT_EQ(timed(), 0);
  x.run();
  EXPECT_EQ(blas->started(1), 1);
  EXPECT_TRUE(on.functions->variants->messages().empty());
}
TEST_F(cuda_blas, a_file_without_timing_keeps_the_first_choice_until_timing_is_asked_for) {
  const folder f;
  o.cache = f.file();
  EXPECT_EQ(algorithm_of_a_run(), 1);
  EXPECT_EQ(timed(), 1) << "the product alone";
  EXPECT_TRUE(says(text_of(f.file()), "m=2 n=3 k=4") && says(text_of(f.file()), "\testimated ")) << text_of(f.file());
  blas->set_algorithms({{3, 1}, {2, 9}, {1, 9}});
  EXPECT_EQ(algorithm_of_a_run(), 1) << "the same file, the same algorithm";
  blas->reset();
  o.autotune = tuning::measure;
  EXPECT_EQ(algorithm_of_a_run(), 2);
  o.autotune = tuning::cached;
  EXPECT_EQ(algorithm_of_a_run(), 2);
  o.autotune = tuning::off;
  EXPECT_EQ(algorithm_of_a_run(), 1) << "the file is not read";
}
TEST_F(cuda_blas, the_fastest_algorithm_of_each_shape_is_timed_once_and_kept) {
  const folder f;
  o.cache = f.file(), o.autotune = tuning::measure;
  EXPECT_EQ(algorithm_of_a_run(), 2);
  EXPECT_EQ(timed(), 3 * 4 + 1) << "one run to warm up and three that are timed, for each, then the product";
  EXPECT_TRUE(fs::exists(f.file())) << "written at once";
  blas->set_algorithms({{1, 1}, {2, 9}, {3, 9}});  // what would be chosen by timing now
  const auto before = timed();
  EXPECT_EQ(algorithm_of_a_run(), 2) << "the same file, the same algorithm";
  EXPECT_EQ(timed(), before + 1) << "without timing";

  const opened on(o);  // another shape is timed, and the first one stays
  small_product wide(on, dtype::f32, 1);
  ASSERT_TRUE(on->choose(wide.p).ok());
  EXPECT_EQ(timed(), before + 1 + 12);
  ASSERT_TRUE(on->choose(wide.p).ok());
  EXPECT_EQ(timed(), before + 1 + 12);
  EXPECT_EQ(algorithm_of_a_run(), 2);
}
TEST_F(cuda_blas, timing_changes_no_memory_of_the_program) {
  const folder f;
  o.cache = f.file(), o.autotune = tuning::measure;
  const opened on(o);
  small_product x(on);
  ASSERT_TRUE(on->choose(x.p).ok());
  EXPECT_GT(timed(), 0);
  EXPECT_EQ(x.result(), std::vector<float>(6, 0.0f));
}
TEST_F(cuda_blas, a_file_that_is_cut_changed_or_of_another_device_driver_or_library_is_ignored_said_and_replaced) {
  const folder f;
  o.cache = f.file(), o.autotune = tuning::measure;
  ASSERT_EQ(algorithm_of_a_run(), 2);
  const std::string whole = text_of(f.file());
  const auto replaced = [&](const char* what) {
    blas->set_algorithms({{1, 9}, {2, 9}, {3, 1}});
    {
      const opened on(o);
      ASSERT_TRUE(on.there());
      const auto said = on.functions->variants->messages();
      ASSERT_EQ(said.size(), 1u) << what;
      EXPECT_TRUE(says(said[0], f.file()) && says(said[0], "ignored and will be replaced")) << said[0];
    }
    EXPECT_EQ(algorithm_of_a_run(), 3) << what;
    const opened again(o);
    EXPECT_TRUE(again.functions->variants->messages().empty()) << what;
    blas->reset();
  };
  std::ofstream(f.file()) << whole.substr(0, whole.size() / 2);
  replaced("half a file");
  std::string other = whole;
  other[other.find('\n') + 2] ^= 1;
  std::ofstream(f.file()) << other;
  replaced("a changed signature");
  std::ofstream(f.file()) << "not a file of choices\n";
  replaced("another file");
  std::ofstream(f.file()).flush();
  replaced("an empty file");

  std::ofstream(f.file()) << whole;
  cuda_test::emulator().set_version(13010);
  replaced("another driver");
  cuda_test::emulator_settings::restore();
  std::ofstream(f.file()) << whole;
  cuda_test::emulator().set_devices({{.name = "other card", .compute = cuda_test::emulated_compute()}});
  replaced("another device");
  cuda_test::emulator_settings::restore();
  std::ofstream(f.file()) << whole;
  blas->set_version(130100);
  blas->set_algorithms({{1, 9}, {2, 9}, {3, 1}});
  EXPECT_EQ(algorithm_of_a_run(), 3) << "another library";
  EXPECT_NE(text_of(f.file()), whole);
}
TEST_F(cuda_blas, a_file_that_cannot_be_written_is_said_and_harmless) {
  const folder f;
  std::ofstream(f.at / "file") << "no folder";
  o.cache = (f.at / "file" / "choices").string(), o.autotune = tuning::measure;
  const opened on(o);
  small_product x(on);
  ASSERT_TRUE(on->choose(x.p).ok());
  ASSERT_EQ(on.functions->variants->messages().size(), 1u);
  EXPECT_TRUE(says(on.functions->variants->messages()[0], o.cache) && says(on.functions->variants->messages()[0], "cannot be written"))
      << on.functions->variants->messages()[0];
  x.run();
  EXPECT_EQ(x.result(), product);
}

TEST_F(cuda_blas, a_library_that_is_missing_forbidden_too_old_or_does_not_start_leaves_the_work_to_own_kernels) {
  EXPECT_TRUE(opened(o).there());
  auto none = o;
  none.diagnose.no_library = true;
  EXPECT_FALSE(opened(none).there());
  none = o;
  none.diagnose.no_matrix_units = true;
  EXPECT_FALSE(opened(none).there());
  blas->set_version(110400);
  const opened old(o);
  EXPECT_FALSE(old.there());
  EXPECT_FALSE(old.c->physical().limits.blas);
  blas->reset();
  blas->set_fault("cublasLtCreate", 1);
  EXPECT_FALSE(opened(o).there());
}
TEST_F(cuda_blas, a_library_that_lacks_an_entry_point_is_passed_over_for_an_older_one) {
  const std::string folder = cuda_test::partial_blas;
  const emulated_blas partial(folder + "/libcublasLt.so.13"), whole(folder + "/libcublasLt.so.12");
  ASSERT_TRUE(partial.there() && whole.there());
  const opened on(cuda_test::library_options(folder));
  ASSERT_TRUE(on.there());
  EXPECT_EQ(partial.calls("cublasLtCreate"), 0);
  EXPECT_EQ(whole.calls("cublasLtCreate"), 1);
  small_product x(on);
  x.run();
  EXPECT_EQ(x.result(), product);
  whole.set_version(110000);
}
TEST_F(cuda_blas, candidates_that_the_heuristic_marks_or_that_do_not_start_are_passed_over) {
  const folder f;
  o.cache = f.file(), o.autotune = tuning::measure;
  blas->set_algorithms({{1, 1, 15}, {2, 1, 0, 15}, {3, 7}});
  EXPECT_EQ(algorithm_of_a_run(), 3);
  EXPECT_EQ(blas->started(1), 0) << "marked as not usable";
}
TEST_F(cuda_blas, algorithms_are_asked_for_that_take_matrices_where_they_are) {
  const folder f;
  o.cache = f.file(), o.autotune = tuning::measure;
  blas->set_algorithms({{1, 5}, {2, 1, 0, 0, 256}});
  const opened on(o);
  small_product x(on);
  ASSERT_TRUE(on->choose(x.p).ok());
  x.run();
  EXPECT_EQ(x.result(), product);
  for (auto* at : {&x.p.a.at, &x.p.b.at, &x.p.d.at}) {
    auto moved = x.p;
    auto& place = at == &x.p.a.at ? moved.a.at : at == &x.p.b.at ? moved.b.at : moved.d.at;
    place += 16;
    const auto second = blas->started(2), first = blas->started(1);
    ASSERT_TRUE(on->choose(moved).ok());
    EXPECT_EQ(blas->started(2), second) << "it needs multiples of 256";
    EXPECT_EQ(blas->started(1), first + 4);
  }
}
TEST_F(cuda_blas, a_product_without_an_algorithm_is_a_missing_feature_with_its_shape) {
  for (const auto& all : {std::vector<isotope_emulated::blas_algorithm>{}, {{1, 1, 15}}}) {
    blas->set_algorithms(all);
    const opened on(o);
    small_product x(on);
    const auto r = on->choose(x.p);
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.error().code, errc::missing_feature);
    EXPECT_TRUE(says(r.error().line(), "m=2 n=3 k=4")) << r.error().line();
  }
}
TEST_F(cuda_blas, an_algorithm_that_fails_when_it_runs_is_an_error_of_its_own_and_the_device_goes_on) {
  const folder f;
  o.cache = f.file(), o.autotune = tuning::measure;
  ASSERT_EQ(algorithm_of_a_run(), 2);
  for (const auto& [status, code] : {std::pair(15, errc::missing_feature), std::pair(3, errc::out_of_memory)}) {
    blas->set_algorithms({{1, 5}, {2, 2, 0, status}, {3, 4}});
    const opened on(o);
    small_product x(on);
    const auto r = on->start(x.p, on.c->stream());
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.error().code, code) << r.error().line();
    EXPECT_TRUE(says(r.error().line(), "m=2 n=3 k=4")) << r.error().line();
    if (code == errc::missing_feature) { EXPECT_TRUE(says(r.error().fix, "remove " + f.file())) << r.error().fix; }

    dispatch d;  // as a step of a graph, and alone
    d.product = x.p;
    step_graph g(on.c);
    const auto built = g.build(*on.functions, {d}, {{}});
    ASSERT_FALSE(built.ok());
    EXPECT_EQ(built.error().code, code) << built.error().line();
    plan_recorder alone(on.c, on.functions, {});
    const auto run = alone.run({&d, 1});
    ASSERT_FALSE(run.ok());
    EXPECT_EQ(run.error().code, code) << run.error().line();
    EXPECT_FALSE(on.c->lost());
    blas->reset();
    x.run();
    EXPECT_EQ(x.result(), product);
  }
  EXPECT_EQ(cuda_test::emulator().live().graphs, 0);
}
/// The emulated driver aborts the program where it calls what would wait for a device that hangs.
TEST_F(cuda_blas, an_algorithm_that_does_not_end_while_it_is_timed_is_a_timeout_and_nothing_waits_for_it) {
  cuda_test::run_alone([&] {
    const folder f;
    o.cache = f.file(), o.autotune = tuning::measure;
    o.timeout_seconds = 0.05;
    {
      const opened on(o);
      small_product x(on);
      cuda_test::emulator().set_hung(true);
      dispatch d;
      d.product = x.p;
      step_graph g(on.c);
      const auto r = g.build(*on.functions, {d}, {{}});
      ASSERT_FALSE(r.ok());
      EXPECT_EQ(r.error().code, errc::timeout) << r.error().line();
      EXPECT_TRUE(says(r.error().line(), "timing an algorithm of cuBLASLt for m=2 n=3 k=4")) << r.error().line();
      EXPECT_TRUE(on.c->hung() && on.c->lost());
      EXPECT_EQ(timed(), 2) << "one run to warm up and one that is timed, of the first algorithm alone";
      EXPECT_FALSE(fs::exists(f.file())) << "nothing was chosen";
    }
    cuda_test::emulator().set_hung(false);
  });
}

}  // namespace blas_products_test
}  // namespace isotope::cuda
