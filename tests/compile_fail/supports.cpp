// expect: (static assertion|static_assert).*this launch needs an f64 kernel of adamw on small
// note: Supports
// Code that launches a kernel without a plan can assert that the kernel exists.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
namespace iso = isotope;

struct small : iso::backend::cpu {
  using kernels = iso::library_kernels<iso::cpu::kernel, iso::precision::f32, iso::kernels::reference>;
};
static_assert(iso::Supports<small, iso::op::adamw, iso::precision::f32>);
static_assert(iso::Supports<small, iso::op::adamw, iso::precision::f64>, "this launch needs an f64 kernel of adamw on small");
