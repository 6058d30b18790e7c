"""A long time of mixed traffic: streams, clients that go away, prompts that share beginnings, a queue that overflows,
requests that are wrong. Every request must get exactly one ending, and afterwards the server must be as it was.

HEADRACE_SOAK_SECONDS (1200) says how long, HEADRACE_SOAK_SEED which traffic.
"""

import collections
import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import socket
import sys
import threading
import time
import unittest

from serving import Serving, events, wait_for

SECONDS = float(os.environ.get("HEADRACE_SOAK_SECONDS", 1200))
SEED = int(os.environ.get("HEADRACE_SOAK_SEED", random.randrange(1 << 30)))
NUM_CLIENTS = 12
MAX_BODY = 256 * 1024
# Room for four sequences, but not for all they may grow to: some are preempted. Six may wait, so some get 429.
FLAGS = ["--context", "1024", "--kv-memory", "40M", "--max-batch", "4", "--max-queue", "6", "--max-body", str(MAX_BODY)]
WARM_UP = min(60.0, SECONDS / 4)
MAX_RSS_GROWTH = 0.05

BEGINNINGS = [
    "You are the keeper of a lighthouse. " + "The sea is calm and the lamp is lit. " * 12,
    "A list of all rivers: " + "the Danube, the Rhine, the Elbe, the Oder, " * 10,
    "Once upon a time ",
]
# Asked again and again: in whatever company, the answer is the same.
KNOWN = {"prompt": BEGINNINGS[0] + "Tonight", "max_tokens": 24, "temperature": 0}


class Traffic:
    """One client's requests. `done` counts endings by kind, `wrong` holds sentences about what must not be."""

    def __init__(self, server, seed, known_answer):
        self.server = server
        self.random = random.Random(seed)
        self.known_answer = known_answer
        self.done = collections.Counter()
        self.wrong = []
        self.kinds = [
            (self.ask_the_known, 2),
            (self.ask, 4),
            (self.stream, 5),
            (self.leave_a_stream, 4),
            (self.leave_before_an_answer, 2),
            (self.stop_in_the_middle_of_a_body, 1),
            (self.meet_a_deadline, 1),
            (self.say_nonsense, 2),
            (self.say_too_much, 1),
        ]

    def run(self, stop):
        names, weights = zip(*self.kinds)
        while not stop.is_set() and len(self.wrong) < 5:
            kind = self.random.choices(names, weights)[0]
            try:
                ending = kind()
                self.done[f"{kind.__name__} {ending}"] += 1
                time.sleep(self.random.random() * (1 if ending == 429 else 0.05))
            except Exception as error:  # pylint: disable=broad-except
                self.wrong.append(f"{kind.__name__}: {type(error).__name__}: {error}")

    def expect(self, holds, what):
        if not holds:
            raise AssertionError(what)

    def body(self, **fields):
        words = " ".join(self.random.choice(("light", "water", "storm", "ship", "bird", "47")) for _ in range(self.random.randrange(1, 40)))
        text = self.random.choice(BEGINNINGS) + words
        body = {"max_tokens": self.random.randrange(1, 80), "seed": self.random.randrange(1000), "n": self.random.choice((1, 1, 1, 2))}
        body["temperature"] = self.random.choice((0, 0.7, 1.3))
        if self.random.random() < 0.3:
            body |= {"top_p": 0.9, "top_k": 30, "repetition_penalty": 1.1, "stop": ["\n\n"]}
        if self.random.random() < 0.3:
            body |= {"ignore_eos": True, "priority": self.random.randrange(-2, 3)}
        if self.random.random() < 0.5:
            return "/v1/chat/completions", {"messages": [{"role": "user", "content": text}], **body, **fields}
        return "/v1/completions", {"prompt": text, **body, **fields}

    def ending(self, status, text, *others):
        """What a whole answer is: 200 with its choices finished, 429, or one of `others`; errors in their form."""
        answer = json.loads(text)
        self.expect(status in (200, 429, *others), f"status {status}: {text[:300]}")
        if status == 200:
            self.expect(all(c["finish_reason"] in ("stop", "length") for c in answer["choices"]), text[:300])
        else:
            self.expect(set(answer["error"]) == {"message", "type", "param", "code"}, text[:300])
        return status

    def ask_the_known(self):
        status, _, text = self.server.post("/v1/completions", KNOWN)
        if self.ending(status, text) == 200:
            self.expect(json.loads(text)["choices"][0]["text"] == self.known_answer, f"another answer: {text[:300]}")
        return status

    def ask(self):
        path, body = self.body()
        status, _, text = self.server.post(path, body)
        return self.ending(status, text)

    def stream(self):
        path, body = self.body(stream=True)
        status, _, text = self.server.post(path, body)
        if status != 200:
            return self.ending(status, text)
        chunks = events(text)
        self.expect(chunks[-1] is None and chunks.count(None) == 1, f"not one [DONE] at the end: {text[-300:]}")
        self.expect(all("error" not in chunk for chunk in chunks[:-1]), f"an error in a stream: {text[-300:]}")
        ends = collections.Counter(c["index"] for chunk in chunks[:-1] for c in chunk["choices"] if c["finish_reason"])
        self.expect(ends == {i: 1 for i in range(body["n"])}, f"not one end of each choice: {ends}")
        return status

    def leave_a_stream(self):
        path, body = self.body(stream=True, max_tokens=400, ignore_eos=True)
        connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=120)
        try:
            connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
            response = connection.getresponse()
            if response.status != 200:
                return self.ending(response.status, response.read().decode())
            for _ in range(self.random.randrange(12)):
                response.readline()
            return "left"
        finally:
            connection.close()

    def send_and_leave(self, data, seconds):
        with socket.create_connection((self.server.host, self.server.port), timeout=60) as connection:
            connection.sendall(data)
            time.sleep(seconds)
        return "left"

    def request_bytes(self):
        path, body = self.body(stream=self.random.random() < 0.5)
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        return head.encode(), data

    def leave_before_an_answer(self):
        head, data = self.request_bytes()
        return self.send_and_leave(head + data, self.random.random() * 0.1)

    def stop_in_the_middle_of_a_body(self):
        head, data = self.request_bytes()
        return self.send_and_leave(head + data[: self.random.randrange(len(data))], 0.01)

    def meet_a_deadline(self):
        path, body = self.body(deadline_ms=self.random.randrange(1, 400), max_tokens=400, ignore_eos=True)
        status, _, text = self.server.post(path, body)
        return self.ending(status, text, 504)

    def say_nonsense(self):
        path, body = self.body()
        broken = self.random.choice(
            (
                (400, path, json.dumps(body)[:-2]),
                (400, path, "[" * 3000),
                (400, path, b'{"prompt":"\xff"}'),
                (400, path, {**body, "temperature": "hot"}),
                (400, path, {**body, "max_tokens": -7}),
                (400, "/v1/completions", {"prompt": "far " * 5000}),
                (400, "/v1/chat/completions", {"messages": []}),
                (404, path, {**body, "model": "no-such-model"}),
                (404, "/v1/nothing", body),
            )
        )
        status, _, text = self.server.post(broken[1], broken[2])
        self.expect(status in (broken[0], 429), f"{status} instead of {broken[0]}: {text[:300]}")
        return self.ending(status, text, status)

    def say_too_much(self):
        data = b'{"prompt":"' + b"x" * (2 * MAX_BODY) + b'"}'
        try:
            status, _, text = self.server.post("/v1/completions", data)
        except (ConnectionResetError, BrokenPipeError):
            return "closed"  # the answer came and the connection was closed before all was sent
        self.expect(status == 413, f"status {status}: {text[:300]}")
        return self.ending(status, text, 413)


