#pragma once
/// Draws the loss curves of a run as an SVG picture: no script, no font file, readable on light and dark pages.
#include <isotope/train/decimal.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isotope::train {

struct point {
  double step = 0, loss = 0;
};

struct loss_curves {
  std::string title;
  std::vector<point> train, validation;
};

namespace detail {

/// Returns ticks at multiples of 1, 2 or 5 times a power of ten within [low, high]: about `wanted` of them; needs high >= low.
struct ticks {
  double spacing = 1;
  int digits = 0;  // digits after the point that distinguish neighbours
  std::vector<double> at;
};
inline ticks ticks_in(double low, double high, int wanted) {
  ticks t;
  const double raw = (high - low) / wanted;
  if (!(raw > 0)) return {1, 2, {low}};
  const double decade = std::pow(10, std::floor(std::log10(raw)));
  t.spacing = decade * (raw / decade <= 1 ? 1 : raw / decade <= 2 ? 2 : raw / decade <= 5 ? 5 : 10);
  t.digits = std::max(0, int(-std::floor(std::log10(t.spacing) + 1e-9)));
  // Uses indices, not sums, because 0.1 + 0.1 + 0.1 would drift. The slack keeps an end that rounding put just outside.
  const double slack = 1e-9;
  for (double i = std::ceil(low / t.spacing - slack); i <= high / t.spacing + slack; ++i) t.at.push_back(i * t.spacing);
  return t;
}

/// Returns the label of one tick: decimal while it is short, else with an exponent.
inline std::string tick_text(double v, const ticks& t) {
  const bool plain = std::abs(v) < 1e9 && t.digits <= 6;
  return plain ? fixed(v, t.digits) : scientific(v, 2);
}

/// Returns at most `most` points, each the mean of equally many neighbours. Points that are not finite are dropped.
inline std::vector<point> thinned(const std::vector<point>& curve, std::size_t most) {
  std::vector<point> finite;
  for (const point& p : curve)
    if (std::isfinite(p.loss)) finite.push_back(p);
  const std::size_t each = (finite.size() + most - 1) / std::max<std::size_t>(most, 1);
  if (each <= 1) return finite;
  std::vector<point> out;
  for (std::size_t i = 0; i < finite.size(); i += each) {
    const std::size_t n = std::min(each, finite.size() - i);
    point mean{};
    for (std::size_t j = 0; j < n; ++j) mean.step += finite[i + j].step / double(n), mean.loss += finite[i + j].loss / double(n);
    out.push_back(mean);
  }
  return out;
}

/// Returns text for between tags: the three characters that XML reserves there are escaped, control characters become blanks.
inline std::string xml_text(std::string_view s) {
  std::string out;
  for (char c : s) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

}  // namespace detail

/// Returns an SVG document of 720 x 420 units: axes with ticks and grid, the training curve (means of neighbours if long), validation points, a
/// legend.
inline std::string loss_plot(const loss_curves& curves) {
  constexpr double width = 720, height = 420, left = 64, right = 20, top = 44, bottom = 52;
  const std::vector<point> train = detail::thinned(curves.train, 600), validation = detail::thinned(curves.validation, 600);

  const double inf = std::numeric_limits<double>::infinity();
  double x0 = inf, x1 = -inf, y0 = inf, y1 = -inf;
  for (const auto* curve : {&train, &validation})
    for (const point& p : *curve)
      x0 = std::min(x0, p.step), x1 = std::max(x1, p.step), y0 = std::min(y0, p.loss), y1 = std::max(y1, p.loss);
  const bool empty = !(x0 <= x1);
  if (empty) x0 = 0, x1 = 1, y0 = 0, y1 = 1;
  if (x1 - x0 < 1) x1 = x0 + 1;
  // A range below the resolution of its numbers counts as flat: its ticks would not differ.
  const double largest = std::max(std::abs(y0), std::abs(y1));
  const double margin = y1 - y0 > 1e-9 * largest ? (y1 - y0) * 0.05 : std::max(0.5, 0.05 * largest);
  y0 -= margin, y1 += margin;

  const auto px = [&](double x) { return fixed(left + (x - x0) / (x1 - x0) * (width - left - right), 1); };
  const auto row = [&](double y) { return height - bottom - (y - y0) / (y1 - y0) * (height - top - bottom); };
  const auto py = [&](double y) { return fixed(row(y), 1); };
  const std::string x_left = fixed(left, 1), x_right = fixed(width - right, 1), y_top = fixed(top, 1), y_bottom = fixed(height - bottom, 1);
  const auto line = [](std::string_view kind, const std::string& ax, const std::string& ay, const std::string& bx, const std::string& by) {
    return "<line class=\"" + std::string(kind) + "\" x1=\"" + ax + "\" y1=\"" + ay + "\" x2=\"" + bx + "\" y2=\"" + by + "\"/>\n";
  };
  const auto label = [](const std::string& x, const std::string& y, std::string_view anchor, std::string_view text) {
    return "<text x=\"" + x + "\" y=\"" + y + "\" text-anchor=\"" + std::string(anchor) + "\">" + detail::xml_text(text) + "</text>\n";
  };
  const auto path = [&](std::string_view kind, const std::vector<point>& curve) {
    std::string d;
    for (const point& p : curve) d += (d.empty() ? "M" : " L") + px(p.step) + "," + py(p.loss);
    return d.empty() ? std::string() : "<path class=\"" + std::string(kind) + "\" d=\"" + d + "\"/>\n";
  };

  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 420\" width=\"720\" height=\"420\" role=\"img\">\n<title>" +
      detail::xml_text(curves.title) +
      "</title>\n<style>\n"
      "svg { background: #ffffff; color-scheme: light dark; }\n"
      "text { font: 13px system-ui, sans-serif; fill: #333333; }\n"
      ".heading { font-size: 15px; font-weight: 600; }\n"
      ".axis { stroke: #666666; } .grid { stroke: #e4e4e4; }\n"
      ".train { fill: none; stroke: #2a6fdb; stroke-width: 1.5; }\n"
      ".validation { fill: none; stroke: #d9480f; stroke-width: 2; } circle { fill: #d9480f; }\n"
      "@media (prefers-color-scheme: dark) {\n"
      "svg { background: #16181d; } text { fill: #d8dbe2; } .axis { stroke: #9aa0ac; } .grid { stroke: #2b2f38; }\n"
      ".train { stroke: #78aeff; } .validation { stroke: #ff9b5e; } circle { fill: #ff9b5e; }\n"
      "}\n</style>\n";
  svg += "<text class=\"heading\" x=\"" + x_left + "\" y=\"24\">" + detail::xml_text(curves.title) + "</text>\n";

  const detail::ticks xs = detail::ticks_in(x0, x1, 8), ys = detail::ticks_in(y0, y1, 6);
  for (double y : ys.at) {
    svg += line("grid", x_left, py(y), x_right, py(y));
    svg += label(fixed(left - 8, 1), fixed(row(y) + 4.5, 1), "end", detail::tick_text(y, ys));
  }
  for (double x : xs.at) {
    svg += line("axis", px(x), y_bottom, px(x), fixed(height - bottom + 5, 1));
    svg += label(px(x), fixed(height - bottom + 20, 1), "middle", detail::tick_text(x, xs));
  }
  svg += line("axis", x_left, y_bottom, x_right, y_bottom) + line("axis", x_left, y_top, x_left, y_bottom);
  svg += label(fixed((left + width - right) / 2, 1), fixed(height - 10, 1), "middle", "step");
  svg += "<text x=\"16\" y=\"" + fixed((top + height - bottom) / 2, 1) + "\" text-anchor=\"middle\" transform=\"rotate(-90 16 " +
         fixed((top + height - bottom) / 2, 1) + ")\">loss</text>\n";

  svg += path("train", train) + path("validation", validation);
  for (const point& p : validation) svg += "<circle cx=\"" + px(p.step) + "\" cy=\"" + py(p.loss) + "\" r=\"2.5\"/>\n";
  if (empty) svg += label(fixed(width / 2, 1), fixed(height / 2, 1), "middle", "no finite loss was recorded");

  const auto legend = [&](double x, std::string_view kind, std::string_view text) {
    return line(kind, fixed(x, 1), "20.0", fixed(x + 26, 1), "20.0") + label(fixed(x + 32, 1), "24.0", "start", text);
  };
  svg += legend(width - right - 250, "train", "training") + legend(width - right - 120, "validation", "validation");
  return svg + "</svg>\n";
}

}  // namespace isotope::train
