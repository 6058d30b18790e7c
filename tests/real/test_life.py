"""Starting, a full queue, keys, and the end of a real server."""

import http.client
import json
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import unittest

from serving import HEADRACE, MODEL, Serving, events, wait_for

LONG = {"prompt": "Once upon a time", "max_tokens": 150, "ignore_eos": True, "stream": True, "temperature": 0}


def open_stream(server, body):
    connection = http.client.HTTPConnection(server.host, server.port, timeout=120)
    connection.request("POST", "/v1/completions", json.dumps(body), {"content-type": "application/json"})
    return connection, connection.getresponse()


def holds_back(process, number):
    """Whether the process has begun to take this signal by itself, as it does before it loads."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(re.search(r"SigBlk:\s*(\w+)", status)[1], 16) >> (number - 1) & 1 == 1


class Life(unittest.TestCase):
    def test_a_signal_while_loading_ends_at_once(self):
        for how, name in ((signal.SIGINT, "SIGINT"), (signal.SIGTERM, "SIGTERM")):
            command = [HEADRACE, "serve", MODEL, "--port", "0"]
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
                wait_for(lambda: holds_back(process, how), "the loading to begin")
                process.send_signal(how)
                _, errors = process.communicate(timeout=60)
                self.assertEqual(errors, f"headrace: stopped by {name} while loading\n")
                self.assertEqual(process.returncode, 1)

    def test_sigterm_drains(self):
        with Serving() as server:
            expected = json.loads(server.post("/v1/completions", {**LONG, "stream": False})[2])["choices"][0]["text"]
            connection, response = open_stream(server, LONG)
            first = response.readline()
            self.assertEqual(response.status, 200)
            server.process.send_signal(signal.SIGTERM)
            wait_for(lambda: server.get("/health")[0] == 503, "the draining to begin")
            self.assertEqual(server.get("/health/live")[0], 200)
            self.assertEqual(server.post("/v1/completions", {"prompt": "a"})[0], 503)
            chunks = events((first + response.read()).decode())
            connection.close()
            self.assertIsNone(chunks[-1])
            self.assertEqual("".join(c["choices"][0]["text"] for c in chunks[:-1]), expected)
            self.assertEqual(server.process.wait(timeout=60), 0)

    def test_a_second_sigterm_ends_streams_with_a_reason(self):
        with Serving() as server:
            connection, response = open_stream(server, {**LONG, "max_tokens": 8000})
            first = response.readline()
            server.process.send_signal(signal.SIGTERM)
            wait_for(lambda: server.get("/health")[0] == 503, "the draining to begin")
            server.process.send_signal(signal.SIGTERM)
            chunks = events((first + response.read()).decode())
            connection.close()
            self.assertIsNone(chunks[-1])
            self.assertEqual(chunks[-2]["error"]["type"], "service_unavailable_error")
            self.assertEqual(server.process.wait(timeout=60), 0)

    def test_a_full_queue_is_429(self):
        with Serving("--max-queue", "1", "--max-batch", "1") as server:
            body = {**LONG, "max_tokens": 4000}
            running = open_stream(server, body)
            running[1].readline()
            waiting = threading.Thread(target=server.post, args=("/v1/completions", {**LONG, "max_tokens": 4}))
            waiting.start()
            wait_for(lambda: server.metric("vllm:num_requests_waiting") == 1, "one to wait")
            status, headers, text = server.post("/v1/completions", body)
            self.assertEqual(status, 429, text)
            self.assertGreaterEqual(int(headers["retry-after"]), 1)
            self.assertEqual(server.get("/health/live")[0], 200)
            self.assertEqual(server.get("/health/ready")[0], 200)
            running[0].close()
            running[1].close()
            waiting.join()
            self.assertEqual(server.post("/v1/completions", {"prompt": "a", "max_tokens": 1})[0], 200)
            server.stop()

    def test_keys(self):
        with tempfile.NamedTemporaryFile("w") as keys:
            keys.write("secret\n")
            keys.flush()
            with Serving("--api-key-file", keys.name) as server:
                body = {"prompt": "a", "max_tokens": 1}
                self.assertEqual(server.post("/v1/completions", body)[0], 401)
                self.assertEqual(server.post("/v1/completions", body, {"Authorization": "Bearer no"})[0], 401)
                self.assertEqual(server.post("/v1/completions", body, {"Authorization": "Bearer secret"})[0], 200)
                server.stop()

    def test_a_taken_port_is_an_error_of_one_line(self):
        with Serving() as server:
            with self.assertRaises(RuntimeError) as caught:
                Serving(port=server.port)
            self.assertIn("is taken", str(caught.exception))
            server.stop()


if __name__ == "__main__":
    unittest.main()