def rss_bytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))) * 1024


def num_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Soak(unittest.TestCase):
    def watch(self, server, traffic, begin):
        """Waits out the time, saying each minute how it goes; the server's memory once it was warm."""
        warm, last_said = None, begin
        while (now := time.monotonic()) < begin + SECONDS and not any(t.wrong for t in traffic):
            self.assertIsNone(server.process.poll(), "the server is gone")
            if warm is None and now >= begin + WARM_UP:
                warm = rss_bytes(server.process.pid)
            if now >= last_said + 60:
                last_said = now
                self.say(server, traffic, now - begin)
            time.sleep(0.5)
        return warm

    def touch_memory(self, server):
        """Long prompts that share nothing, several at once and more than the KV memory holds: what the server will ever
        touch of it and of its workspace it has touched afterwards, so that growth from then on is a leak."""

        def ask(seed):
            words = random.Random(seed)
            prompt = " ".join(str(words.randrange(10)) for _ in range(450))
            return server.post("/v1/completions", {"prompt": prompt, "max_tokens": 4})[0]

        with concurrent.futures.ThreadPoolExecutor(4) as clients:
            self.assertEqual(list(clients.map(ask, range(4))), [200] * 4)

    def say(self, server, traffic, seconds):
        total = sum((t.done for t in traffic), collections.Counter())
        rss = rss_bytes(server.process.pid) / 2**20
        print(f"{seconds:.0f} s: {sum(total.values())} requests, {rss:.1f} MiB", dict(sorted(total.items())), file=sys.stderr)

    def check_idle(self, server):
        wait_for(lambda: server.metric("vllm:num_requests_running") == 0, "nothing to run", 60)
        wait_for(lambda: server.metric("vllm:num_requests_waiting") == 0, "nothing to wait", 60)
        wait_for(lambda: server.metric("vllm:kv_cache_usage_perc") == 0, "the KV to be free or cached", 60)
        self.assertEqual(server.metric("headrace_requests_total", outcome="failed"), 0)

    def test_mixed_traffic(self):
        print(f"HEADRACE_SOAK_SEED={SEED} HEADRACE_SOAK_SECONDS={SECONDS:.0f}", file=sys.stderr)
        with Serving(*FLAGS) as server:
            known = json.loads(server.post("/v1/completions", KNOWN)[2])["choices"][0]["text"]
            self.touch_memory(server)
            files_before = num_files(server.process.pid)
            traffic = [Traffic(server, SEED + i, known) for i in range(NUM_CLIENTS)]
            stop = threading.Event()
            threads = [threading.Thread(target=t.run, args=(stop,)) for t in traffic]
            begin = time.monotonic()
            for thread in threads:
                thread.start()
            try:
                warm = self.watch(server, traffic, begin)
                rss = rss_bytes(server.process.pid)
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
            self.say(server, traffic, time.monotonic() - begin)
            self.assertEqual([sentence for t in traffic for sentence in t.wrong], [])
            self.check_idle(server)
            self.assertLessEqual(rss, warm * (1 + MAX_RSS_GROWTH))
            wait_for(lambda: num_files(server.process.pid) <= files_before + 2, "connections to be closed")
            self.assertEqual(json.loads(server.post("/v1/completions", KNOWN)[2])["choices"][0]["text"], known)
            self.assertIsNone(server.process.poll())
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main()
