// A program that reads files with the library, for which it links isotope::io.
#include <isotope/io/json.hpp>
#include <isotope/io/utf8.hpp>

int main() {
  const auto root = isotope::io::parse_json(R"({"a": 1})", "text");
  return root && root->find("a")->text == "1" && isotope::io::decode_utf8("a", 0).bytes == 1 ? 0 : 1;
}
