#!/usr/bin/env python3
"""Writes what Python's Jinja2, set up as Hugging Face transformers does, makes of templates.

    make_template_vectors.py gguf NAME MODEL.gguf OUT.json   the template of a model file, many conversations
    make_template_vectors.py jinja DIR OUT_DIR               each *.jinja of a folder, the same conversations
    make_template_vectors.py language OUT.json               expressions and statements of the language

A case holds the arguments of rendering and either `output` or `error` (the exception's message).
Needs: jinja2, transformers, gguf.
"""
import datetime
import glob
import json
import os
import random
import sys

from template_language_cases import language_cases

CLOCK = datetime.datetime(2024, 7, 26, 9, 5, 3)

TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Weather of a \"city\" <now> & then – °C",
        "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "description": "Name, e.g. \"Köln\"", "enum": ["Köln", "東京"]},
            "days": {"type": "integer", "default": 3, "minimum": 1, "maximum": 14},
            "hourly": {"type": "boolean", "default": False}, "limit": {"type": ["number", "null"]},
            "tags": {"type": "array", "items": {"type": "string"}}},
            "required": ["city"]}, "return": {"type": "string", "description": "text"}}},
    {"type": "function", "function": {"name": "stop", "description": "Stops.",
                                      "parameters": {"type": "object", "properties": {}}}},
]


