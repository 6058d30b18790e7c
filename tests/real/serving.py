"""A headrace server as a child process, and small clients for it. Used by the tests of this folder."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

HEADRACE = os.environ.get("HEADRACE", "headrace")
MODEL = os.environ.get("HEADRACE_MODEL", "smollm2")


class Serving:
    """`headrace serve MODEL` on a free port, ready when made. Stops with SIGTERM in stop()."""

    def __init__(self, *flags, port=0):
        command = [HEADRACE, "serve", MODEL, "--port", str(port), "--json", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            _, errors = self.process.communicate()
            raise RuntimeError(f"{command}: {errors}")
        self.info = json.loads(line)
        self.address = self.info["address"]
        self.model = self.info["model"]
        host, port = re.match(r"http://(.*):(\d+)$", self.address).groups()
        self.host, self.port = host, int(port)
        self._drain_log()
        wait_for(lambda: self.get("/health")[0] == 200, "the server to be ready", 60)

    def _drain_log(self):
        # The log is read all the time, so that a full pipe never stops the server.
        self.log = []
        self.log_reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr))
        self.log_reader.start()

    def get(self, path):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def post(self, path, body, headers=None):
        """(status, headers, text); `body` is an object or text."""
        data = body if isinstance(body, (str, bytes)) else json.dumps(body)
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        try:
            connection.request("POST", path, data, {"content-type": "application/json", **(headers or {})})
            response = connection.getresponse()
            return response.status, dict((k.lower(), v) for k, v in response.getheaders()), response.read().decode()
        finally:
            connection.close()

    def raw(self, data, timeout=60):
        """Sends bytes, returns all that comes back until the server closes."""
        with socket.create_connection((self.host, self.port), timeout=timeout) as connection:
            connection.sendall(data)
            connection.settimeout(timeout)
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
            return b"".join(parts)

    def metric(self, name, **labels):
        """The value of one series; labels must be among its own."""
        for line in self.get("/metrics")[1].splitlines():
            match = re.match(r"([a-zA-Z_:]+)\{(.*)\} (\S+)$", line)
            if match and match[1] == name and all(f'{k}="{v}"' in match[2] for k, v in labels.items()):
                return float(match[3])
        raise KeyError(name)

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log_reader.join()
        self.process.stdout.close()
        self.process.stderr.close()


def wait_for(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError(f"waited {seconds} s in vain for {what}")


def events(text):
    """The data of a stream's events, [DONE] as None."""
    out = []
    for block in text.split("\n\n"):
        if block.startswith("data: "):
            data = block[len("data: ") :]
            out.append(None if data == "[DONE]" else json.loads(data))
    return out

