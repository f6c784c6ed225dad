// labels: threads
// Models behind a queue: answers of many clients are those of each alone, cancelled texts end, a full queue refuses, and closing finishes what was accepted.
#include <isotope/io/byte_pair_train.hpp>
#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>
#include <isotope/serve/api.hpp>
#include <isotope/serve/text_service.hpp>

#include "../device_there.hpp"
#include "../io/scratch_folder.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace service_test {

namespace iso = isotope;
using namespace isotope::serve;
using target = iso::target<iso::selected_backend, iso::precision::f32, iso::selected::kernel_set>;

template <class T> T must(iso::result<T> r) {
  if (!r) throw std::runtime_error(r.error().line());
  return *std::move(r);
}

/// A served model of random weights, with as many slots and as much room as given.
struct served : iso::scratch_folder {
  metrics counts;
  std::unique_ptr<service> model;
  std::unique_ptr<api> answers;

  iso::worker::planned_faults faults;

  explicit served(int slots, std::size_t room, std::vector<std::string> keys = {}, const iso::worker::worker_options& o = {}) {
    const auto device = must(isotope_test::there(iso::device<target>::open()));
    const auto tokens = must(iso::io::train_byte_pair("to be, or not to be: that is the question", {.size = 262, .least = 1}));
    const iso::model::gpt size{.layers = 1, .heads = 2, .width = 16, .vocab = int(tokens.tokens.size()) + 1, .context = 64};
    auto session = must(device.load(must(iso::plan_training<target>(iso::model::gpt_loss_of{size, 1, 4}))));
    session.initialize(3);
    const std::string path = at("model");
    EXPECT_TRUE(iso::interop::save_gpt2(path, session, size).ok());
    put("model/tokenizer.json", iso::io::tokenizer_json(tokens, {"<|endoftext|>"}));
    const auto open = [path, slots](const iso::device<target>& on) -> iso::result<iso::text_generator<target>> {
      auto folder = iso::io::open_model(path);
      if (!folder) return std::move(folder).error();
      return iso::text_generator<target>::open(on, *folder, {.slots = slots, .tokens_per_submit = 2, .prefill_tokens = {8}});
    };
    model = must(text_service<target>::start(open, path, room, counts, o, faults));
    answers = std::make_unique<api>(*model, counts, api_options{.model = "tiny", .keys = std::move(keys), .seed = 1});
  }
};

/// An answer that has come, or will.
struct answer {
  std::promise<std::pair<int, std::string>> promise;
  std::future<std::pair<int, std::string>> future = promise.get_future();
  std::string events;

  answer_to to() {
    return {.whole = [this](api_reply r) { promise.set_value({r.status, std::move(r.body)}); },
            .part =
                [this](std::string more, bool last) {
                  events += more;
                  if (last) promise.set_value({200, events});
                }};
  }
};
cancel_flag post(served& s, std::string_view path, std::string_view body, answer& a, std::string_view key = {}) {
  return s.answers->handle({.method = "POST", .path = path, .authorization = key, .body = body}, a.to());
}
std::pair<int, std::string> posted(served& s, std::string_view path, std::string_view body, std::string_view key = {}) {
  answer a;
  post(s, path, body, a, key);
  return a.future.get();
}
std::string body_of(std::size_t k, bool stream) {
  return "{\"prompt\": \"to be" + std::string(k % 3, 'q') + "\", \"max_tokens\": " + std::to_string(5 + 11 * k % 40) +
         ", \"ignore_eos\": true, \"seed\": " + std::to_string(k) + (stream ? ", \"stream\": true}" : "}");
}
/// The text of an answer: of a stream, its pieces one after the other.
std::string text_of(const std::string& answer) {
  std::string all;
  for (std::size_t at = 0; (at = answer.find("\"text\":\"", at)) != answer.npos;) {
    at += 8;
    std::size_t end = at;
    while (answer[end] != '"') end += answer[end] == '\\' ? 2 : 1;
    all += answer.substr(at, end - at);
  }
  return all;
}

