#include "app/text_file.h"

#include <fstream>

namespace headrace {

Status write_text_file(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) {
    return make_error(ErrorCode::kUnavailable, "{}: cannot be written", path);
  }
  return {};
}

}  // namespace headrace
