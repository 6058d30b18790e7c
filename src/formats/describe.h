// What a model file holds, for people and programs: header, metadata, tokenizer, tensors with
// types, shapes and sizes. Reads only the file's header, not its weights. Pure functions, any
// thread. Arrays of more than 16 elements are given by their count and their first elements;
// invalid UTF-8 becomes U+FFFD, a float that is no number null.
#pragma once

#include <string>

#include "formats/gguf.h"

namespace headrace {

// One JSON object on one line, without a newline at its end:
// {file, bytes, version, alignment, data_offset, architecture, parameters, tensor_bytes,
// metadata{key: value},
//  tokenizer{...} | null, types{name: {tensors, bytes}}, tensors[{name, dtype, shape, bytes,
//  offset}]}.
// A long array is {element_type, count, first}; a tokenizer that is not read is {error}; offset
// counts from the file's start.
std::string describe_json(const GgufFile& file);

// The same as a page of text, with long strings cut.
std::string describe_text(const GgufFile& file);

}  // namespace headrace
