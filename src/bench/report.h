// Plots and pages that need nothing else: SVG drawn here, one HTML file without scripts. Pure, any
// thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace {

struct ChartSeries {
  std::string name{};
  std::vector<std::pair<double, double>> points{};  // drawn in this order, joined by lines
  bool dots = false;                                // dots instead of a line
};

struct Chart {
  std::string title{};
  std::string x_label{};
  std::string y_label{};
  std::vector<ChartSeries> series{};  // up to six colours
};

// A whole <svg> element, or a file of its own. Axes begin at 0.
std::string chart_svg(const Chart& chart);

struct ReportTable {
  std::vector<std::string> head{};
  std::vector<std::vector<std::string>> rows{};
};

// A page with a table and charts; all text is escaped.
std::string report_html(std::string_view title,
                        const std::vector<ReportTable>& tables,
                        const std::vector<Chart>& charts);

// The share of values up to each value, as a line.
ChartSeries cumulative(std::string name, std::vector<double> values);

}  // namespace headrace
