#pragma once
/// Writes events as records of TensorBoard's event files: protobuf messages of the type tensorflow.Event, framed as in a TFRecord file.
///
/// A file is tensorboard_version, of a resumed run tensorboard_restart, and then a record for each event, in the order of time.
/// Sources: event.proto and summary.proto of TensorBoard 2.21 (tensorboard/compat/proto); https://www.tensorflow.org/tutorials/load_data/tfrecord.
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <boost/crc.hpp>
#include <protozero/pbf_writer.hpp>

#include <isotope/train/event.hpp>

namespace isotope::train {

/// The numbers of the fields that are written. Event.step counts the steps that have ended.
namespace tensorboard_field {
enum event : std::uint32_t { wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7 };
inline constexpr std::uint32_t summary_value = 1, value_tag = 1, value_simple = 2, session_log_status = 1;
inline constexpr int status_start = 1;
}  // namespace tensorboard_field

namespace detail {

/// ((c >> 15) | (c << 17)) + 0xa282ead8 (mod 2^32) for the CRC-32C c of the bytes: the checksum of TFRecord.
inline std::uint32_t masked_crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const std::uint32_t c = crc.checksum();
  return ((c >> 15) | (c << 17)) + 0xa282ead8U;
}
inline void add_little_endian(std::string& r, std::uint64_t v, int bytes) {
  for (int k = 0; k < bytes; ++k) r += char(v >> (8 * k) & 0xff);
}
/// Returns [length: 8 bytes] [checksum of the length: 4] [the message] [its checksum: 4].
inline std::string framed(std::string_view message) {
  std::string r;
  add_little_endian(r, message.size(), 8);
  add_little_endian(r, masked_crc32c(r), 4);
  r += message;
  add_little_endian(r, masked_crc32c(message), 4);
  return r;
}
inline std::string timed_event(double unix_seconds, std::int64_t step, tensorboard_field::event what, std::string_view content) {
  std::string message;
  protozero::pbf_writer event(message);
  event.add_double(tensorboard_field::wall_time, unix_seconds);
  event.add_int64(tensorboard_field::step, step);
  event.add_bytes(what, content.data(), content.size());
  return framed(message);
}
struct tensorboard_scalar {
  std::string_view tag;
  double value = 0;
};
/// Values are stored in f32; a larger one is infinite.
inline std::string scalars_event(double unix_seconds, std::int64_t step, std::initializer_list<tensorboard_scalar> scalars) {
  std::string all, one;
  protozero::pbf_writer summary(all);
  for (const tensorboard_scalar& s : scalars) {
    one.clear();
    protozero::pbf_writer value(one);
    value.add_string(tensorboard_field::value_tag, s.tag.data(), s.tag.size());
    value.add_float(tensorboard_field::value_simple, float(s.value));
    summary.add_message(tensorboard_field::summary_value, one);
  }
  return timed_event(unix_seconds, step, tensorboard_field::summary, all);
}

}  // namespace detail

/// The first record of a file: the version of the format. @param unix_seconds  the time, since 1970
inline std::string tensorboard_version(double unix_seconds) {
  return detail::timed_event(unix_seconds, 0, tensorboard_field::file_version, "brain.Event:2");
}

/// The second record of a resumed run: TensorBoard forgets what earlier files of the folder have of this step and later ones, which a run that was killed may
/// have made after its last checkpoint.
/// @param step  the first that is made again
inline std::string tensorboard_restart(std::int64_t step, double unix_seconds) {
  std::string log;
  protozero::pbf_writer(log).add_enum(tensorboard_field::session_log_status, tensorboard_field::status_start);
  return detail::timed_event(unix_seconds, step, tensorboard_field::session_log, log);
}

/// `loss/train`, `step/grad_norm`, `step/lr` and `step/tokens_per_s` of a step. What is not finite is stored as it is.
inline std::string tensorboard_record(const step_event& e, double unix_seconds) {
  return detail::scalars_event(
      unix_seconds, e.step,
      {{"loss/train", e.loss}, {"step/grad_norm", e.grad_norm}, {"step/lr", e.learning_rate}, {"step/tokens_per_s", e.tokens_per_s}});
}

/// `loss/validation` of an evaluation.
inline std::string tensorboard_record(const eval_event& e, double unix_seconds) {
  return detail::scalars_event(unix_seconds, e.step, {{"loss/validation", e.val_loss}});
}

}  // namespace isotope::train