TEST(text_service, gives_each_client_what_it_would_get_alone) {
  constexpr std::size_t clients = 24;
  served s(3, clients);
  std::vector<std::string> alone;
  for (std::size_t k = 0; k < clients; ++k) {
    const auto [status, body] = posted(s, "/v1/completions", body_of(k, false));
    ASSERT_EQ(status, 200) << body;
    alone.push_back(text_of(body));
  }
  std::vector<answer> all(clients);
  for (std::size_t k = 0; k < clients; ++k) post(s, "/v1/completions", body_of(k, k % 2 == 0), all[k]);
  for (std::size_t k = 0; k < clients; ++k) {
    const auto [status, body] = all[k].future.get();
    EXPECT_EQ(status, 200) << body;
    EXPECT_EQ(text_of(body), alone[k]) << k;
  }
  s.answers->close();
  s.model->join();
  EXPECT_EQ(s.counts.running, 0);
  EXPECT_EQ(s.counts.waiting, 0);
}
TEST(text_service, refuses_what_the_queue_has_no_room_for_and_frees_cancelled_slots) {
  served s(1, 2);
  constexpr std::string_view long_one = R"({"prompt": "to be", "max_tokens": 60, "ignore_eos": true, "seed": 1})";
  std::vector<answer> all(40);
  std::vector<cancel_flag> flags;
  for (answer& a : all) flags.push_back(post(s, "/v1/completions", long_one, a));
  for (std::size_t k = 0; k < 3; ++k) *flags[k] = true;
  std::size_t refused = 0;
  for (answer& a : all)
    if (a.future.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
      const auto [status, body] = a.future.get();
      refused += status == 503 ? 1 : 0;
      if (status == 503) { EXPECT_NE(body.find("has room for 2 and is full; fix: "), std::string::npos) << body; }
    }
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(s.counts.refused, std::int64_t(refused));
  s.answers->close();  // what was accepted is finished, or was cancelled
  s.model->join();
  EXPECT_GT(s.counts.cancelled + s.counts.generated_tokens, 0);
  const auto [status, body] = posted(s, "/v1/completions", long_one);
  EXPECT_EQ(status, 503);
  EXPECT_NE(body.find("the server is stopping; fix: "), std::string::npos) << body;
}
TEST(text_service, closes_while_others_submit) {
  served s(2, 1000);
  std::vector<answer> all(200);
  std::thread closes([&] { s.model->close(); });
  for (std::size_t k = 0; k < all.size(); ++k) post(s, "/v1/completions", body_of(k % 4, false), all[k]);
  closes.join();
  s.model->join();
  for (answer& a : all) {
    const int status = a.future.get().first;
    EXPECT_TRUE(status == 200 || status == 503) << status;
  }
}
TEST(text_service, says_why_a_model_does_not_open) {
  metrics counts;
  const auto open = [](const iso::device<target>&) -> iso::result<iso::text_generator<target>> {
    return iso::fail(iso::errc::not_found, "is not there", "the model", "fetch it");
  };
  const auto r = text_service<target>::start(open, "nowhere", 1, counts);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().line(), "the model: is not there (fix: fetch it)");
}
TEST(api, answers_errors_as_openai_does) {
  served s(1, 4, {"secret", "other"});
  const auto get = [&](std::string_view method, std::string_view path, std::string_view key) {
    answer a;
    s.answers->handle({.method = method, .path = path, .authorization = key, .body = "{}"}, a.to());
    return a.future.get();
  };
  EXPECT_EQ(get("GET", "/health", "").first, 200);
  EXPECT_EQ(get("GET", "/v1/models", "").first, 401);
  EXPECT_EQ(get("GET", "/v1/models", "Bearer secrex").first, 401);
  EXPECT_EQ(get("GET", "/v1/models", "Bearer secret").first, 200);
  EXPECT_EQ(get("GET", "/v1/models/tiny", "Bearer other").first, 200);
  EXPECT_EQ(get("GET", "/v1/models/big", "Bearer other").first, 404);
  EXPECT_EQ(get("GET", "/metrics", "Bearer other").first, 200);
  EXPECT_EQ(get("POST", "/v1/models", "Bearer secret").first, 405);
  EXPECT_EQ(get("GET", "/v3", "Bearer secret").first, 404);
  const auto chat = posted(s, "/v1/chat/completions", R"({"messages": [{"role": "user", "content": "a"}]})", "Bearer secret");
  EXPECT_EQ(chat.first, 400);
  EXPECT_NE(chat.second.find("the model has no chat template; fix: "), std::string::npos) << chat.second;
  const auto longer = posted(s, "/v1/completions", R"({"prompt": "xxxxxxxxxx", "max_tokens": 55})", "Bearer secret");
  EXPECT_EQ(longer.first, 400);
  EXPECT_NE(longer.second.find("has 10 tokens, and with max_tokens 55 that is more than the context of 64"), std::string::npos)
      << longer.second;
  EXPECT_EQ(posted(s, "/v1/completions", R"({"prompt": ["a", "b", "c", "d", "e"]})", "Bearer secret").first, 400);
}
TEST(text_service, answers_503_with_the_first_cause_after_its_device_has_failed) {
  served s(1, 8);
  EXPECT_EQ(posted(s, "/v1/completions", body_of(0, false)).first, 200);
  s.faults.strike("decode", iso::worker::fault::device_lost);
  std::vector<answer> all(5);  // whatever has a slot, waits or comes
  for (std::size_t k = 0; k < all.size(); ++k) post(s, "/v1/completions", body_of(k, k % 2 == 0), all[k]);
  for (answer& a : all) {
    const auto [status, body] = a.future.get();
    EXPECT_EQ(status, 503) << body;
    EXPECT_NE(body.find("the device was lost (injected); fix: "), std::string::npos) << body;
    EXPECT_NE(body.find("\"code\":\"device_failed\""), std::string::npos) << body;
  }
  answer later, health;
  post(s, "/v1/completions", body_of(0, false), later);
  ASSERT_EQ(later.future.wait_for(std::chrono::seconds(0)), std::future_status::ready) << "before the call returns";
  EXPECT_EQ(later.future.get().first, 503);
  s.answers->handle({.method = "GET", .path = "/health", .authorization = {}, .body = {}}, health.to());
  const auto [status, body] = health.future.get();
  EXPECT_EQ(status, 503);
  EXPECT_NE(body.find("the device was lost (injected)"), std::string::npos) << body;
  EXPECT_EQ(s.counts.running + s.counts.waiting, 0);
}
TEST(text_service, answers_503_while_its_device_hangs) {
  iso::worker::worker_options o;
  o.watch = {.step_timeout_seconds = 0.02, .abort_deadline_seconds = 1e6, .on_hung = {}};
  served s(1, 8, {}, o);
  s.faults.strike("decode", iso::worker::fault::hung);  // the first job whose time is limited
  std::vector<answer> all(3);
  for (answer& a : all) post(s, "/v1/completions", body_of(0, true), a);
  s.faults.await_hung();
  for (answer& a : all) {
    const auto [status, body] = a.future.get();
    EXPECT_EQ(status, 503) << body;
    EXPECT_NE(body.find("decode took longer than 0.02 s"), std::string::npos) << body;
  }
  s.faults.release();
}
TEST(bounded_queue, takes_all_entries_or_none_and_none_after_it_is_closed) {
  iso::worker::bounded_queue<int> q(3);
  const auto push = [&](std::vector<int> all) { return q.push(all); };
  const auto pop = [&] { return q.pop_if([](int) { return true; }); };
  EXPECT_EQ(push({1, 2}), accepted::yes);
  EXPECT_EQ(push({3, 4}), accepted::full);
  EXPECT_EQ(q.size(), 2u);
  EXPECT_EQ(q.pop_if([](int x) { return x == 2; }), std::nullopt);
  EXPECT_EQ(q.pop(), 1);
  EXPECT_EQ(push({5}), accepted::yes);
  q.close();
  EXPECT_EQ(push({6}), accepted::closed);
  EXPECT_EQ(pop(), 2);
  EXPECT_EQ(pop(), 5);
  EXPECT_EQ(pop(), std::nullopt);
  q.push_anyway(7);
  EXPECT_EQ(q.close_and_take(), std::deque<int>{7});
}

}  // namespace service_test
