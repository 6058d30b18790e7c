// What a template computes with. Values are immutable once made (the sandbox of chat templates
// forbids the methods that change lists and dicts), so they are shared freely inside one rendering;
// only namespaces, loops and generators have state. Values of one rendering stay on one thread;
// literals may be shared (text.h). Sequences and dicts know their depth and weight (nodes below
// them), so recursion over them is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "chat/text.h"

namespace headrace::jinja {

// Wide enough for every integer that JSON readers of 64 bits give, and for what templates do with
// them; beyond it arithmetic is an error, where Python would go on.
__extension__ typedef __int128 Int;  // NOLINT(modernize-use-using)

class Value;
class Interpreter;
struct CallArgs;
struct Sequence;
class Dict;
class Object;

struct Undefined {
  std::shared_ptr<const std::string> why;  // the message of the error that using it is
};
struct None {};

using SequencePtr = std::shared_ptr<Sequence>;
using DictPtr = std::shared_ptr<Dict>;
using ObjectPtr = std::shared_ptr<Object>;

class Value {
 public:
  using Data =
      std::variant<Undefined, None, bool, Int, double, Text, SequencePtr, DictPtr, ObjectPtr>;

  Value() = default;  // undefined
  static Value undefined(std::string why);
  static Value none();
  static Value boolean(bool b);
  static Value integer(Int i);
  static Value real(double d);
  static Value text(Text t);
  static Value sequence(SequencePtr s);
  static Value dict(DictPtr d);
  static Value object(ObjectPtr o);

  const Data& data() const { return data_; }
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&data_);
  }
  bool is_undefined() const { return get<Undefined>() != nullptr; }
  bool is_none() const { return get<None>() != nullptr; }
  const Text* as_text() const { return get<Text>(); }
  const Sequence* as_sequence() const;
  const Dict* as_dict() const;
  Object* as_object() const;
  std::optional<Int> as_int() const;  // an integer, or a bool as 0 or 1

 private:
  Data data_;
};

enum class SequenceKind { kList, kTuple, kRange, kKeys, kValues, kItems, kGenerator, kGroup };

// Lists, tuples, ranges, views of dicts, what lazy filters give (kGenerator: can be walked once)
// and what groupby gives (kGroup: a pair with the names grouper and list).
struct Sequence {
  Sequence(SequenceKind kind_in, std::vector<Value> items_in);

  bool is_tuple() const { return kind == SequenceKind::kTuple || kind == SequenceKind::kGroup; }
  // Has a length and can be indexed.
  bool indexable() const {
    return kind == SequenceKind::kList || kind == SequenceKind::kRange || is_tuple();
  }

  SequenceKind kind;
  std::vector<Value> items;
  int depth = 1;
  std::size_t weight = 1;
  Int range[3] = {0, 0, 1};
  mutable bool consumed = false;  // kGenerator only
};

Value make_sequence(SequenceKind kind, std::vector<Value> items);
// Before a sequence of so many items, so many times, is built: whether it may be that large.
void check_size(std::size_t num_items, std::size_t times);
inline Value make_list(std::vector<Value> items) {
  return make_sequence(SequenceKind::kList, std::move(items));
}
inline Value make_tuple(std::vector<Value> items) {
  return make_sequence(SequenceKind::kTuple, std::move(items));
}

// A dict in the order its keys were first set; keys are compared as Python does (1 == 1.0 == true).
class Dict {
 public:
  // An unhashable key fails.
  void set(const Value& key, Value value);
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  const std::vector<std::pair<Value, Value>>& entries() const { return entries_; }
  std::size_t size() const { return entries_.size(); }
  int depth() const { return depth_; }
  std::size_t weight() const { return weight_; }

 private:
  std::optional<std::size_t> position(const Value& key, std::size_t hash) const;

  std::vector<std::pair<Value, Value>> entries_;
  std::unordered_multimap<std::size_t, std::size_t> index_;
  int depth_ = 1;
  std::size_t weight_ = 1;
};

// Macros, functions, bound methods, namespaces, loops.
class Object : public std::enable_shared_from_this<Object> {
 public:
  virtual ~Object() = default;
  virtual std::string_view type_name() const = 0;
  virtual std::string describe() const;  // as printed
  virtual std::optional<Value> attribute(Interpreter& in, std::string_view name);
  virtual bool callable() const { return false; }
  virtual Value call(Interpreter& in, CallArgs& args);
  virtual int depth() const { return 1; }
  virtual std::optional<std::size_t> length(Interpreter& in);
};

int depth_of(const Value& value);
std::size_t weight_of(const Value& value);

// Python's name of the type: str, int, dict, ...
std::string_view type_name(const Value& value);
// As in messages: 'dict object', 'None'.
std::string object_name(const Value& value);

bool truthy(const Value& value);
bool equals(const Value& a, const Value& b);
bool identical(const Value& a, const Value& b);
std::size_t hash_value(const Value& value);  // fails on lists and dicts

}  // namespace headrace::jinja
