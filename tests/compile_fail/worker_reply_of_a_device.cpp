// expect: constraint|satisf
// note: HostReply
// A tensor of a device cannot be the reply of a job: it would be used and destroyed on another thread.
#include <isotope/backend/cpu.hpp>
#include <isotope/eager/device_tensor.hpp>
#include <isotope/worker/reply.hpp>

using target = isotope::target<isotope::backend::cpu, isotope::precision::f32>;
isotope::worker::reply<isotope::device_tensor<isotope::device<target>::queue_type>> wrong;
