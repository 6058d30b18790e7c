"""Templates that try the whole language: written ones, and products of operators, filters, tests and methods."""
import itertools

STATEMENTS = r"""
{% for x in v.l %}{{ x }},{% endfor %}
{% for x in v.el %}x{% else %}none{% endfor %}
{% for x in v.l %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 }}/{{ loop.first }}/{{ loop.last }}/{{ loop.length }};{% endfor %}
{% for x in v.l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}
{% for x in v.l if x > 1 %}{{ loop.index }}:{{ x }}:{{ loop.length }}:{{ loop.last }} {% endfor %}
{% for k, x in v.d.items() %}{{ k }}={{ x }};{% endfor %}
{% for k in v.d %}{{ k }}{% endfor %}
{% for c in "añ日" %}[{{ c }}]{% endfor %}
{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for a, b in [1] %}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for x in 5 %}{% endfor %}
{% for x in none %}{% endfor %}
{% for x in missing %}x{% else %}empty{% endfor %}
{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for x in [1,2] %}{% for y in [3,4] %}{{ loop.index }}{% if y == 3 %}{% continue %}{% endif %}{{ y }}{% endfor %}{{ loop.index }}{% endfor %}
{% break %}
{% for x in [[1,[2,3]],4] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}@{{ loop.depth }}{% endif %}{% endfor %}
{% for x in [1] %}{{ loop(x) }}{% endfor %}
{% for x in v.l %}{{ loop.cycle("odd", "even") }} {% endfor %}
{% for x in [1,1,2,2,1] %}{{ loop.changed(x) }} {% endfor %}
{% for x in v.l %}{% set y = x %}{% endfor %}{{ y }}
{% set y = 0 %}{% for x in v.l %}{% set y = y + x %}{{ y }} {% endfor %}{{ y }}
{% set ns = namespace(t=0) %}{% for x in v.l %}{% set ns.t = ns.t + x %}{% endfor %}{{ ns.t }}
{% set ns = namespace() %}{{ ns.a }}|{% set ns.a = 1 %}{{ ns.a }}{{ ns['a'] }}{{ ns }}
{% set ns = {} %}{% set ns.a = 1 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}
{% set a = 1, 2 %}{{ a }}
{% set a %}x{{ 1 + 1 }}{% endset %}[{{ a }}]{{ a is string }}
{% set a | upper | trim %} abc {% endset %}[{{ a }}]
{% set ns = namespace() %}{% set ns.x %}body{% endset %}{{ ns.x }}
{% if v.i > 5 %}a{% elif v.i > 3 %}b{% else %}c{% endif %}
{% if v.z %}a{% elif v.e %}b{% elif v.el %}c{% elif v.ed %}d{% else %}e{% endif %}
{% if x is defined and x %}a{% endif %}{% if not x %}b{% endif %}
{% if true %}{% set q = 5 %}{% endif %}{{ q }}
{% macro m(a, b=2, c=a) %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, c=3) }} {{ m(b=5, a=4) }}
{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m() }}{{ m(a=1) }}
{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(q=2) }}
{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}
{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}in{% endcall %}
{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) m() %}{{ a + b }}{% endcall %}
{% macro m() %}x{% endmacro %}{% call m() %}in{% endcall %}
{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}
{% macro m() %}{{ g }}{% endmacro %}{% set g = 1 %}{{ m() }}{% set g = 2 %}{{ m() }}
{% macro m(x) %}{% set y = x %}{{ y }}{% endmacro %}{{ m(1) }}{{ y }}
{% macro m(x, y=1) %}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m }}
{% macro outer() %}{% macro inner() %}i{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}
{% filter upper %}abc{{ v.s }}{% endfilter %}
{% filter replace("a", "b") | upper %}banana{% endfilter %}
{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}
{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}
{% generation %}gen {{ v.i }}{% endgeneration %}
{% raw %}{{ x }}{% if %}{% endraw %}
{%- raw -%}  {{ x }}  {%- endraw -%}  y
{# comment #}a{#- c -#} b {#+ d +#} c
{% block b %}in {{ v.i }}{% endblock %}
{% autoescape true %}{{ v.html }}{% endautoescape %}{{ v.html }}
{% print v.i, v.f %}
{% include "x" %}
{% unknown %}
{% if x %}
{% endif %}
{{ x
{{ 1 + }}
{{ (1, 2 }}
{{ "abc }}
{{ 'a' 'b' }}
{{ a.b.c }}
{{ a }}{{ a.b }}|{{ a.b.c is defined }}
{{ v.missing }}|{{ v.missing.x }}
{{ v['missing'] }}|{{ v.l[99] }}|{{ v.s[99] }}
{{ none.x }}|
{{ none.x.y }}
{{ 5() }}
{{ missing() }}
{{ raise_exception("my words") }}
{{ raise_exception("line " ~ 1) }}
{{ strftime_now("%Y-%m-%d %d %b %Y %H:%M:%S %A %B %j %%") }}
{{ range(5) }}{{ range(1, 10, 3)|list }}{{ range(5, 0, -2)|list }}{{ range(0) }}{{ range(2,8,2) }}
{{ range(1000000) }}
{{ range("a") }}
{{ dict(a=1, b="x") }}{{ dict([("k", 2)]) }}{{ dict({"q": 1}, z=3) }}
{% set c = cycler(1, 2, 3) %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{% set _ = c.reset() %}{{ c.next() }}
{% set j = joiner("|") %}{{ j() }}a{{ j() }}b{{ j() }}c
{{ range is callable }}{{ v is callable }}
{{ v.l.append(4) }}
{{ v.d.update({"x": 1}) }}
{{ v.d.pop("a") }}
{{ v.l.append is defined }}
{{ "".__class__ }}
{{ "%s and %d" | format("x", 5) }}
{{ "%(a)s" | format(a=1) }}
{% set x = [1, 2] %}{% set x = x + [3] %}{{ x }}{{ x|length }}
{% set x = "a" %}{% set x = x ~ "b" ~ 1 ~ none ~ true ~ 1.0 ~ [1] %}{{ x }}
{{ [1, "a", 2.0, none, true, {"k": [1]}, (1,), ()] }}
{{ {"a": 1, 2: "b", none: 3, (1, 2): 4} }}
{{ {"a": 1, "a": 2} }}{{ {1: "a", 1.0: "b", true: "c"} }}
{{ {[1]: 2} }}
{{ v.d.items() }}{{ v.d.keys() }}{{ v.d.values() }}
{{ v.d.items }}
{{ v.d["items"] }}
{{ v.q }}|{{ [v.q] }}|{{ v.q | tojson }}
{{ v | tojson }}
{{ v | tojson(indent=2) }}
{{ v.rows | tojson(separators=(",", ":"), sort_keys=true) }}
{{ v.u | tojson(ensure_ascii=true) }}{{ "😀" | tojson(ensure_ascii=true) }}
{{ {"b": 1, "a": [1, {}], "c": []} | tojson(indent=4, sort_keys=true) }}
{{ [1.0, 1e20, 1e-7, 0.1, 123456789.123] | tojson }}
{{ missing | tojson }}
{{ range(3) | tojson }}
{{ {1: 2, none: 3, true: 4, 1.5: 5} | tojson }}
{{ [1, 2] | tojson(indent="--") }}
{{ 1e16 }} {{ 1e15 }} {{ 1e-4 }} {{ 1e-5 }} {{ 123456789012345678.0 }} {{ 0.1 + 0.2 }} {{ 1.0 }} {{ -0.0 }} {{ 1e100 }} {{ 5e-324 }}
{{ 10 / 4 }} {{ 10 // 4 }} {{ -10 // 4 }} {{ 10 % 4 }} {{ -10 % 4 }} {{ 10 % -4 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1.5 // 0 }}
{{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ - - 2 }} {{ +3 }} {{ -v.i | abs }}
{{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1e3 }} {{ 1.5e-3 }}
{{ 2 ** 64 }} {{ 2 ** 100 }} {{ v.big }} {{ v.big + 1 }} {{ -(2 ** 70) }}
{{ "a\nb\tc\\d\'e\"f\x41\u00e9\101" }}
{{ "\q" }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 == true }} {{ "a" < "b" }} {{ [1, 2] < [1, 3] }} {{ (1,) < (1, 0) }}
{{ 1 < "a" }}
{{ none < 1 }}
{{ missing < 1 }}
{{ missing + 1 }}
{{ missing == missing2 }} {{ missing == none }} {{ missing ~ "x" }} {{ missing | length }} {{ missing | list }}
{{ 1 if true }} {{ 1 if false }} {{ 1 if false else 2 }} {{ (1 if false else 2 if false else 3) }}
{{ (1 if false).x }}
{{ 1 and 2 }} {{ 0 and 2 }} {{ 1 or 2 }} {{ 0 or "" or none }} {{ not 1 }} {{ not none and 1 }}
{{ 1 in [1, 2] }} {{ 3 not in [1, 2] }} {{ "a" in "abc" }} {{ "" in "abc" }} {{ "a" in v.d }} {{ 1 in "a1" }}
{{ 1 in 5 }}
{{ 1 in none }}
{{ 1 in missing }} {{ 2 in range(3) }} {{ ("b", 1) in v.d.items() }}
{{ "a" + "b" * 3 }} {{ [1] * 2 + [2] }} {{ (1,) + (2,) }} {{ "a" * 0 }} {{ -1 * "x" }} {{ 3 * [0] }}
{{ "a" + 1 }}
{{ [1] + (1,) }}
{{ {} + {} }}
{{ 1 + true }} {{ true + true }} {{ 1.5 + 1 }}
{{ v.s[0] }} {{ v.s[-1] }} {{ v.s[1:4] }} {{ v.s[::-1] }} {{ v.s[::2] }} {{ v.s[-3:] }} {{ v.s[:-3] }} {{ v.s[10:2:-2] }} {{ v.s[5:2] }} {{ v.s[-100:100] }}
{{ v.u[2:9] }} {{ v.u[::-1] }} {{ v.u[-2:] }} {{ v.u[7] }}
{{ v.l[0] }} {{ v.l[-1] }} {{ v.l[1:] }} {{ v.l[::-1] }} {{ v.l[:-1] }} {{ v.l[::3] }} {{ v.l[5:] }} {{ v.l[-2:0:-1] }}
{{ v.l[::0] }}
{{ v.l["a"] }} {{ v.l[1.5] }} {{ v.i[0] }} {{ v.d[0] }} {{ v.d[[1]] }}
{{ v.l["a":] }}
{{ v.i[1:] }}
{{ v.d[:1] }}
{{ missing[1:] }}
{{ v.l[none:2] }}
{{ v.d.keys()[1:] }}
{{ "x 　" | trim }}|{{ "日本  x ".rsplit() }}|{{ "ΑΣ ΑΣΑ Σ".lower() }}
{{ v.l.0 }} {{ v.nested.0.1.0 }} {{ v.d.a }} {{ v["d"]["b"] }}
{{ range(10)[2:5] }} {{ range(10)[::-3] }} {{ range(10)[3] }} {{ (1, 2, 3)[1:] }}
{{ v.rows | map(attribute="k") | list }} {{ v.rows | map(attribute="o.p") | list }} {{ v.rows | map(attribute="o.p", default=0) | list }}
{{ v.w | map("upper") | list }} {{ v.l | map("string") | join("-") }} {{ ["1", "x"] | map("int", default=9) | list }}
{{ v.rows | selectattr("k", "equalto", "x") | map(attribute="n") | list }} {{ v.rows | rejectattr("o") | list }} {{ v.rows | selectattr("o") | list | length }}
{{ v.l | select("odd") | list }} {{ v.l | reject("gt", 1) | list }} {{ [0, 1, "", "a", none] | select | list }}
{{ v.l | map }}
{{ v.l | map("nofilter") | list }}
{{ v.rows | groupby("k") }}
{% for g, rs in v.rows | groupby("k") %}{{ g }}:{{ rs | length }};{% endfor %}{% for g in v.rows | groupby("n") %}{{ g.grouper }}{{ g.list | length }}{% endfor %}
{{ v.rows | sort(attribute="n") | map(attribute="n") | list }} {{ v.rows | sort(attribute="k,n", reverse=true) | map(attribute="n") | list }}
{{ v.l | sort }} {{ v.l | sort(reverse=true) }} {{ v.w | sort }} {{ v.w | sort(case_sensitive=true) }}
{{ [1, "a"] | sort }}
{{ v.d | dictsort }} {{ v.d | dictsort(by="value") }} {{ v.d | dictsort(reverse=true) }} {{ {"b": 1, "A": 2, "a": 3} | dictsort(true) }}
{{ v.w | unique | list }} {{ v.l | unique | list }} {{ ["a", "A"] | unique(case_sensitive=true) | list }} {{ v.rows | unique(attribute="k") | list | length }}
{{ v.l | min }} {{ v.l | max }} {{ v.w | min }} {{ v.w | max(case_sensitive=true) }} {{ [] | min }} {{ v.rows | max(attribute="n") }}
{{ v.l | sum }} {{ v.rows | sum(attribute="n") }} {{ v.l | sum(start=10) }} {{ [1.5, 2] | sum }}
{{ ["a"] | sum }}
{{ v.l | batch(3) | list }} {{ v.l | batch(3, "x") | list }} {{ v.l | slice(3) | list }} {{ v.l | slice(3, "f") | list }}
{{ v.l | first }} {{ v.l | last }} {{ "" | first }} {{ [] | last }} {{ "abc" | first }} {{ "abc" | last }} {{ v.d | first }}
{{ v.l | reverse | list }} {{ "abc" | reverse }} {{ v.d | reverse | list }}
{{ v.l | select | last }}
{{ v.l | select | length }}
{{ v.l | join }} {{ v.l | join(", ") }} {{ v.rows | join("+", attribute="k") }} {{ [1, none, "a", 2.0] | join("|") }}
{{ 5 | join }}
{{ v.d | items | list }} {{ missing | items | list }}
{{ v.l | items | list }}
{{ missing | default("d") }} {{ none | default("d") }} {{ none | default("d", true) }} {{ "" | d("x", true) }} {{ missing | default }}
{{ 42.55 | round }} {{ 42.55 | round(1) }} {{ 42.55 | round(1, "floor") }} {{ 42.55 | round(1, "ceil") }} {{ 42 | round }} {{ 2.5 | round }} {{ 3.5 | round }} {{ 1234 | round(-2) }} {{ 2.675 | round(2) }} {{ -2.5 | round }} {{ 1250.0 | round(-2) }}
{{ 1 | round(1, "x") }}
{{ "12" | int }} {{ "x" | int }} {{ "x" | int(5) }} {{ "1.9" | int }} {{ 1.9 | int }} {{ -1.9 | int }} {{ "0x1f" | int(base=16) }} {{ "101" | int(0, 2) }} {{ none | int }} {{ " 7 " | int }} {{ "1_0" | int }} {{ true | int }} {{ [] | int(3) }} {{ "1e3" | int }}
{{ "1.5" | float }} {{ "x" | float }} {{ "x" | float(2.5) }} {{ 3 | float }} {{ none | float }} {{ "1e3" | float }} {{ "inf" | float }} {{ "nan" | float }}
{{ missing | int }}
{{ -5 | abs }} {{ -5.5 | abs }} {{ true | abs }}
{{ "a" | abs }}
{{ v.s | length }} {{ v.u | length }} {{ v.d | count }}
{{ 5 | length }}
{{ none | length }}
{{ v.s | upper }} {{ v.u | upper }} {{ v.u | lower }} {{ v.u | title }} {{ v.u | capitalize }} {{ 5 | upper }}
{{ "hello wORLD-foo (bar) it's" | title }} {{ "hello wORLD-foo it's".title() }} {{ "ab CD".swapcase() }} {{ "ß".casefold() }}
[{{ v.p | trim }}] [{{ "xxaxx" | trim("x") }}] [{{ v.p.strip() }}] [{{ v.p.lstrip() }}] [{{ v.p.rstrip() }}] [{{ "abcba".strip("ab") }}]
{{ "banana" | replace("a", "o") }} {{ "banana" | replace("a", "o", 2) }} {{ "abc" | replace("", "-") }} {{ 123 | replace(2, 5) }}
[{{ "ab" | center(7) }}] [{{ "abc" | center(6) }}] [{{ "ab".center(7, "*") }}] [{{ "ab".ljust(5) }}] [{{ "ab".rjust(5, ".") }}] {{ "-5".zfill(4) }} {{ "+ab".zfill(6) }}
{{ v.lines | indent }}|{{ v.lines | indent(2, true) }}|{{ v.lines | indent(2, blank=true) }}|{{ v.lines | indent("> ", first=true) }}
{{ "foo bar baz qux" | truncate(9) }} {{ "foo bar baz qux" | truncate(9, true) }} {{ "foo bar baz qux" | truncate(11) }} {{ "foo bar baz qux" | truncate(11, false, "...", 0) }} {{ "foo bar" | truncate(3, end="") }}
{{ "foo" | truncate(1) }}
{{ "the quick brown fox jumps over the lazy dog" | wordwrap(10) }}|{{ "aaaaaaaaaaaaaaa bb" | wordwrap(6) }}|{{ "aaaaaaaaaaaa bb" | wordwrap(6, false) }}|{{ "well-known co-operation" | wordwrap(8) }}
{{ "a b  c_d é-f" | wordcount }} {{ "" | wordcount }}
{{ v.html | escape }} {{ v.html | e | e }} {{ v.html | forceescape }} {{ v.html | striptags }} {{ v.html | safe }} {{ ("<" | safe) + "<" }} {{ "<" | e ~ "<" }}
{{ "a b/c?d=é&" | urlencode }} {{ {"a b": "c/d", "e": 1} | urlencode }} {{ [("x", "y z")] | urlencode }}
<a{{ {"class": "x", "id": none, "t": "<\">", "m": missing} | xmlattr }}> {{ {"a": 1} | xmlattr(false) }}
{{ {"a b": 1} | xmlattr }}
{{ 100 | filesizeformat }} {{ 1 | filesizeformat }} {{ 1000 | filesizeformat }} {{ 1500000 | filesizeformat }} {{ 1024 | filesizeformat(true) }} {{ 1e30 | filesizeformat }} {{ 5e9 | filesizeformat(true) }}
{{ v.d | attr("items") is defined }} {{ v.d | attr("b") is defined }} {{ v.s | attr("upper") is callable }}
{{ v.s | string }} {{ 5 | string }} {{ none | string }} {{ "abc" | list }} {{ v.d | list }}
{{ 1 | pprint }} {{ "a'b" | pprint }} {{ [1, "x"] | pprint }}
{{ "a,b,,c".split(",") }} {{ "a b  c ".split() }} {{ "a,b,c".split(",", 1) }} {{ "a b c d".rsplit(" ", 2) }} {{ " a b ".split(maxsplit=1) }} {{ "".split() }} {{ "".split(",") }} {{ " a  b ".rsplit(None, 1) }}
{{ "a".split("") }}
{{ v.lines.splitlines() }} {{ "a\nb\n".splitlines(true) }}
{{ "abcabc".find("c") }} {{ "abcabc".rfind("c") }} {{ "abc".find("x") }} {{ "日本日".find("日", 1) }} {{ "abc".index("b") }} {{ "abcabc".count("bc") }} {{ "aaa".count("aa") }} {{ "abc".count("") }}
{{ "abc".index("x") }}
{{ "abc".startswith("ab") }} {{ "abc".endswith(("x", "c")) }} {{ "abc".startswith("b", 1) }} {{ "abc".startswith(()) }}
{{ "abc".startswith(1) }}
{{ "a-b-c".partition("-") }} {{ "a-b-c".rpartition("-") }} {{ "abc".partition("x") }} {{ "abc".rpartition("x") }} {{ "abc".removeprefix("a") }} {{ "abc".removesuffix("bc") }}
{{ ",".join(["a", "b"]) }} {{ "".join("abc") }} {{ "-".join(v.d) }}
{{ ",".join([1]) }}
{{ "{} {1}".format(1) }}
{{ "{} {}".format(1, "a") }} {{ "{1} {0}".format(1, 2) }} {{ "{a} {b[0]} {c.x}".format(a=1, b=[2], c={"x": 3}) }} {{ "{{}} {!r}".format("x") }}
{{ "{:>5}|{:<5}|{:^5}|{:*^7}|{:05d}|{:+d}|{:,}|{:.2f}|{:e}|{:%}|{:x}|{:#x}|{:b}".format(1, 2, 3, "a", 4, 5, 1234567, 3.14159, 12345.678, 0.25, 255, 255, 5) }}
{{ "{:10.3}|{:g}|{:.3g}|{:_}|{:{}}".format("abcdef", 1e10, 1234.5, 1000000, "x", 4) }}
{{ "{:d}".format("x") }}
{{ "%s %r %d %i %5d|%-5d|%05d %+d %x %X %o %e %.2f %g %c %%" % ("a", "b", 1, 2, 3, 4, 5, 6, 255, 255, 8, 1234.5, 3.14159, 0.0001, "z") }}
{{ "%s" % [1, 2] }} {{ "%s" % 5 }} {{ "%(a)s-%(b)05.1f" % {"a": 1, "b": 2.25} }} {{ "%10s|%-10s|%.2s" % ("abc", "def", "ghi") }} {{ "abc" % {} }} {{ "%d" % 3.9 }} {{ "%#x %#o" % (255, 8) }} {{ "%*d" % (5, 42) }}
{{ "%s %s" % "a" }}
{{ "%d" % "a" }}
{{ "%s" % (1, 2) }}
{{ "%z" % 1 }}
{{ "abc".isalpha() }} {{ "12".isdigit() }} {{ "a1".isalnum() }} {{ " ".isspace() }} {{ "Ab".isupper() }} {{ "AB1".isupper() }} {{ "ab".islower() }} {{ "Ab Cd".istitle() }} {{ "".isalpha() }} {{ "²".isdigit() }} {{ "é".isascii() }} {{ "a_1".isidentifier() }} {{ "a\n".isprintable() }} {{ "½".isnumeric() }}
{{ "a\tb".expandtabs(4) }} {{ v.u.upper() }} {{ v.u.lower() }} {{ v.u.title() }} {{ v.u.capitalize() }}
{{ v.d.get("a") }} {{ v.d.get("x") }} {{ v.d.get("x", 5) }} {{ v.d.keys() | list }} {{ v.d.values() | list }} {{ v.d.copy() }}
{{ v.l.index(1) }} {{ v.l.count(1) }} {{ (1, 2).index(2) }}
{{ v.l.index(99) }}
{{ v.l is iterable }} {{ v.s is iterable }} {{ v.i is iterable }} {{ v.l is sequence }} {{ v.d is mapping }} {{ v.s is string }} {{ v.s is sequence }} {{ range(2) is sequence }} {{ v.d.items() is sequence }} {{ missing is iterable }} {{ missing is sequence }}
{{ 1 is number }} {{ 1.0 is float }} {{ 1 is integer }} {{ true is integer }} {{ true is boolean }} {{ true is number }} {{ none is none }} {{ true is true }} {{ 1 is true }} {{ false is false }}
{{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 3 is odd and 4 is even }} {{ "a" is in ["a"] }} {{ 1 is eq 1 }} {{ 1 is sameas true }} {{ none is sameas none }} {{ "abc" is lower }} {{ "ABC" is upper }} {{ "upper" is filter }} {{ "odd" is test }} {{ "x" is filter }}
{{ 1 is not odd }} {{ missing is not defined }} {{ missing is undefined }} {{ v.x is defined }} {{ 5 is gt 3 }} {{ 5 is lessthan(3) }} {{ 2 is ge 2 }} {{ 1 is not none }}
{{ "a" is odd }}
{{ 1 is divisibleby 0 }}
{{ 1 is nosuchtest }}
{{ 1 | nosuchfilter }}
{% if false %}{{ 1 | nosuchfilter }}{% endif %}ok
{{ not true is false }} {{ 1 + 2 | string | length }} {{ -1 | abs }} {{ "a" ~ "b" | upper }} {{ 2 * 3 ~ 4 }} {{ 1 ~ 2 + 3 }}
{{ v.l | length > 2 and v.s | length < 100 }} {{ [1, 2, 3] | length == 3 }} {{ v["l"][0] + v.l[1] * 2 }}
{{ [1, 2,] }} {{ (1,) }} {{ {"a": 1,} }} {{ () }} {{ [] }} {{ {} }} {{ m | default([]) | length }}
{{ [x for x in y] }}
{{ lambda x: x }}
{{ v.s is string | upper }}
{% set f = v.s.upper %}{{ f() }}
{% set g = v.l | select("odd") %}{{ g | list }}{{ g | list }}
{{ v.s.upper(1) }}
{{ v.s.nosuch() }}
{{ range(3) | map("string") | map("upper") | join(",") }} {{ dict(v.d, c=4) | tojson }}
{{ [v.l, *v.w] }}
{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }} {{ m(**{"a": 3, "b": 4}) }} {{ m(1, **{"b": 2}) }} {{ m(*[1], b=5) }}
{{ bos_token }}{{ eos_token }}{{ add_generation_prompt }}{{ tools }}{{ documents }}{{ messages }}{{ tools is defined }}{{ tools is none }}
{% set tools = tools or [] %}{{ tools }}
{% for i in range(3) -%}  {{ i }}  {%- endfor %}
{% for i in range(3) +%}  {{ i }}
  {%+ endfor %}
""".strip("\n").split("\n")

