#include "server/page.h"

namespace headrace {
namespace {

constexpr std::string_view kPage = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Headrace</title><style>
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:0 auto;padding:1rem;display:flex;flex-direction:column;
min-height:calc(100vh - 2rem)}
header,form{display:flex;gap:.5rem;align-items:center;flex-wrap:wrap}h1{font-size:1.1rem;margin:0;flex:1}
main{flex:1;margin:1rem 0}
.turn{white-space:pre-wrap;overflow-wrap:anywhere;margin:.6rem 0;padding:.5rem .8rem;border-radius:.6rem}
.user{background:#8883;margin-left:15%}.error{color:#c33}.note{font-size:.8rem;opacity:.7}
textarea{flex:1;min-width:12rem;font:inherit;padding:.5rem}button,select,input{font:inherit;padding:.4rem .7rem}
input[type=number]{width:5rem}
</style></head><body>
<header><h1>Headrace</h1><select id="model"></select>
<input id="key" type="password" size="10" autocomplete="off"><button id="lang" type="button"></button></header>
<main id="log" aria-live="polite"></main>
<form id="form"><textarea id="text" rows="2" required></textarea>
<label><span data-t="temperature"></span> <input id="temp" type="number" min="0" max="2" step="0.1" value="0.7"></label>
<label><span data-t="limit"></span> <input id="max" type="number" min="1" value="512"></label>
<button id="send"></button><button id="clear" type="button" data-t="clear"></button></form>
<script>
"use strict";
const words={en:{send:"Send",stop:"Stop",clear:"Clear",ask:"Ask something",temperature:"Temperature",limit:"Tokens",
key:"API key",other:"中文",gone:"The server does not answer",
note:(u,t,s)=>`${u.completion_tokens} tokens · first after ${Math.round(t.ttft_ms)} ms · ${s} tokens/s · ${u.prompt_tokens} prompt tokens (${u.prompt_tokens_details.cached_tokens} cached)`},
zh:{send:"发送",stop:"停止",clear:"清空",ask:"请输入问题",temperature:"温度",limit:"最大词元数",
key:"API 密钥",other:"English",gone:"服务器没有响应",
note:(u,t,s)=>`${u.completion_tokens} 个词元 · 首词元 ${Math.round(t.ttft_ms)} 毫秒 · 每秒 ${s} 个 · 提示 ${u.prompt_tokens} 个（缓存 ${u.prompt_tokens_details.cached_tokens} 个）`}};
const $=id=>document.getElementById(id);
let lang=navigator.language.startsWith("zh")?"zh":"en",history=[],running=null;
function label(){const w=words[lang];document.documentElement.lang=lang;$("lang").textContent=w.other;
$("send").textContent=running?w.stop:w.send;$("text").placeholder=w.ask;$("key").placeholder=w.key;
document.querySelectorAll("[data-t]").forEach(e=>e.textContent=w[e.dataset.t]);}
function add(kind,text){const e=document.createElement("div");e.className=kind;e.textContent=text;$("log").append(e);
e.scrollIntoView({block:"end"});return e;}
function headers(){const h={"content-type":"application/json"};if($("key").value)h.authorization="Bearer "+$("key").value;
return h;}
async function models(){try{const r=await fetch("v1/models",{headers:headers()});const j=await r.json();
$("model").replaceChildren(...(j.data||[]).map(m=>new Option(m.id)));}catch(e){add("turn error",words[lang].gone);}}
async function ask(text){history.push({role:"user",content:text});add("turn user",text);const out=add("turn","");
running=new AbortController();label();let answer="",usage=null,timings=null;
try{const r=await fetch("v1/chat/completions",{method:"POST",headers:headers(),signal:running.signal,
body:JSON.stringify({model:$("model").value||undefined,messages:history,stream:true,
stream_options:{include_usage:true},temperature:+$("temp").value,max_tokens:+$("max").value})});
if(!r.ok)throw new Error((await r.json()).error.message);
const reader=r.body.pipeThrough(new TextDecoderStream()).getReader();let rest="";
for(;;){const {value,done}=await reader.read();if(done)break;const lines=(rest+value).split("\n");rest=lines.pop();
for(const line of lines){if(!line.startsWith("data: ")||line==="data: [DONE]")continue;const j=JSON.parse(line.slice(6));
if(j.error)throw new Error(j.error.message);
for(const c of j.choices)answer+=c.delta.content||"";usage=j.usage||usage;timings=j.timings||timings;}
out.textContent=answer;}
}catch(e){if(e.name!=="AbortError")add("turn error",e.message);}
if(answer)history.push({role:"assistant",content:answer});else history.pop();
if(usage&&timings){const s=(timings.total_ms-timings.ttft_ms)/1000;
add("note",words[lang].note(usage,timings,s>0?((usage.completion_tokens-1)/s).toFixed(1):"–"));}
running=null;label();}
$("form").onsubmit=e=>{e.preventDefault();if(running){running.abort();return;}const t=$("text").value.trim();
if(t){$("text").value="";ask(t);}};
$("text").onkeydown=e=>{if(e.key==="Enter"&&!e.shiftKey&&!e.isComposing){e.preventDefault();$("form").requestSubmit();}};
$("clear").onclick=()=>{history=[];$("log").replaceChildren();};
$("lang").onclick=()=>{lang=lang==="zh"?"en":"zh";label();};$("key").onchange=models;label();models();
</script></body></html>
)html";

}  // namespace

std::string_view chat_page() { return kPage; }

}  // namespace headrace
