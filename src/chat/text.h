// Strings that remember, byte run by byte run, whether the template wrote them (trusted) or they
// came in from outside. A Text is a view [begin, end) of a shared buffer: copying and slicing share
// the bytes. Appending to a Text that ends where its buffer ends grows the buffer in place, so a
// string built up in a loop costs what it holds, not its square. A buffer made with literal() is
// shared between threads and never grows; all others belong to one rendering, one thread.
// Comparison, search and hash look at bytes alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/budget.h"

namespace headrace::jinja {

class Text {
 public:
  Text() = default;
  Text(std::string_view bytes, bool trusted) : Text(bytes, trusted, false) {}
  static Text literal(std::string_view bytes) { return Text(bytes, true, true); }

  std::size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  std::string_view view() const;
  std::string str() const { return std::string(view()); }
  bool ascii() const;

  // True for a string that needs no HTML escaping any more (the filters safe, escape, ...).
  bool markup() const { return markup_; }
  Text with_markup(bool markup) const;

  bool trusted_at(std::size_t offset) const;
  Text sub(std::size_t begin, std::size_t end) const;  // bytes, clamped

  // In order, maximal runs of one provenance.
  void for_each_run(const std::function<void(std::string_view, bool)>& visit) const;

  // The text followed by `more`; charges only the bytes it had to copy.
  Text append(const Text& more, Budget& budget) const;

  friend bool operator==(const Text& a, const Text& b) { return a.view() == b.view(); }

 private:
  friend class TextBuilder;
  struct Run {
    std::uint32_t end;  // offset in the buffer; a run begins where the one before it ends
    bool trusted;
  };
  struct Buffer {
    std::string bytes;
    std::vector<Run> runs;
    bool ascii = true;
    bool frozen = false;

    void add(std::string_view more, bool trusted);
    std::size_t run_at(std::size_t offset) const;
  };

  Text(std::string_view bytes, bool trusted, bool frozen);
  void copy_to(Buffer& out) const;

  std::shared_ptr<Buffer> buffer_;
  std::uint32_t begin_ = 0;
  std::uint32_t end_ = 0;
  bool markup_ = false;
};

// Puts a Text together; every byte is charged to the budget.
class TextBuilder {
 public:
  explicit TextBuilder(Budget& budget)
      : budget_(&budget), buffer_(std::make_shared<Text::Buffer>()) {}

  void add(std::string_view bytes, bool trusted);
  void add(const Text& text);
  std::size_t size() const { return buffer_->bytes.size(); }
  Text take();

 private:
  Budget* budget_;
  std::shared_ptr<Text::Buffer> buffer_;
};

}  // namespace headrace::jinja
