/// Event files are read back here by protozero's reader and a checksum computed bit by bit.
#include <isotope/train/tensorboard_writer.hpp>

#include <gtest/gtest.h>
#include <protozero/pbf_reader.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace train = isotope::train;

namespace tensorboard_test {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

/// CRC-32C by its definition: the remainder of the reflected polynomial 0x1EDC6F41, a bit at a time.
std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t c = 0xffffffffU;
  for (const char b : bytes) {
    c ^= std::uint8_t(b);
    for (int k = 0; k < 8; ++k) c = (c >> 1) ^ ((c & 1) != 0 ? 0x82f63b78U : 0);
  }
  return ~c;
}
std::uint32_t masked(std::string_view bytes) {
  const std::uint32_t c = crc32c(bytes);
  return (c >> 15 | c << 17) + 0xa282ead8U;
}
std::uint64_t number(std::string_view bytes) {
  std::uint64_t v = 0;
  for (std::size_t k = bytes.size(); k-- > 0;) v = v << 8 | std::uint8_t(bytes[k]);
  return v;
}

/// The messages of a file; nothing where a length or a checksum is wrong or bytes are left over.
std::optional<std::vector<std::string_view>> messages_of(std::string_view file) {
  std::vector<std::string_view> all;
  while (!file.empty()) {
    if (file.size() < 16 || number(file.substr(8, 4)) != masked(file.substr(0, 8))) return std::nullopt;
    const std::uint64_t bytes = number(file.substr(0, 8));
    if (bytes > file.size() - 16) return std::nullopt;
    all.push_back(file.substr(12, bytes));
    if (number(file.substr(12 + bytes, 4)) != masked(all.back())) return std::nullopt;
    file.remove_prefix(16 + bytes);
  }
  return all;
}

struct read_event {
  double time = 0;
  std::int64_t step = 0;
  std::string version;
  int session = -1;
  std::vector<std::pair<std::string, float>> scalars;
};

/// Reads a record of one event, field by field.
read_event read(std::string_view record) {
  read_event e;
  const auto messages = messages_of(record);
  EXPECT_TRUE(messages && messages->size() == 1);
  if (!messages || messages->size() != 1) return e;
  protozero::pbf_reader event(messages->front().data(), messages->front().size());
  while (event.next()) switch (event.tag()) {
      case 1: e.time = event.get_double(); break;
      case 2: e.step = event.get_int64(); break;
      case 3: e.version = event.get_string(); break;
      case 5: {
        protozero::pbf_reader summary = event.get_message();
        while (summary.next(1)) {
          protozero::pbf_reader value = summary.get_message();
          std::pair<std::string, float> scalar;
          while (value.next()) {
            if (value.tag() == 1) scalar.first = value.get_string();
            else if (value.tag() == 2) scalar.second = value.get_float();
            else ADD_FAILURE() << "field " << value.tag() << " of a value";
          }
          e.scalars.push_back(scalar);
        }
        break;
      }
      case 7: {
        protozero::pbf_reader log = event.get_message();
        EXPECT_TRUE(log.next(1));
        e.session = log.get_enum();
        break;
      }
      default: ADD_FAILURE() << "field " << event.tag() << " of an event"; event.skip();
    }
  return e;
}

TEST(tensorboard, the_checksum_is_crc32c) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U) << "the check value of the polynomial";
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU) << "RFC 3720, B.4";
  for (const std::string& text : {std::string(), std::string("123456789"), std::string(300, '\xff')})
    EXPECT_EQ(train::detail::masked_crc32c(text), masked(text));
}

TEST(tensorboard, a_step_and_an_evaluation_have_their_scalars_in_f32) {
  const read_event step = read(tensorboard_record(train::step_event{7, 100, 2.3, 0.75, 1e-3, 51.25, 15000, false}, 1.7e9 + 0.25));
  EXPECT_EQ(step.time, 1.7e9 + 0.25);
  EXPECT_EQ(step.step, 7);
  EXPECT_EQ(step.scalars, (std::vector<std::pair<std::string, float>>{
                              {"loss/train", 2.3F}, {"step/grad_norm", 0.75F}, {"step/lr", 1e-3F}, {"step/tokens_per_s", 15000.F}}));
  const read_event eval = read(tensorboard_record(train::eval_event{250, 1.9375, true}, 5));
  EXPECT_EQ(eval.step, 250);
  EXPECT_EQ(eval.scalars, (std::vector<std::pair<std::string, float>>{{"loss/validation", 1.9375F}}));
}

TEST(tensorboard, a_file_begins_with_its_version_and_a_resumed_one_says_from_where) {
  const read_event first = read(train::tensorboard_version(12.5));
  EXPECT_EQ(first.version, "brain.Event:2");
  EXPECT_EQ(first.time, 12.5);
  EXPECT_TRUE(first.scalars.empty());
  const read_event again = read(train::tensorboard_restart(10, 13));
  EXPECT_EQ(again.step, 10);
  EXPECT_EQ(again.session, 1) << "SessionLog.START";
}

TEST(tensorboard, numbers_that_are_not_finite_and_steps_beyond_32_bits_are_kept) {
  const std::int64_t late = std::int64_t(1) << 40;
  const read_event e = read(tensorboard_record(train::step_event{late, late, nan, inf, 1e300, 1, -inf, true}, 0));
  EXPECT_EQ(e.step, late);
  ASSERT_EQ(e.scalars.size(), 4U);
  EXPECT_TRUE(std::isnan(e.scalars[0].second));
  EXPECT_EQ(e.scalars[1].second, std::numeric_limits<float>::infinity());
  EXPECT_EQ(e.scalars[2].second, std::numeric_limits<float>::infinity()) << "f32 has no 1e300";
  EXPECT_EQ(e.scalars[3].second, -std::numeric_limits<float>::infinity());
}

TEST(tensorboard, every_changed_or_missing_byte_of_a_record_is_noticed) {
  const std::string record = tensorboard_record(train::eval_event{3, 0.5, false}, 1);
  ASSERT_TRUE(messages_of(record));
  for (std::size_t k = 0; k < record.size(); ++k) {
    std::string changed = record;
    changed[k] = char(changed[k] ^ 0x10);
    EXPECT_FALSE(messages_of(changed)) << k;
  }
  for (std::size_t k = 1; k < record.size(); ++k) EXPECT_FALSE(messages_of(record.substr(0, k))) << k;
  EXPECT_EQ(messages_of(record + record).value_or(std::vector<std::string_view>()).size(), 2U);
}

}  // namespace tensorboard_test
