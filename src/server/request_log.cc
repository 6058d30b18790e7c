#include "server/request_log.h"

#include <boost/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "server/answer.h"

namespace headrace {
namespace {

namespace json = boost::json;

std::string format_json(const RequestLog& log) {
  json::object line = {{"event", "request"},
                       {"id", log.id},
                       {"method", log.method},
                       {"path", log.path},
                       {"status", log.status},
                       {"total_ms", log.total_ms}};
  if (!log.model.empty()) {
    line["model"] = log.model;
    line["outcome"] = log.outcome;
    line["finish"] = log.finish;
    line["prompt_tokens"] = log.usage.prompt_tokens;
    line["cached_tokens"] = log.usage.cached_tokens;
    line["completion_tokens"] = log.usage.completion_tokens;
    line["queue_ms"] = log.timings.queue_ms;
    line["ttft_ms"] = log.timings.ttft_ms;
  }
  if (!log.error.empty()) {
    line["error"] = log.error;
  }
  return json_text(line);
}

}  // namespace

std::string format_log(const RequestLog& log, LogFormat format) {
  if (format == LogFormat::kJson) {
    return format_json(log);
  }
  // A path is the client's: quoted and escaped, so that it cannot forge a line.
  std::string line = fmt::format("request id={} {} {} status={} total_ms={:.1f}",
                                 log.id,
                                 log.method,
                                 json_quoted(log.path),
                                 log.status,
                                 log.total_ms);
  if (!log.model.empty()) {
    line += fmt::format(
        " model={} outcome={} finish={} prompt={} cached={} completion={} queue_ms={:.1f} "
        "ttft_ms={:.1f}",
        log.model,
        log.outcome,
        log.finish.empty() ? "-" : log.finish,
        log.usage.prompt_tokens,
        log.usage.cached_tokens,
        log.usage.completion_tokens,
        log.timings.queue_ms,
        log.timings.ttft_ms);
  }
  if (!log.error.empty()) {
    line += " error=" + json_quoted(log.error);
  }
  return line;
}

}  // namespace headrace
