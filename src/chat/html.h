// HTML escaping, for the filters that ask for it. What is put in for a character has its
// provenance.
#pragma once

#include "chat/text.h"

namespace headrace::jinja {

Text escape_html(Budget& budget, const Text& text);
// Tags and comments removed, entities resolved, white space collapsed.
Text strip_tags(Budget& budget, const Text& text);

}  // namespace headrace::jinja
