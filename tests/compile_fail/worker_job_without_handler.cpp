// expect: a device worker has a job without a handler: write result<job::reply> handle
// note: isotope::worker::clear_states
// The handler of clear_states is missing here: the set of jobs is closed, and every host answers all of them.
#include <isotope/worker/job.hpp>
namespace worker = isotope::worker;
using isotope::result;

struct host {
  result<isotope::device_memory> handle(worker::query_memory&);
  result<worker::loaded> handle(worker::load&);
  result<void> handle(worker::drop&);
  result<void> handle(worker::write&);
  result<std::vector<worker::tensor_values>> handle(worker::read&);
  result<isotope::step_report> handle(worker::step&);
  result<double> handle(worker::evaluate&);
  result<std::vector<worker::named_numbers>> handle(worker::decode&);
  result<worker::communicator_handle> handle(worker::join_communicator&);
  result<group_report> handle(worker::check_communicator&);
  result<void> handle(worker::shut_down&);
};
template class worker::every_job<host>;
