#pragma once
/// The settings of isotope-serve.
#include "../support/diagnose_settings.hpp"
#include "../support/machine_settings.hpp"

#include <isotope/config/flags.hpp>
#include <isotope/config/reflect.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace serve_program {

inline constexpr std::string_view program = "isotope-serve";
inline const std::vector<std::string> switches = {"version", "help"};

struct settings {
  std::string model;
  std::string served_name;
  std::string host = "127.0.0.1";
  std::int32_t port = 8080;
  std::int32_t slots = 8;
  std::int32_t queue = 256;
  std::int32_t tokens_per_submit = 0;
  std::int32_t batch_tokens = 16384;
  std::string api_key_file;
  std::int32_t connections = 1024;
  std::int64_t header_bytes = 16 << 10;
  std::int64_t body_bytes = 8 << 20;
  std::int32_t header_seconds = 10;
  std::int32_t body_seconds = 60;
  std::int32_t idle_seconds = 75;
  std::int32_t write_seconds = 30;
  std::int32_t stop_seconds = 30;
  bool log_requests = false;
  support::machine_settings machine;
  support::diagnose_settings diagnose;
};

inline isotope::config::help_words words_of_help() {
  isotope::config::help_words words;
  words.program = program;
  words.opening =
      "Serves a model of Hugging Face over HTTP, with the interface of OpenAI: texts of a decoder, or vectors of an embedding model.";
  words.closing =
      "exit codes: 0 stopped by SIGTERM or SIGINT after all answers, 1 failed while running, 2 bad usage or folder, 130 answers were cut "
      "off";
  words.meanings = {{"model", "a folder of Hugging Face with config.json, model.safetensors and a tokenizer"},
                    {"served_name", "what clients call the model; default: the name of the folder"},
                    {"host", "the address to listen on; others than 127.0.0.1 and ::1 let other machines in"},
                    {"port", "the port to listen on; 0: any free one, which is printed"},
                    {"slots", "how many texts are continued at once, each with a cache of the whole context"},
                    {"queue", "how many texts, or requests for vectors, wait at most; further ones are answered 503"},
                    {"tokens_per_submit", "drawn for each text between two looks at the queue; 0: 1 on a processor, 8 on a gpu"},
                    {"batch_tokens", "requests for vectors that wait together are embedded together up to so many tokens"},
                    {"api_key_file", "a file with a key on each line, one of which every request must bring; without: anybody may ask"},
                    {"connections", "open connections at most; further ones are answered 503"},
                    {"header_bytes", "of a request's header at most"},
                    {"body_bytes", "of a request's body at most"},
                    {"header_seconds", "for a client to send a request's header"},
                    {"body_seconds", "for a client to send a request's body"},
                    {"idle_seconds", "between two requests of a connection"},
                    {"write_seconds", "for a client to take an answer, or what there is of a stream"},
                    {"stop_seconds", "for answers that run when SIGTERM comes"},
                    {"log_requests", "a line on stderr for each answer: method, path, status, time; never a key or a text"},
                    {"version", "what the program was built from"},
                    {"help", "this text"}};
  words.meanings.insert(support::machine_meanings().begin(), support::machine_meanings().end());
  words.meanings.insert(support::diagnose_meanings().begin(), support::diagnose_meanings().end());
  return words;
}

}  // namespace serve_program

BOOST_HANA_ADAPT_STRUCT(serve_program::settings, model, served_name, host, port, slots, queue, tokens_per_submit, batch_tokens,
                        api_key_file, connections, header_bytes, body_bytes, header_seconds, body_seconds, idle_seconds, write_seconds,
                        stop_seconds, log_requests, machine, diagnose);
