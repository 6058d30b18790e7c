// One line about each request, as text or JSON. Pure, any thread.
#pragma once

#include <functional>
#include <string>

#include "engine/request.h"

namespace headrace {

enum class LogFormat { kText, kJson };

struct RequestLog {
  std::string id;
  std::string method;
  std::string path;
  int status = 0;
  double total_ms = 0;
  std::string model;    // of generations, like all below
  std::string outcome;  // ok, rejected, timeout, aborted, failed
  std::string finish;   // stop, length, ...
  RequestUsage usage;
  RequestTimings timings;
  std::string error;  // the message, where the answer is an error
};

std::string format_log(const RequestLog& log, LogFormat format);

// Takes a finished line without its end; called from I/O threads, must not block for long.
using LogSink = std::function<void(std::string_view line)>;

}  // namespace headrace