def call(name, arguments, call_id="call12345", as_text=False):
    text = json.dumps(arguments, ensure_ascii=False) if as_text else arguments
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def conversations():
    user = {"role": "user", "content": "What is the capital of France?"}
    system = {"role": "system", "content": "  You are terse.\n"}
    answer = {"role": "assistant", "content": "Paris."}
    weather = call("get_weather", {"city": "Köln", "days": 2, "limit": 1.5, "hourly": True, "tags": ["a", None]})
    result = {"role": "tool", "name": "get_weather", "tool_call_id": "call12345",
              "content": "{\"t\": 21.5, \"sky\": \"<|im_start|>\"}"}
    asked = {"role": "assistant", "content": "", "tool_calls": [weather]}
    yield "user", [user], {}
    yield "system", [system, user], {}
    yield "turns", [system, user, answer, {"role": "user", "content": "And of Spain?"}], {}
    yield "ends_with_assistant", [user, answer], {}
    yield "blank", [{"role": "user", "content": ""}, {"role": "assistant", "content": " \n "}, user], {}
    yield "unicode", [{"role": "user", "content": "Grüße 👩‍👩‍👧 \u0301 日本語 \u200f\t\n\r\n \u00a0"}], {}
    yield "special_tokens", [{"role": "user", "content": "<|im_end|>\n<|im_start|>system\n</s>[INST]<bos>"}], {}
    yield "tools", [user], {"tools": TOOLS}
    yield "tools_system", [system, user], {"tools": TOOLS}
    yield "tool_turn", [system, user, asked, result], {"tools": TOOLS}
    yield "tool_turns", [user, asked, result, {"role": "assistant", "content": "21.5 °C"}, user], {"tools": TOOLS}
    yield "tool_two_calls", [user, {"role": "assistant", "content": "Both.",
                                    "tool_calls": [weather, call("stop", {}, "call67890")]}, result,
                             {"role": "tool", "name": "stop", "tool_call_id": "call67890", "content": "done"}], {
                                 "tools": TOOLS}
    yield "tool_arguments_text", [user, {"role": "assistant", "content": None, "tool_calls": [
        call("get_weather", {"city": "東京"}, as_text=True)]}, result], {"tools": TOOLS}
    yield "reasoning", [user, {"role": "assistant", "content": "Paris.", "reasoning_content": "It is\nParis."},
                        user], {}
    yield "think_tags", [user, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nParis."}, user], {}
    yield "parts", [{"role": "user", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "two"}]}], {}
    yield "image", [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What?"}]}], {}
    yield "bad_role", [{"role": "pirate", "content": "Arr"}], {}
    yield "bad_order", [user, user, answer, answer], {}
    yield "no_messages", [], {}
    yield "no_content", [{"role": "user"}], {}
    yield "thinking_off", [user], {"kwargs": {"enable_thinking": False, "thinking": False}}
    yield "thinking_on", [user], {"kwargs": {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"}}
    yield "documents", [user], {"documents": [{"title": "T", "text": "Text é", "doc_id": 1}]}
    yield "developer", [{"role": "developer", "content": "Be kind."}, user], {}


def environment():
    """transformers' own environment, with a clock that stands still."""
    import transformers.utils.chat_template_utils as utils

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return CLOCK

    utils.datetime = Clock
    return utils


def render(utils, template, case):
    try:
        compiled = utils._compile_jinja_template(template)
        return {"output": compiled.render(
            messages=case["messages"], tools=case.get("tools"), documents=case.get("documents"),
            add_generation_prompt=case["add_generation_prompt"], bos_token=case["bos_token"],
            eos_token=case["eos_token"], **case.get("kwargs", {}))}
    except Exception as error:  # every failure of a template is a fact to keep
        return {"error": str(error), "raised": type(error).__name__ == "TemplateError"}


def conversation_cases(utils, template):
    for name, messages, options in conversations():
        for generate in (False, True):
            case = {"name": f"{name}{'+' if generate else ''}", "messages": messages,
                    "add_generation_prompt": generate, "bos_token": "<s>", "eos_token": "</s>", **options}
            yield case | render(utils, template, case)


def write(path, document):
    with open(path, "w", encoding="utf-8") as out:
        json.dump(document, out, ensure_ascii=False, indent=1)
        out.write("\n")


def write_conversations(utils, name, template, path):
    write(path, {"name": name, "template": template, "cases": list(conversation_cases(utils, template))})


def main():
    utils = environment()
    mode = sys.argv[1]
    if mode == "gguf":
        from gguf import GGUFReader

        field = GGUFReader(sys.argv[3]).fields["tokenizer.chat_template"]
        write_conversations(utils, sys.argv[2], bytes(field.parts[field.data[0]]).decode(), sys.argv[4])
    elif mode == "jinja":
        for path in sorted(glob.glob(os.path.join(sys.argv[2], "*.jinja"))):
            name = os.path.splitext(os.path.basename(path))[0]
            with open(path, encoding="utf-8", newline="") as template:
                write_conversations(utils, name, template.read(), os.path.join(sys.argv[3], name + ".json"))
    else:
        cases = []
        for template in language_cases(random.Random(1)):
            case = {"template": template, "messages": [], "add_generation_prompt": True, "bos_token": "<s>",
                    "eos_token": "</s>", "kwargs": {"v": KWARGS}}
            result = render(utils, template, case)
            if " at 0x" not in result.get("output", ""):  # an address is no fact
                cases.append({"template": template} | result)
        write(sys.argv[2], {"name": "language", "kwargs": {"v": KWARGS}, "cases": cases})


KWARGS = {
    "i": 7, "n": -3, "f": 2.5, "big": 12345678901234567890, "t": True, "z": None, "s": "Hello, World", "e": "",
    "u": "straße ÀÉ ǆ İ ΣΑΣ 日本", "p": "  padded\t\n", "l": [3, 1, 2, 1], "w": ["b", "A", "c", "a"], "el": [],
    "d": {"b": 1, "a": 2, "items": 3}, "ed": {}, "q": "it's \"q\" \\ \n \x01 \u200b",
    "rows": [{"k": "x", "n": 1, "o": {"p": 9}}, {"k": "Y", "n": 3}, {"k": "x", "n": 2, "o": {"p": 5}}],
    "html": "<b>a &amp; b</b> \"x\" 'y'", "lines": "one\ntwo three\n\nfour\r\nfive", "nested": [[1, [2]], {"a": [None]}],
}

if __name__ == "__main__":
    sys.exit(main())
