#pragma once
/// A request that is being answered: what the thread of the model passes to the thread of the sockets.
#include <isotope/serve/completion_answer.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace serve_program {

/// Used on the thread of the sockets alone.
struct exchange {
  explicit exchange(boost::asio::io_context& on) : changed(on) { changed.expires_at(boost::asio::steady_timer::time_point::max()); }

  boost::asio::steady_timer changed;  // never ends; whoever waits for it is woken when something else here changes
  std::optional<isotope::serve::api_reply> whole;
  std::string events;  // that are not sent yet
  bool streams = false, last = false;
  bool gone = false;  // the client has closed the connection
  bool over = false;  // answered: the socket may belong to another exchange

  bool ready() const { return whole || !events.empty() || last || gone; }
};

/// Where the model leaves its answer, on any thread.
inline isotope::serve::answer_to answers(boost::asio::io_context& on, const std::shared_ptr<exchange>& x) {
  return {.whole =
              [&on, x](isotope::serve::api_reply r) {
                boost::asio::post(on, [x, r = std::move(r)]() mutable {
                  x->whole = std::move(r);
                  x->changed.cancel();
                });
              },
          .part =
              [&on, x](std::string events, bool last) {
                boost::asio::post(on, [x, events = std::move(events), last] {
                  x->streams = true;
                  x->events += events;
                  x->last = last;
                  x->changed.cancel();
                });
              }};
}

}  // namespace serve_program
