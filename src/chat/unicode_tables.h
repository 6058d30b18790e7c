// The tables behind unicode.h, made by scripts/make_unicode_tables.py. Sorted by code point.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace::jinja {

struct CodeRange {
  char32_t first;
  char32_t last;
};
struct CaseRun {
  char32_t first;
  char32_t last;
  std::int32_t stride;
  std::int32_t delta;
};
struct CaseSpecial {
  char32_t from;
  const char* to;
};

#define HR_UNICODE_TABLE(type, name) \
  extern const type name[];          \
  extern const std::size_t name##Size
HR_UNICODE_TABLE(CodeRange, kAlpha);
HR_UNICODE_TABLE(CodeRange, kDecimal);
HR_UNICODE_TABLE(CodeRange, kDigit);
HR_UNICODE_TABLE(CodeRange, kNumeric);
HR_UNICODE_TABLE(CodeRange, kSpace);
HR_UNICODE_TABLE(CodeRange, kPrintable);
HR_UNICODE_TABLE(CodeRange, kUpper);
HR_UNICODE_TABLE(CodeRange, kLower);
HR_UNICODE_TABLE(CodeRange, kTitle);
HR_UNICODE_TABLE(CaseRun, kToUpper);
HR_UNICODE_TABLE(CaseRun, kToLower);
HR_UNICODE_TABLE(CaseRun, kToTitle);
HR_UNICODE_TABLE(CaseSpecial, kToUpperSpecial);
HR_UNICODE_TABLE(CaseSpecial, kToLowerSpecial);
HR_UNICODE_TABLE(CaseSpecial, kToTitleSpecial);
#undef HR_UNICODE_TABLE

}  // namespace headrace::jinja
