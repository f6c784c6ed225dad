/// Certificates: what they state about a run, and that they can be read back, also in the first format.
#include "toy.hpp"

#include <isotope/conform/certificate.hpp>

#include "../io/scratch_folder.hpp"

namespace certificate_test {

using namespace toy;
using conform::verdict;

conform::certificate certificate_of(mistake m,
                                    std::vector<const conform::spec*> ops = {conform::find_spec("doubled"), conform::find_spec("twice")}) {
  toy_device d(m);
  conform::silent_progress heard;
  conform::run_options o;
  o.cases = {std::move(ops), iso::dtype::f32, conform::strength::fast, 1, 1};
  conform::certificate c;
  c.tool = "1.2.3";
  c.commit = "0123abc";
  c.build = "GNU 12.2.0, Release, native";
  c.time = "2026-01-01T00:00:00Z";
  c.backend = "toy";
  c.precision = "f32";
  c.kernels = "reference";
  c.device = "toy";
  c.strength = "fast";
  c.ops = "all";
  c.registry = conform::hex_text(conform::registry_hash()).view();
  c.kernel_ops = {"doubled", "twice"};
  auto t = conform::conformance_run(d, std::move(o), heard).run();
  EXPECT_TRUE(t.ok());
  if (t) c.counted = *std::move(t);
  return c;
}
iso::io::json json_in(const std::string& text) {
  auto j = iso::io::parse_json(text, "certificate");
  EXPECT_TRUE(j.ok());
  return j ? *std::move(j) : iso::io::json{};
}
std::int64_t whole_at(const iso::io::json& j, std::initializer_list<const char*> path) {
  const iso::io::json* at = &j;
  for (const char* key : path)
    if (at != nullptr) at = at->find(key);
  std::int64_t n = -1;
  EXPECT_TRUE(conform::read_whole(at, n)) << *path.begin();
  return n;
}

TEST(conform_certificate, says_what_it_was_made_of_and_what_ran_on_each_track) {
  const conform::certificate c = certificate_of(mistake::wrong_element);
  const auto j = json_in(text_of(c));
  EXPECT_EQ(whole_at(j, {"format"}), 2);
  EXPECT_EQ(j.find("commit")->text, "0123abc");
  EXPECT_EQ(j.find("build")->text, "GNU 12.2.0, Release, native");
  EXPECT_EQ(j.find("kernels_digest")->text, "") << "none of the kernels is a shader";
  for (const auto& [track, op] : {std::pair("approximate", "twice"), std::pair("strict", "doubled")}) {
    const conform::op_counts& o = c.counted.ops.at(op);
    EXPECT_GT(o.failed, 0);
    EXPECT_EQ(whole_at(j, {"tracks", track, "ops"}), 1);
    EXPECT_EQ(whole_at(j, {"tracks", track, "passed"}), o.passed);
    EXPECT_EQ(whole_at(j, {"tracks", track, "failed"}), o.failed);
    EXPECT_EQ(j.find("tally")->find("ops")->find(op)->find("track")->text, track);
  }
  const auto* variants = j.find("tally")->find("variants");
  ASSERT_NE(variants->find("elementwise[reference]"), nullptr);
  // The record of a failure names its track and the variants that ran.
  const auto record = json_in(c.counted.failures.begin()->second);
  EXPECT_EQ(record.find("track")->text, "strict");
  ASSERT_EQ(record.find("variants")->items.size(), 1u);
  EXPECT_EQ(record.find("variants")->items[0].text, "elementwise[reference]");
}
TEST(conform_certificate, shaders_have_a_digest_that_changes_with_one_of_them) {
  conform::counts t;
  EXPECT_EQ(conform::kernels_digest(t), "");
  t.variants = {{"sum[native:sum]", "0123456789abcdef"}, {"add[portable:add]", "00000000000000aa"}, {"copy[reference]", ""}};
  const std::string was = conform::kernels_digest(t);
  EXPECT_EQ(was.size(), 64u);
  t.variants["copy[portable]"];
  EXPECT_EQ(conform::kernels_digest(t), was);
  t.variants["sum[native:sum]"] = "0123456789abcdee";
  EXPECT_NE(conform::kernels_digest(t), was);
}
TEST(conform_certificate, comes_back_as_it_was_and_refuses_another_number) {
  iso::scratch_folder folder;
  const conform::certificate c = certificate_of(mistake::wrong_element);
  const std::string text = text_of(c), path = folder.at("c.json");
  ASSERT_TRUE(iso::io::write_file(path, text).ok());
  const auto back = conform::read_certificate(path);
  ASSERT_TRUE(back.ok()) << back.error().line();
  EXPECT_EQ(text_of(*back), text);
  // A changed coverage is refused even if the digest matches the changed contents.
  const auto derived = [&](std::string_view runs) {
    auto facts = facts_in(c).str();
    const std::string is = "\"runs\":1";
    facts.replace(facts.find(is), is.size(), "\"runs\":" + std::string(runs));
    conform::json_object o;
    for (const auto& m : json_in(facts).members) o.set(m.key, conform::canonical(m.value));
    return o.text("digest", conform::sha256::of(facts)).text("time", c.time).str() + "\n";
  };
  ASSERT_TRUE(iso::io::write_file(path, derived("1")).ok());
  EXPECT_TRUE(conform::read_certificate(path).ok());
  ASSERT_TRUE(iso::io::write_file(path, derived("0.5")).ok());
  EXPECT_EQ(conform::read_certificate(path).error().code, iso::errc::corrupt);
  for (const auto& [from, to] : {std::pair("\"skipped\":0", "\"skipped\":1"), std::pair("0123abc", "0123abd"),
                                 std::pair("\"runs\":1", "\"runs\":0.5"), std::pair("\"digest\":\"", "\"digest\":\"0")}) {
    std::string other = text;
    other.replace(other.find(from), std::string_view(from).size(), to);
    ASSERT_TRUE(iso::io::write_file(path, other).ok());
    EXPECT_FALSE(conform::read_certificate(path).ok()) << to;
  }
  std::string later = text;
  later.replace(later.find("\"format\":2"), 10, "\"format\":3");
  ASSERT_TRUE(iso::io::write_file(path, later).ok());
  EXPECT_EQ(conform::read_certificate(path).error().code, iso::errc::version_mismatch);
}
/// A certificate of format 1, with the 54 ops of that time.
constexpr std::string_view first_format =
    R"json({"arithmetic":{"rounding":"to nearest, ties to even","subnormal numbers":"kept","ulps of exp":"0.9","ulps of gelu_erf":"2.2","ulps of gelu_tanh":"1.8","ulps of log":"0.6","ulps of sigmoid":"1.5","ulps of silu":"2.2","ulps of sqrt":"0.5","ulps of tanh":"2.0"},"counts":{"cases":163,"failed":0,"passed":163,"unsupported":0},"coverage":{"gradients":0.046511627906976744,"kernels":0.140625,"launches":1,"least":0.037037037037037035,"ops":0.037037037037037035,"runs":1},"device":{"backend":"cpu","driver":"","kind":"cpu","name":"cpu"},"digest":"851053413389c21943040d629f42110a834c047f40cc02415a3696e57b11856b","fingerprint":"5b961b81c327b5fb","format":1,"kernel_ops":["accumulate","adamw","add","argmax","attention","attention_grad","cast","categorical","clip_norm","clip_value","concat","copy","cross_entropy","cross_entropy_grad","div","dropout","elementwise","embedding","embedding_grad","equal","exp","fft","fill","gelu_erf","gelu_erf_grad","gelu_tanh","gelu_tanh_grad","global_norm","irfft","layer_norm","layer_norm_grad","less","log","log_softmax","log_softmax_grad","matmul","max","mean","min","mul","pad","relu","relu_grad","rfft","rms_norm","rms_norm_grad","rope","scale","select","sgd","shift","sigmoid","sigmoid_grad","silu","silu_grad","softmax","softmax_grad","sqrt","sqrt_grad","square","sub","sum","tanh","tanh_grad"],"kernels":"native","launch_size":"own","ops":"exp,matmul","precision":"f32","registry":"1280bcd823597e71","seed":"0000000000000001","shard":{"count":1,"index":0},"strength":"fast","tally":{"failures":[],"launches":{},"ops":{"exp":{"failed":0,"forward":19,"gradient":16,"law":6,"passed":41,"refusal":0,"track":"approximate","unsupported":0,"version":1},"matmul":{"failed":0,"forward":59,"gradient":46,"law":14,"passed":122,"refusal":3,"track":"approximate","unsupported":0,"version":1}},"reached":["add","copy","elementwise","exp","fill","matmul","mul","scale","sum"],"regressions":{},"tiers":[],"unsupported":{}},"time":"2026-11-23T17:20:59Z","tool":"0.1.0"})json";
TEST(conform_certificate, one_of_the_first_format_is_read_and_guarded_by_its_digest) {
  iso::scratch_folder folder;
  const std::string path = folder.at("old.json");
  ASSERT_TRUE(iso::io::write_file(path, std::string(first_format) + "\n").ok());
  const auto old = conform::read_certificate(path);
  ASSERT_TRUE(old.ok()) << old.error().line();
  EXPECT_EQ(old->counted.total().passed, 163);
  EXPECT_EQ(old->counted.total().skipped, 0);
  EXPECT_EQ(old->counted.ops.at("exp").on, "approximate");
  EXPECT_EQ(old->commit, "");
  EXPECT_FALSE(old->is_current());
  EXPECT_EQ(conform::merge({&*old, 1}).error().code, iso::errc::version_mismatch);
  std::string other(first_format);
  other.replace(other.find("\"passed\":163"), 12, "\"passed\":164");
  ASSERT_TRUE(iso::io::write_file(path, other + "\n").ok());
  EXPECT_EQ(conform::read_certificate(path).error().code, iso::errc::corrupt);
}
TEST(conform_certificate, an_op_of_which_too_few_cases_ran_is_named) {
  const conform::spec *doubled = conform::find_spec("doubled"), *twice = conform::find_spec("twice");
  const conform::spec* both[] = {doubled, twice};
  const conform::certificate c = certificate_of(mistake::none);
  EXPECT_TRUE(too_little(c.counted, both).empty());
  const auto none = too_little(certificate_of(mistake::none, {twice}).counted, both);
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(none[0], "too little coverage: 0 cases of doubled ran, its specification asks for 10");
  conform::counts few;
  conform::op_counts& o = few.ops["twice"];
  o.passed = 8, o.failed = 1, o.skipped = 100, o.unsupported = 100;
  few.ops["doubled"].passed = 10;
  ASSERT_EQ(too_little(few, both).size(), 1u) << "skipped and unsupported cases did not run";
  EXPECT_NE(too_little(few, both)[0].find("9 cases of twice"), std::string::npos);
  o.failed = 2;
  EXPECT_TRUE(too_little(few, both).empty());
}
TEST(conform_certificate, coverage_is_the_least_of_its_shares_and_counts_what_was_skipped) {
  conform::certificate c = certificate_of(mistake::none);
  const conform::coverage whole = coverage_of(c.counted, c.kernel_ops);
  EXPECT_EQ(whole.runs, 1);
  conform::op_counts& o = c.counted.ops.at("twice");
  o.skipped = c.counted.total().cases();
  const conform::coverage half = coverage_of(c.counted, c.kernel_ops);
  EXPECT_EQ(half.runs, 0.5);
  EXPECT_LE(half.least(), 0.5);
}

}  // namespace certificate_test
