// The fields that chat, completions and TGI share, and the refusals that hold for all of OpenAI's
// forms. Pure.
#pragma once

#include "server/fields.h"
#include "server/generation_request.h"

namespace headrace {

// temperature ... cache_salt, n, stop, stream. Leaves log-probabilities to the caller, whose forms
// differ.
void read_sampling_fields(FieldReader& fields, int vocab_size, GenerationRequest& request);

// Refuses what would change the answer's form and is not built: response_format, guided_*, ...
// (kUnsupported).
void refuse_unbuilt_forms(FieldReader& fields, const boost::json::object& body);

// A seed for a request that names none: from the system's entropy, below 2^53 so that JSON can
// carry it back.
std::uint64_t random_seed();

}  // namespace headrace
