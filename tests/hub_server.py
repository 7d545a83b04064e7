#!/usr/bin/env python3
"""A web server with the manners, good and bad, that the HTTP client and the hub reader must cope with.

    hub_server.py [FOLDER]    listens on 127.0.0.1, prints its port, serves until its stdin is closed

/api/models/ORG/NAME/revision/REV and /ORG/NAME/resolve/COMMIT/FILE speak like the Hugging Face Hub about the folders
FOLDER/ORG/NAME; everything under ORG "gated" wants the bearer token "good". The other paths are in BEHAVIOURS.
/log gives, one a line, what was asked since it was last read: method, path, range, bytes sent, authorization.
"""
import hashlib
import http.server
import json
import os
import sys
import threading
import time
import urllib.parse

ROOT = sys.argv[1] if len(sys.argv) > 1 else None
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONTENT = bytes(i * 7 % 251 for i in range(1 << 20))
log, counts, lock = [], {}, threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def log_message(self, *_):
        pass

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        self.url_path, self.sent = urllib.parse.unquote(url.path), 0
        try:
            BEHAVIOURS.get(self.url_path, Handler.hub)(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        if self.url_path != "/log":
            with lock:
                log.append("%s %s range=%s sent=%d auth=%s agent=%s" % (
                    self.command, self.path, self.headers.get("Range", "-"), self.sent,
                    self.headers.get("Authorization", "-"), self.headers.get("User-Agent", "-")))

    def answer(self, status, body=b"", headers=(), length=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.sent += len(body)
        self.wfile.write(body)

    def nth(self):
        """How often this path was asked for, this time included."""
        with lock:
            counts[self.path] = counts.get(self.path, 0) + 1
            return counts[self.path]

    def bytes_of(self, content, etag='"v1"', headers=()):
        """Answers a range request as RFC 9110 says."""
        wanted = self.headers.get("Range", "")
        headers = [("ETag", etag), *headers]
        if not wanted.startswith("bytes="):
            return self.answer(200, content, headers)
        first, last = (int(text) for text in wanted[6:].split("-"))
        if first >= len(content):
            return self.answer(416, b"", [("Content-Range", "bytes */%d" % len(content))])
        last = min(last, len(content) - 1)
        headers.append(("Content-Range", "bytes %d-%d/%d" % (first, last, len(content))))
        return self.answer(206, content[first:last + 1], headers)

    # ------------------------------------------------------------ behaviours

    def file(self):
        self.bytes_of(CONTENT)

    def empty(self):
        self.bytes_of(b"")

    def ignores_range(self):
        self.answer(200, CONTENT)

    def lies_about_range(self):
        self.answer(206, CONTENT[:100], [("Content-Range", "bytes 500-599/1048576")])

    def no_content_range(self):
        self.answer(206, CONTENT[:100])

    def short_range(self):
        self.answer(206, CONTENT[:50], [("Content-Range", "bytes 0-99/1048576")])

    def authorization(self):
        self.answer(200, self.headers.get("Authorization", "none").encode())

    def redirect(self):
        self.answer(302, b"", [("Location", "/authorization"), ("X-Linked-Etag", '"linked"')])

    def redirect_elsewhere(self):
        self.answer(302, b"", [("Location", "http://localhost:%d/authorization" % PORT)])

    def redirect_loop(self):
        self.answer(302, b"", [("Location", "/redirect-loop")])

    def redirect_to_file(self):
        self.answer(302, b"", [("Location", "file:///etc/passwd")])

    def busy_twice(self):
        if self.nth() <= 2:
            return self.answer(429, b"", [("Retry-After", "0")])
        return self.answer(200, b"at last")

    def always_503(self):
        self.nth()
        self.answer(503)

    def cut_once(self):
        if self.nth() == 1:
            self.answer(200, CONTENT[:1000], length=2000)
            self.close_connection = True
            return self.connection.close()
        return self.answer(200, CONTENT[:2000])

    def always_cut(self):
        self.answer(200, CONTENT[:1000], length=2000)
        self.close_connection = True

    def silent(self):
        STOP.wait(12)
        self.close_connection = True

    def stalls(self):
        self.answer(200, b"", length=100)
        for _ in range(60):
            if STOP.wait(0.2):
                return

    def endless(self):
        self.send_response(200)
        self.end_headers()
        while not STOP.is_set():
            self.wfile.write(CONTENT)
            self.sent += len(CONTENT)

    def endless_header(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not STOP.is_set():
            self.wfile.write(b"X-Filler: " + b"x" * 1000 + b"\r\n")

    def no_http(self):
        self.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        self.close_connection = True

    def the_log(self):
        with lock:
            text = "\n".join(log)
            log.clear()
        self.answer(200, text.encode())

    # ------------------------------------------------------------ the hub

    def hub(self):
        parts = self.url_path.strip("/").split("/")
        if ROOT is None:
            return self.answer(404)
        if "gated" in parts and not self.url_path.startswith("/cdn/") and \
                self.headers.get("Authorization") != "Bearer good":
            return self.answer(401, b"", [("X-Error-Message", "Access to this model is restricted.")])
        if parts[:2] == ["api", "models"] and len(parts) == 6:
            return self.listing(parts[2] + "/" + parts[3], parts[5])
        if len(parts) > 4 and parts[2] == "resolve" and parts[3] == COMMIT:
            path = "/".join(parts[:2] + parts[4:])
            if not os.path.isfile(os.path.join(ROOT, path)):
                return self.answer(404)
            location = "http://localhost:%d/cdn/%s?signature=secret" % (PORT, urllib.parse.quote(path))
            return self.answer(302, b"", [("Location", location), ("X-Repo-Commit", COMMIT)])
        if parts[0] == "cdn":
            return self.stored(os.path.join(ROOT, *parts[1:]))
        return self.answer(404)

    def stored(self, path):
        if self.headers.get("Authorization"):
            return self.answer(400, b"storage wants no token")
        size = os.path.getsize(path)
        first, last = (int(text) for text in self.headers["Range"][6:].split("-"))
        last = min(last, size - 1)
        with open(path, "rb") as file:
            file.seek(first)
            content = file.read(last - first + 1)
        return self.answer(206, content, [("Content-Range", "bytes %d-%d/%d" % (first, last, size))])

    def listing(self, repository, revision):
        folder = os.path.join(ROOT, repository)
        if not os.path.isdir(folder) or revision != "main":
            return self.answer(404, b"", [("X-Error-Message", "Repository not found")])
        siblings = []
        for where, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(where, name)
                blob = hashlib.sha1(("%s %f" % (path, os.path.getmtime(path))).encode()).hexdigest()
                siblings.append({"rfilename": os.path.relpath(path, folder), "size": os.path.getsize(path),
                                 "blobId": blob})
        siblings.append({"rfilename": "../../etc/passwd", "size": 1, "blobId": "x"})
        return self.answer(200, json.dumps({"id": repository, "sha": COMMIT, "siblings": siblings}).encode())


BEHAVIOURS = {
    "/file": Handler.file,
    "/empty": Handler.empty,
    "/ignores-range": Handler.ignores_range,
    "/lies-about-range": Handler.lies_about_range,
    "/no-content-range": Handler.no_content_range,
    "/short-range": Handler.short_range,
    "/authorization": Handler.authorization,
    "/redirect": Handler.redirect,
    "/redirect-elsewhere": Handler.redirect_elsewhere,
    "/redirect-loop": Handler.redirect_loop,
    "/redirect-to-file": Handler.redirect_to_file,
    "/busy-twice": Handler.busy_twice,
    "/always-503": Handler.always_503,
    "/cut-once": Handler.cut_once,
    "/always-cut": Handler.always_cut,
    "/silent": Handler.silent,
    "/stalls": Handler.stalls,
    "/endless": Handler.endless,
    "/endless-header": Handler.endless_header,
    "/no-http": Handler.no_http,
    "/log": Handler.the_log,
}

STOP = threading.Event()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
server.handle_error = lambda *_: None  # clients of these tests hang up, that is what is tested
PORT = server.server_address[1]
threading.Thread(target=server.serve_forever, daemon=True).start()
print(PORT, flush=True)
sys.stdin.read()
STOP.set()
time.sleep(0.05)
