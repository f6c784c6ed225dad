// expect: tensor_parallel_(kind|handle)
// A model that all ranks have parts of is not run by one of them: its handle is no model_handle.
#include <isotope/worker/job.hpp>
namespace worker = isotope::worker;

worker::model_handle one_rank_of(worker::tensor_parallel_handle h) { return h; }
