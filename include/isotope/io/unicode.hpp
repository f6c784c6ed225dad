#pragma once
/// What tokenizers need of Unicode: UTF-8, categories, lower case, and the normal forms NFD and NFC. The data are tables in headers, so nothing
/// is linked. They are those of the tokenizers of reference where these differ from Unicode 15 (unicode_reference.hpp).
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/io/unicode_decompositions.hpp>
#include <isotope/io/unicode_reference.hpp>
#include <isotope/io/unicode_tables.hpp>

namespace isotope::io::unicode {

/// Bits of a code point's class.
enum code_class : std::uint8_t {
  letter = 1,        // categories L*
  number = 2,        // N*
  space = 4,         // White_Space
  punctuation = 8,   // P*
  control = 16,      // Cc, Cf, Co
  mark = 32,         // Mn
  ideograph = 64,    // the blocks of CJK ideographs between which BERT puts spaces
  may_change = 128,  // is changed by NFC, or may be together with its neighbours
};

/// A code point and the bytes it took; no bytes if the text is not UTF-8 there.
struct point {
  std::uint32_t code = 0;
  std::uint32_t bytes = 0;
};

/// Decodes the code point at `at` (at < end), strictly: no overlong forms, surrogates or values past U+10FFFF.
inline point decode(const char* at, const char* end) {
  const auto byte = [&](int i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(at[i])); };
  const auto follows = [&](int i) { return (byte(i) & 0xc0) == 0x80; };
  const std::uint32_t first = byte(0);
  const auto left = end - at;
  if (first < 0x80) return {first, 1};
  if (first < 0xc2 || first > 0xf4) return {};
  if (first < 0xe0) {
    if (left < 2 || !follows(1)) return {};
    return {(first & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  }
  if (first < 0xf0) {
    if (left < 3 || !follows(1) || !follows(2)) return {};
    const std::uint32_t code = (first & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    if (code < 0x800 || (code >= 0xd800 && code < 0xe000)) return {};
    return {code, 3};
  }
  if (left < 4 || !follows(1) || !follows(2) || !follows(3)) return {};
  const std::uint32_t code = (first & 7) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
  if (code < 0x10000 || code > 0x10ffff) return {};
  return {code, 4};
}

/// Appends a code point (at most U+10FFFF, not a surrogate) as UTF-8.
inline void append(std::string& out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t b) { out += static_cast<char>(b); };
  const auto tail = [&](int shift) { byte(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) return byte(0xc0 | code >> 6), tail(0);
  if (code < 0x10000) return byte(0xe0 | code >> 12), tail(6), tail(0);
  byte(0xf0 | code >> 18), tail(12), tail(6), tail(0);
}

namespace detail {

constexpr bool among(const auto& ranges, std::uint32_t code) {
  const auto after =
      std::upper_bound(std::begin(ranges), std::end(ranges), code, [](std::uint32_t c, const auto& r) { return c < r.first; });
  return after != std::begin(ranges) && code <= std::prev(after)->last;
}

/// The low 8 bits of the element of a table of runs that holds for a code point.
constexpr std::uint8_t run_of(const auto& runs, std::uint32_t code) {
  const auto after = std::upper_bound(std::begin(runs), std::end(runs), code << 8 | 255);
  return after == std::begin(runs) ? std::uint8_t{0} : static_cast<std::uint8_t>(*std::prev(after) & 255);
}

constexpr std::uint32_t hangul = 0xac00, leads = 0x1100, vowels = 0x1161,
                        tails = 0x11a7;  // the first syllable, and the first jamo of each kind

/// What remains of `lower` for a table of runs, 0 if the code point is in none of them.
constexpr std::uint32_t lower_in(const auto& runs, std::uint32_t code) {
  const auto after = std::upper_bound(std::begin(runs), std::end(runs), code, [](std::uint32_t c, const auto& r) { return c < r.first; });
  if (after == std::begin(runs)) return 0;
  const table::lower_run& r = *std::prev(after);
  if (code > r.last || (code - r.first) % r.step != 0) return 0;
  return code + static_cast<std::uint32_t>(r.delta);
}

template <class Row> constexpr const Row* row_of(const Row* first, const Row* last, std::uint32_t code) {
  const Row* row = std::lower_bound(first, last, code, [](const Row& r, std::uint32_t c) { return (r.code & ~table::apart) < c; });
  return row != last && (row->code & ~table::apart) == code ? row : nullptr;
}

}  // namespace detail

/// The canonical combining class, 0 for most code points.
constexpr std::uint8_t combining_class(std::uint32_t code) {
  if (code < 0x300 || detail::among(reference::unordered, code)) return 0;
  return detail::run_of(table::combining_classes, code);
}

/// The lower case of a code point that has one of one code point; others are returned as they are.
constexpr std::uint32_t lower(std::uint32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
  if (const std::uint32_t known = detail::lower_in(table::lower, code); known != 0) return known;
  const std::uint32_t later = detail::lower_in(reference::lower, code);
  return later != 0 ? later : code;
}

/// Calls `take(code)` with each code point of the full canonical decomposition.
template <class Take> constexpr void decompose(std::uint32_t code, Take&& take) {
  using namespace detail;
  if (code < 0xc0 || code == reference::whole) return take(code);
  if (code >= hangul && code < hangul + 11172) {
    const std::uint32_t i = code - hangul;
    take(leads + i / 588), take(vowels + i % 588 / 28);
    if (i % 28 != 0) take(tails + i % 28);
  } else if (const auto* p = row_of(std::begin(table::pairs), std::end(table::pairs), code); p != nullptr) {
    decompose(p->first, take), decompose(p->second, take);
  } else if (const auto* s = row_of(std::begin(table::singles), std::end(table::singles), code); s != nullptr) {
    decompose(s->whole, take);
  } else {
    take(code);
  }
}

/// Classes of all code points and the pairs that NFC composes, expanded from the tables when first used.
class data {
 public:
  static const data& get() {
    static const data d;
    return d;
  }

  std::uint8_t operator[](std::uint32_t code) const {
    return code < classes_.size() ? classes_[code] : detail::run_of(table::classes, code);
  }

  /// The code point that NFC makes of two, or 0.
  std::uint32_t compose(std::uint32_t first, std::uint32_t second) const {
    using namespace detail;
    if (first - leads < 19 && second - vowels < 21) return hangul + ((first - leads) * 21 + second - vowels) * 28;
    if (first - hangul < 11172 && (first - hangul) % 28 == 0 && second - tails - 1 < 27) return first + second - tails;
    const std::uint64_t key = std::uint64_t{first} << 32 | second;
    const auto at = std::lower_bound(pairs_.begin(), pairs_.end(), key, [](const auto& p, std::uint64_t k) { return p.first < k; });
    return at != pairs_.end() && at->first == key ? at->second : 0;
  }

 private:
  data() : classes_(0x32400) {
    fill();
    const auto toggle = [&](const auto& ranges, std::uint8_t bit) {
      for (const auto& [first, last] : ranges)
        for (std::uint32_t c = first; c <= last; ++c) classes_[c] ^= bit;
    };
    toggle(reference::letters, letter), toggle(reference::numbers, number), toggle(reference::punctuation, punctuation);
    toggle(reference::controls, control), toggle(reference::marks, mark);
    constexpr reference::range ideographs[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},  {0x20000, 0x2a6df},
                                               {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    toggle(ideographs, ideograph);
    const auto changes = [&](std::uint32_t code) { classes_[code] |= may_change; };
    for (const auto& s : table::singles) changes(s.code);
    for (const auto& p : table::pairs) {
      const std::uint32_t code = p.code & ~table::apart;
      if (code == reference::whole) continue;
      changes(p.second);
      if (code != p.code) changes(code);
      else pairs_.push_back({std::uint64_t{p.first} << 32 | p.second, code});
    }
    std::sort(pairs_.begin(), pairs_.end());
    for (std::uint32_t c = 0; c < 21; ++c) changes(detail::vowels + c);
    for (std::uint32_t c = 1; c < 28; ++c) changes(detail::tails + c);
    for (std::size_t i = 0; i + 1 < std::size(table::combining_classes); ++i)
      if ((table::combining_classes[i] & 255) != 0)
        for (std::uint32_t c = table::combining_classes[i] >> 8; c < table::combining_classes[i + 1] >> 8; ++c) changes(c);
  }
  void fill() {
    for (std::size_t i = 0; i < std::size(table::classes); ++i) {
      const std::size_t first = table::classes[i] >> 8;
      const std::size_t next = i + 1 < std::size(table::classes) ? table::classes[i + 1] >> 8 : classes_.size();
      for (std::size_t c = first; c < std::min(next, classes_.size()); ++c) classes_[c] = static_cast<std::uint8_t>(table::classes[i]);
    }
  }

  std::vector<std::uint8_t> classes_;                           // beyond them are only controls, marks and nothing
  std::vector<std::pair<std::uint64_t, std::uint32_t>> pairs_;  // (first << 32 | second, what they make), in ascending order
};

/// A code point of a normal form and the bytes of the text from which it was made.
struct traced {
  std::uint32_t code = 0;
  std::uint8_t order = 0;  // its combining class
  std::size_t first = 0, last = 0;
};

/// Appends the decomposition of a code point that stands at bytes [first, last).
inline void append_nfd(std::vector<traced>& out, std::uint32_t code, std::size_t first, std::size_t last) {
  decompose(code, [&](std::uint32_t part) { out.push_back({part, combining_class(part), first, last}); });
}

/// Puts combining marks between other characters into canonical order. NFD is append_nfd for each code point, and then this.
inline void sort_marks(std::vector<traced>& codes) {
  for (auto at = codes.begin(); at != codes.end();) {
    if (at->order == 0) {
      ++at;
      continue;
    }
    const auto end = std::find_if(at, codes.end(), [](const traced& t) { return t.order == 0; });
    const auto before = [](const traced& a, const traced& b) { return a.order < b.order; };
    if (!std::is_sorted(at, end, before)) {
      const std::vector<traced> marks(at, end);
      std::vector<std::pair<std::uint8_t, std::size_t>> places;
      for (const traced& t : marks) places.push_back({t.order, places.size()});
      std::sort(places.begin(), places.end());
      std::transform(places.begin(), places.end(), at, [&](const auto& place) { return marks[place.second]; });
    }
    at = end;
  }
}

/// Composes what sort_marks has ordered: NFC.
inline void compose(std::vector<traced>& codes) {
  const data& d = data::get();
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t kept = 0, starter = none;
  int before = -1;  // the combining class of the last code point kept after the starter, -1 if none
  for (const traced& t : codes) {
    if (starter != none && before < t.order) {
      if (const std::uint32_t made = d.compose(codes[starter].code, t.code); made != 0) {
        codes[starter].code = made;
        codes[starter].last = std::max(codes[starter].last, t.last);
        continue;
      }
    }
    if (t.order == 0) starter = kept, before = -1;
    else before = t.order;
    codes[kept++] = t;
  }
  codes.resize(kept);
}

/// Whether NFC may change the text. Bytes that are not UTF-8 never change.
inline bool nfc_may_change(std::string_view text) {
  const data& d = data::get();
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    if (static_cast<unsigned char>(*at) < 0xcc) {  // U+0000 to U+02FF, and bytes within characters
      ++at;
      continue;
    }
    const point p = decode(at, end);
    if (p.bytes != 0 && (d[p.code] & may_change) != 0) return true;
    at += std::max(p.bytes, 1u);
  }
  return false;
}

}  // namespace isotope::io::unicode
