#include "bench/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

namespace headrace {
namespace {

constexpr double kWidth = 640;
constexpr double kHeight = 320;
constexpr double kLeft = 64;
constexpr double kRight = 16;
constexpr double kTop = 32;
constexpr double kBottom = 48;
constexpr std::size_t kMostPoints = 800;  // of a line, drawn
constexpr std::array<std::string_view, 6> kColors = {
    "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf"};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// 1, 2 or 5 times a power of ten, so that about five fit.
double tick_step(double largest) {
  const double raw = largest / 5;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) {
      return factor * power;
    }
  }
  return 10 * power;
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart) : chart_(chart) {
    for (const ChartSeries& series : chart.series) {
      for (const auto& [x, y] : series.points) {
        max_x_ = std::max(max_x_, x);
        max_y_ = std::max(max_y_, y);
      }
    }
    max_x_ = max_x_ > 0 ? max_x_ : 1;
    max_y_ = max_y_ > 0 ? max_y_ * 1.05 : 1;
  }

  std::string svg() {
    print(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" "
        "height=\"{}\" font-family=\"sans-serif\" font-size=\"11\">\n",
        kWidth,
        kHeight,
        kWidth,
        kHeight);
    print("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    print("<text x=\"{}\" y=\"18\" font-size=\"14\">{}</text>\n", kLeft, escaped(chart_.title));
    axes();
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      draw(chart_.series[i], i);
    }
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  double at_x(double x) const { return kLeft + x / max_x_ * (kWidth - kLeft - kRight); }
  double at_y(double y) const {
    return kHeight - kBottom - y / max_y_ * (kHeight - kTop - kBottom);
  }

  void axes() {
    const double step_x = tick_step(max_x_);
    for (double x = 0; x <= max_x_ * 1.0001; x += step_x) {
      print(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#ddd\"/>"
          "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:.6g}</text>\n",
          at_x(x),
          kTop,
          kHeight - kBottom,
          kHeight - kBottom + 14,
          x);
    }
    const double step_y = tick_step(max_y_);
    for (double y = 0; y <= max_y_ * 1.0001; y += step_y) {
      print(
          "<line x1=\"{1}\" x2=\"{2}\" y1=\"{0:.1f}\" y2=\"{0:.1f}\" stroke=\"#ddd\"/>"
          "<text x=\"{3}\" y=\"{0:.1f}\" text-anchor=\"end\" dy=\"4\">{4:.6g}</text>\n",
          at_y(y),
          kLeft,
          kWidth - kRight,
          kLeft - 6,
          y);
    }
    print("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
          (kLeft + kWidth - kRight) / 2,
          kHeight - 10,
          escaped(chart_.x_label));
    print(
        "<text x=\"14\" y=\"{0}\" text-anchor=\"middle\" transform=\"rotate(-90 14 "
        "{0})\">{1}</text>\n",
        (kTop + kHeight - kBottom) / 2,
        escaped(chart_.y_label));
  }

  void draw(const ChartSeries& series, std::size_t idx) {
    const std::string_view color = kColors[idx % kColors.size()];
    const std::size_t stride = series.points.size() / kMostPoints + 1;
    std::string path;
    for (std::size_t i = 0; i < series.points.size(); i += stride) {
      const auto& [x, y] = series.points[i];
      if (series.dots) {
        print(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\" fill=\"{}\"/>\n", at_x(x), at_y(y), color);
      } else {
        fmt::format_to(std::back_inserter(path), "{:.1f},{:.1f} ", at_x(x), at_y(y));
      }
    }
    if (!path.empty()) {
      print("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"{}\"/>\n",
            color,
            path);
    }
    const double y = kTop + 12 + 15 * static_cast<double>(idx);
    print(
        "<rect x=\"{}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{}\"/>"
        "<text x=\"{}\" y=\"{}\">{}</text>\n",
        kWidth - 150,
        y - 9,
        color,
        kWidth - 135,
        y,
        escaped(series.name));
  }

  const Chart& chart_;
  double max_x_ = 0;
  double max_y_ = 0;
  std::string out_;
};

}  // namespace

std::string chart_svg(const Chart& chart) { return Drawing(chart).svg(); }

std::string report_html(std::string_view title,
                        const std::vector<ReportTable>& tables,
                        const std::vector<Chart>& charts) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<style>body{{font-family:sans-serif;margin:2em}}table{{border-collapse:collapse}}"
      "td,th{{border:1px solid #ccc;padding:4px 8px;text-align:right}}</style></head>\n"
      "<body><h1>{0}</h1>\n",
      escaped(title));
  const auto add_row = [&out](const std::vector<std::string>& cells, std::string_view tag) {
    out += "<tr>";
    for (const std::string& cell : cells) {
      fmt::format_to(std::back_inserter(out), "<{0}>{1}</{0}>", tag, escaped(cell));
    }
    out += "</tr>\n";
  };
  for (const ReportTable& table : tables) {
    out += "<table>\n";
    add_row(table.head, "th");
    for (const auto& row : table.rows) {
      add_row(row, "td");
    }
    out += "</table>\n";
  }
  for (const Chart& chart : charts) {
    out += "<p>" + chart_svg(chart) + "</p>\n";
  }
  return out + "</body></html>\n";
}

ChartSeries cumulative(std::string name, std::vector<double> values) {
  std::ranges::sort(values);
  ChartSeries series{.name = std::move(name)};
  for (std::size_t i = 0; i < values.size(); ++i) {
    series.points.emplace_back(values[i],
                               static_cast<double>(i + 1) / static_cast<double>(values.size()));
  }
  return series;
}

}  // namespace headrace
