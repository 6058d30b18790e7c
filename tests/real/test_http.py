"""What curl and less polite clients get from a real server."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from serving import Serving, events


def setUpModule():
    global server
    server = Serving("--max-body", "1M")


def tearDownModule():
    server.stop()
    server.__exit__()


def curl(*arguments):
    """(status, body) of curl's own request."""
    run = subprocess.run(
        ["curl", "-sS", "--max-time", "60", "-w", "\n%{http_code}", *arguments], capture_output=True, text=True, check=True
    )
    body, _, status = run.stdout.rpartition("\n")
    return int(status), body


class Curl(unittest.TestCase):
    def error(self, status, *arguments):
        got, body = curl(*arguments)
        self.assertEqual(got, status, body)
        error = json.loads(body)["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        return error

    def test_streams_a_chat(self):
        body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, "stream": True})
        status, text = curl("-N", server.address + "/v1/chat/completions", "-H", "content-type: application/json", "-d", body)
        self.assertEqual(status, 200)
        chunks = events(text + "\n")
        self.assertIsNone(chunks[-1])
        self.assertIn("timings", chunks[-2])
        self.assertEqual(chunks[0]["choices"][0]["delta"]["role"], "assistant")

    def test_wrong_bodies(self):
        url = server.address + "/v1/completions"
        for body in ("", "{", '{"prompt":"a","prompt":"b"}', '{"prompt":"a","temperature":NaN}', "[" * 5000, "null"):
            self.error(400, url, "-d", body)
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(b'{"prompt":"\xff\xfe"}')
        self.error(400, url, "--data-binary", "@" + file.name)
        os.unlink(file.name)
        self.assertEqual(self.error(400, url, "-d", '{"prompt":""}')["param"], "prompt")
        self.assertEqual(self.error(400, url, "-d", '{"prompt":"a","n":1000}')["param"], "n")
        self.assertEqual(self.error(404, url, "-d", '{"prompt":"a","model":"x"}')["code"], "model_not_found")

    def test_a_huge_body(self):
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(b'{"prompt":"' + b"x" * 5_000_000 + b'"}')
        for header in ([], ["-H", "Expect:"], ["-H", "Transfer-Encoding: chunked"]):
            self.error(413, server.address + "/v1/completions", *header, "--data-binary", "@" + file.name)
        os.unlink(file.name)

    def test_routes_and_methods(self):
        self.error(404, server.address + "/no/such/route")
        self.error(404, server.address + "/v1/plan")
        self.error(405, server.address + "/v1/completions")
        self.error(405, "-X", "DELETE", server.address + "/health")
        status, headers = curl("-I", server.address + "/health")
        self.assertEqual(status, 200)
        self.assertIn("x-request-id", headers)
        status, headers = curl("-i", server.address + "/v1/completions")
        self.assertIn("\nAllow: POST", headers)

    def test_http_1_0(self):
        body = json.dumps({"prompt": "a", "max_tokens": 3, "stream": True})
        status, text = curl("--http1.0", server.address + "/v1/completions", "-d", body)
        self.assertEqual(status, 200)
        self.assertIn("data: [DONE]", text)

    def test_request_id_and_ignored_fields(self):
        body = json.dumps({"prompt": "a", "max_tokens": 1, "service_tier": "x"})
        _, text = curl("-i", server.address + "/v1/completions", "-H", "x-request-id: mine", "-d", body)
        self.assertIn("x-request-id: mine", text)
        self.assertIn("x-ignored-fields: service_tier", text)

    def test_two_requests_on_one_connection(self):
        run = subprocess.run(
            ["curl", "-sSv", server.address + "/health", server.address + "/version"], capture_output=True, text=True
        )
        self.assertIn("Re-using existing connection", run.stderr)


class Routes(unittest.TestCase):
    def post(self, path, body):
        status, _, text = server.post(path, body)
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def test_tokenize_and_back(self):
        text = "Hello, 世界! 🙂 <|im_start|>"
        tokens = self.post("/tokenize", {"prompt": text})
        self.assertEqual(tokens["count"], len(tokens["tokens"]))
        self.assertGreater(tokens["max_model_len"], 0)
        self.assertEqual(self.post("/detokenize", {"tokens": tokens["tokens"]})["prompt"], text)

    def test_chat_is_template_then_tokenizer(self):
        messages = [{"role": "user", "content": "Hi"}]
        prompt = self.post("/apply-template", {"messages": messages})["prompt"]
        self.assertIn("<|im_start|>user\nHi<|im_end|>", prompt)
        ids = self.post("/tokenize", {"prompt": prompt})["tokens"]
        self.assertEqual(self.post("/tokenize", {"messages": messages})["tokens"], ids)
        self.assertEqual(self.post("/v1/chat/completions/render", {"messages": messages})["token_ids"], ids)

    def test_tgi(self):
        parameters = {"max_new_tokens": 8, "details": True}
        whole = self.post("/generate", {"inputs": "One, two, three,", "parameters": parameters})
        self.assertEqual(whole["details"]["generated_tokens"], 8)
        status, _, text = server.post("/generate_stream", {"inputs": "One, two, three,", "parameters": parameters})
        self.assertEqual(status, 200)
        chunks = events(text.replace("data:{", "data: {"))
        self.assertEqual("".join(chunk["token"]["text"] for chunk in chunks), whole["generated_text"])
        self.assertEqual(chunks[-1]["generated_text"], whole["generated_text"])

    def test_metrics_pass_promtool(self):
        self.post("/v1/completions", {"prompt": "a", "max_tokens": 3})
        tool = shutil.which("promtool")
        self.assertIsNotNone(tool, "scripts/deps fetches promtool into build/tools, which ./test puts on the PATH")
        run = subprocess.run([tool, "check", "metrics"], input=server.get("/metrics")[1], capture_output=True, text=True)
        complaints = [line for line in (run.stdout + run.stderr).splitlines() if "should not contain ':'" not in line]
        self.assertEqual(complaints, [])

    def test_description_and_page(self):
        document = json.loads(server.get("/openapi.json")[1])
        self.assertIn("/v1/chat/completions", document["paths"])
        self.assertIn("<title>Headrace</title>", server.get("/")[1])


class Impolite(unittest.TestCase):
    def test_no_http(self):
        self.assertIn(b"400 Bad Request", server.raw(b"\x16\x03\x01 hello\r\n\r\n"))

    def test_pipelined(self):
        body = json.dumps({"prompt": "a", "max_tokens": 2})
        one = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        last = one.replace("Host: x", "Host: x\r\nConnection: close")
        answer = server.raw((one + one + last).encode())
        self.assertEqual(answer.count(b"HTTP/1.1 200 OK"), 3)


if __name__ == "__main__":
    unittest.main()