BLOCKS = [
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "a\n  {%- if true -%}\n  b\n  {%- endif -%}\nc\n",
    "  {% if true %}x{% endif %}  \n\n", "x {{ 1 }}\n{{ 2 -}}\n {{- 3 }}\n\n", "a\n\t{# c #}\nb", "a {# c #} b\n", "a\r\nb\rc\n",
    "  {%+ if true %}x{% endif +%}\ny", "{% if true %}\n\nx{% endif %}\n", "\n", "\n\n", "", " {{ 1 }} \n",
    "{% set x %}\n a\n{% endset %}[{{ x }}]", "{% raw %}\n{{ a }}\n{% endraw %}\nb", "a\n   {% raw %}x{% endraw %}\n b",
    "{{ {'a': {'b': 1}}['a']['b'] }}{{ '}}' }}{{ \"%}\" }}", "{% if true %}a{% else %}b{% endif %}\n{% if false %}a\n{% else %}\nb\n{% endif %}\n",
    "{#- a -#}\n x {#- b #} y", "{% for i in [1,2] %}\n  - {{ i }}\n{% endfor %}\nend", "\u00a0{%- if true %}x{% endif %}", "{{ '\u2028' ~ 1 }}",
    "line1\n{{ 1 +\n2 }}\n{{ undefined_thing.x }}", "{% macro m() %}\n  hi\n{% endmacro %}\n{{ m() }}|", "{%if true%}a{%endif%}{{1}}{{-2-}} 3",
]

VALUES = ["1", "0", "-2", "2.5", "true", "none", "''", "'ab'", "[]", "[1, 'a']", "(1,)", "{'a': 1}", "missing", "range(2)"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", ">=", "in", "and", "or"]
TESTS = ["defined", "none", "string", "mapping", "iterable", "sequence", "number", "integer", "boolean", "callable", "lower"]
FILTERS = ["length", "list", "string", "first", "last", "int", "float", "upper", "trim", "join", "tojson", "sort", "reverse|list",
           "unique|list", "default('x')", "default('x', true)", "abs", "round", "title", "sum", "min", "items|list", "wordcount",
           "capitalize", "replace('a', 'b')", "safe", "e", "batch(2)|list", "map('string')|list", "select|list", "urlencode"]


def language_cases(rng):
    yield from STATEMENTS
    yield from BLOCKS
    triples = list(itertools.product(VALUES, OPERATORS, VALUES))
    for a, op, b in rng.sample(triples, 300):
        yield f"{{{{ {a} {op} {b} }}}}"
    for value, test in itertools.product(VALUES, TESTS):
        yield f"{{{{ {value} is {test} }}}}"
    for value, name in itertools.product(VALUES, FILTERS):
        yield f"{{{{ {value} | {name} }}}}"
