/// Our declarations of NCCL against NVIDIA's header, where that is installed.
#include <gtest/gtest.h>

#include <isotope/comm/cuda/nccl_library.hpp>

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>

#include <type_traits>

namespace isotope::nccl {
namespace nccl_table_test {

template <class Ours, class Theirs> void same(Ours a, Theirs b) { EXPECT_EQ(long(a), long(b)); }

TEST(nccl_table, numbers_are_those_of_the_header) {
  static_assert(sizeof(unique_id) == sizeof(ncclUniqueId));
  same(status::success, ncclSuccess);
  same(status::unhandled_cuda_error, ncclUnhandledCudaError);
  same(status::system_error, ncclSystemError);
  same(status::internal_error, ncclInternalError);
  same(status::invalid_argument, ncclInvalidArgument);
  same(status::invalid_usage, ncclInvalidUsage);
  same(status::remote_error, ncclRemoteError);
  same(status::in_progress, ncclInProgress);
  same(data_type::u8, ncclUint8);
  same(data_type::i32, ncclInt32);
  same(data_type::i64, ncclInt64);
  same(data_type::f16, ncclFloat16);
  same(data_type::f32, ncclFloat32);
  same(data_type::f64, ncclFloat64);
  same(data_type::bf16, ncclBfloat16);
  same(operation::sum, ncclSum);
  same(operation::max, ncclMax);
  same(library::oldest, NCCL_VERSION(2, 18, 0));
}

/// As many arguments of the same sizes; pointers, enumerations and handles have other names here.
template <class... Ours, class... Theirs> constexpr bool alike(status (*)(Ours...), ncclResult_t (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs)) {
    return false;
  } else {
    return ((sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
             std::is_class_v<Ours> == std::is_class_v<Theirs>) &&
            ...);
  }
}
TEST(nccl_table, functions_have_the_arguments_of_the_header) {
  const table t;
  EXPECT_TRUE(alike(t.version, decltype (&ncclGetVersion)()));
  EXPECT_TRUE(alike(t.make_id, decltype (&ncclGetUniqueId)()));
  EXPECT_TRUE(alike(t.create, decltype (&ncclCommInitRank)()));
  EXPECT_TRUE(alike(t.destroy, decltype (&ncclCommDestroy)()));
  EXPECT_TRUE(alike(t.abort, decltype (&ncclCommAbort)()));
  EXPECT_TRUE(alike(t.async_error, decltype (&ncclCommGetAsyncError)()));
  EXPECT_TRUE(alike(t.all_reduce, decltype (&ncclAllReduce)()));
  EXPECT_TRUE(alike(t.all_gather, decltype (&ncclAllGather)()));
  EXPECT_TRUE(alike(t.reduce_scatter, decltype (&ncclReduceScatter)()));
  EXPECT_TRUE(alike(t.broadcast, decltype (&ncclBroadcast)()));
  EXPECT_TRUE(alike(t.begin_group, decltype (&ncclGroupStart)()));
  EXPECT_TRUE(alike(t.end_group, decltype (&ncclGroupEnd)()));
  EXPECT_FALSE(alike(t.all_reduce, decltype (&ncclAllGather)()));
}

}  // namespace nccl_table_test
}  // namespace isotope::nccl
#else
TEST(nccl_table, numbers_are_those_of_the_header) { GTEST_SKIP() << "nccl.h is not installed"; }
#endif
