#pragma once
/// Programs in f16, which nothing trains. On devices that multiply matrices of f16 but not of bf16, such as software drivers, they use the kernels
/// for matrix units that bf16 programs use elsewhere.
#include "open_set.hpp"

namespace conform_program {

struct f16 {
  using storage = iso::float16;
  using accum = float;
  static constexpr std::string_view name = "f16";
  static constexpr iso::dtype type = iso::dtype::f16, accum_type = iso::dtype::f32;
};
static_assert(iso::Precision<f16>);

/// A backend whose kernels accept any precision with f32 sums.
template <class B>
concept HasKernelsOf = requires { typename B::template kernels_of<f16>; };
template <HasKernelsOf B> struct in_f16 : B {
  using kernels = typename B::template kernels_of<f16>;
};

template <class B, class D> opened open_f16(std::string_view kernels, const iso::basic_device_options<D>& o) {
  using namespace iso::kernels;
  if constexpr (HasKernelsOf<B>) {
    if (kernels == native::name) return iso::conform::executor_of<iso::target<in_f16<B>, f16, native>>::open(iso::options_for<B>(o));
    return iso::fail(iso::errc::invalid_argument, "programs in f16 have native kernels alone", "--kernels", "native");
  } else {
    return iso::fail(iso::errc::invalid_argument, "no kernels of " + std::string(B::name) + " run programs in f16", "--precision",
                     "f32 or bf16");
  }
}

}  // namespace conform_program
