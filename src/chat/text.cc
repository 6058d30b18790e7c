#include "chat/text.h"

#include <algorithm>

namespace headrace::jinja {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;  // offsets are 32 bits

bool is_ascii(std::string_view bytes) {
  return std::all_of(
      bytes.begin(), bytes.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

void Text::Buffer::add(std::string_view more, bool trusted) {
  if (more.empty()) {
    return;
  }
  if (bytes.size() + more.size() > kMaxTextBytes) {
    fail_budget("a string grows beyond {} bytes", kMaxTextBytes);
  }
  ascii = ascii && is_ascii(more);
  bytes.append(more);
  const auto end = static_cast<std::uint32_t>(bytes.size());
  if (!runs.empty() && runs.back().trusted == trusted) {
    runs.back().end = end;
  } else {
    runs.push_back({end, trusted});
  }
}

std::size_t Text::Buffer::run_at(std::size_t offset) const {
  const auto it =
      std::upper_bound(runs.begin(), runs.end(), offset, [](std::size_t value, const Run& run) {
        return value < run.end;
      });
  return static_cast<std::size_t>(it - runs.begin());
}

Text::Text(std::string_view bytes, bool trusted, bool frozen) {
  if (bytes.empty()) {
    return;
  }
  buffer_ = std::make_shared<Buffer>();
  buffer_->add(bytes, trusted);
  buffer_->frozen = frozen;
  end_ = static_cast<std::uint32_t>(bytes.size());
}

std::string_view Text::view() const {
  return empty() ? std::string_view()
                 : std::string_view(buffer_->bytes).substr(begin_, end_ - begin_);
}

bool Text::ascii() const { return empty() || buffer_->ascii || is_ascii(view()); }

Text Text::with_markup(bool markup) const {
  Text out = *this;
  out.markup_ = markup;
  return out;
}

bool Text::trusted_at(std::size_t offset) const {
  if (offset >= size()) {
    return true;
  }
  return buffer_->runs[buffer_->run_at(begin_ + offset)].trusted;
}

Text Text::sub(std::size_t begin, std::size_t end) const {
  end = std::min(end, size());
  if (begin >= end) {
    return Text().with_markup(markup_);
  }
  Text out = *this;
  out.begin_ = begin_ + static_cast<std::uint32_t>(begin);
  out.end_ = begin_ + static_cast<std::uint32_t>(end);
  return out;
}

void Text::for_each_run(const std::function<void(std::string_view, bool)>& visit) const {
  if (empty()) {
    return;
  }
  const std::string_view all = buffer_->bytes;
  std::size_t at = begin_;
  for (std::size_t i = buffer_->run_at(begin_); at < end_; ++i) {
    const std::size_t stop = std::min<std::size_t>(buffer_->runs[i].end, end_);
    visit(all.substr(at, stop - at), buffer_->runs[i].trusted);
    at = stop;
  }
}

void Text::copy_to(Buffer& out) const {
  for_each_run([&out](std::string_view bytes, bool trusted) { out.add(bytes, trusted); });
}

Text Text::append(const Text& more, Budget& budget) const {
  if (more.empty()) {
    return *this;
  }
  if (empty()) {
    return more.with_markup(markup_ || more.markup_);
  }
  Text out = *this;
  budget.charge_bytes(more.size());
  const bool in_place =
      !buffer_->frozen && end_ == buffer_->bytes.size() && buffer_ != more.buffer_;
  if (!in_place) {
    budget.charge_bytes(size());
    out.buffer_ = std::make_shared<Buffer>();
    copy_to(*out.buffer_);
    out.begin_ = 0;
  }
  more.copy_to(*out.buffer_);
  out.end_ = static_cast<std::uint32_t>(out.buffer_->bytes.size());
  return out;
}

void TextBuilder::add(std::string_view bytes, bool trusted) {
  budget_->charge_bytes(bytes.size());
  buffer_->add(bytes, trusted);
}

void TextBuilder::add(const Text& text) {
  budget_->charge_bytes(text.size());
  text.copy_to(*buffer_);
}

Text TextBuilder::take() {
  Text out;
  out.end_ = static_cast<std::uint32_t>(buffer_->bytes.size());
  out.buffer_ = std::move(buffer_);
  buffer_ = std::make_shared<Text::Buffer>();
  return out;
}

}  // namespace headrace::jinja
