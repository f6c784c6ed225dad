#pragma once
#include <boost/mp11/list.hpp>
namespace isotope::cpu { template <class P> using portable_kernels = boost::mp11::mp_list<>; }
