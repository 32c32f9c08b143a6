"""A git server: git's own http-backend behind HTTP, for repositories below one folder."""

from __future__ import annotations

import os
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

from fakes.http_site import HERE, At, http_site

_AUTHOR = {
    "GIT_AUTHOR_NAME": "muster",
    "GIT_AUTHOR_EMAIL": "muster@example.org",
    "GIT_COMMITTER_NAME": "muster",
    "GIT_COMMITTER_EMAIL": "muster@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def run_git(folder: Path, *arguments: str) -> str:
    """Run git without the user's configuration; return its output."""
    environment = {**os.environ, **_AUTHOR}
    done = subprocess.run(("git", *arguments), cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def create_repository(folder: Path) -> Path:
    """Return an empty repository that serves any of its commits, as the large hosts do."""
    folder.mkdir(parents=True)
    run_git(folder, "init", "--quiet")
    run_git(folder, "config", "uploadpack.allowReachableSHA1InWant", "true")
    return folder


def commit(folder: Path, files: dict[str, str]) -> str:
    """Write the files and commit all; return the commit's hash."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    run_git(folder, "add", ".")
    run_git(folder, "commit", "--quiet", "--message", "a change")
    return run_git(folder, "rev-parse", "HEAD")


class GitServer:
    """`url` is the server's root, `asked` the requested paths, `shown` the received credentials.

    `password` is the required "user:token" (None: no password). `says` is the text of a refusal, with the received
    credentials for {}.
    """

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.shown: list[str | None] = []
        self.redirect: str | None = None
        self.password: str | None = None
        self.says: str | None = None


@contextmanager
def git_server(root: Path, at: At = HERE) -> Iterator[GitServer]:
    """Serve every repository below `root` on a port of this machine."""
    site = GitServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

        def log_message(self, *_: object) -> None:
            pass

        def _answer(self, body: bytes) -> None:
            site.asked.append(self.path)
            site.shown.append(self.headers.get("Authorization"))
            if site.says is not None:
                refusal = b"# service=git-upload-pack\n", b"", b"ERR " + site.says.format(site.shown[-1]).encode()
                self._send(200, {"Content-Type": "application/x-git-upload-pack-advertisement"}, make_packets(*refusal))
                return
            if site.password is not None and site.shown[-1] != _make_basic_authorization(site.password):
                self._send(401, {"WWW-Authenticate": 'Basic realm="code"'}, b"")
                return
            if site.redirect is not None:
                self.send_response(302)
                self.send_header("Location", site.redirect)
                self.end_headers()
                return
            head, _, content = _run_http_backend(root, self, body).partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode("latin-1").splitlines())
            status = headers.get("Status", "200 OK")
            self._send(int(status.split(" ")[0]), headers, content)

        def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    with http_site(Handler, at) as site.url:
        yield site


@contextmanager
def pack_server(pack: bytes) -> Iterator[str]:
    """Yield the URL of a repository that answers each request for a commit with this pack, even an invalid one."""
    service = "application/x-git-upload-pack"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = make_packets(b"# service=git-upload-pack\n", b"", b"1" * 40 + b" HEAD\0side-band-64k shallow\n", b"")
            self._send(f"{service}-advertisement", said)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            pieces = (b"\1" + pack[at : at + 60_000] for at in range(0, len(pack), 60_000))
            self._send(f"{service}-result", make_packets(b"", b"NAK\n", *pieces, b""))

        def _send(self, kind: str, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http_site(Handler) as url:
        yield f"{url}/code.git"


def make_packets(*lines: bytes) -> bytes:
    """Return the packets of git's pkt-line protocol; b"" marks the end of a section."""
    return b"".join(b"%04x%s" % (len(line) + 4, line) if line else b"0000" for line in lines)


def _make_basic_authorization(password: str) -> str:
    return f"Basic {b64encode(password.encode()).decode()}"


def _run_http_backend(root: Path, request: BaseHTTPRequestHandler, body: bytes) -> bytes:
    address = urlsplit(request.path)
    environment = {
        **os.environ,
        **_AUTHOR,
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_PROJECT_ROOT": str(root),
        "PATH_INFO": address.path,
        "QUERY_STRING": address.query,
        "REQUEST_METHOD": request.command,
        "CONTENT_TYPE": request.headers.get("Content-Type") or "",
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding") or "",
        "GIT_PROTOCOL": request.headers.get("Git-Protocol") or "",
    }
    # its exit code only repeats the answer
    done = subprocess.run(("git", "http-backend"), env=environment, input=body, check=False, capture_output=True)
    return done.stdout
