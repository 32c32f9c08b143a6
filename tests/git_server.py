"""A git server: git's own http-backend behind HTTP, for repositories below one folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

from http_site import HERE, At, http_site

_AUTHOR = {
    "GIT_AUTHOR_NAME": "muster",
    "GIT_AUTHOR_EMAIL": "muster@example.org",
    "GIT_COMMITTER_NAME": "muster",
    "GIT_COMMITTER_EMAIL": "muster@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *arguments: str) -> str:
    """What git prints, without the user's configuration."""
    environment = {**os.environ, **_AUTHOR}
    done = subprocess.run(("git", *arguments), cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def new_repository(folder: Path) -> Path:
    """An empty repository that hands out any commit it has, as the large hosts do."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    git(folder, "config", "uploadpack.allowReachableSHA1InWant", "true")
    return folder


def commit(folder: Path, files: dict[str, str]) -> str:
    """Write the files and commit all; the commit's hash."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "a change")
    return git(folder, "rev-parse", "HEAD")


class GitServer:
    """`url` is the server's root; `asked` are the paths that were asked for."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.redirect: str | None = None


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
            if site.redirect is not None:
                self.send_response(302)
                self.send_header("Location", site.redirect)
                self.end_headers()
                return
            head, _, content = _backend(root, self, body).partition(b"\r\n\r\n")
            headers = [line.split(": ", 1) for line in head.decode("latin-1").splitlines()]
            status = next((value for name, value in headers if name == "Status"), "200 OK")
            self.send_response(int(status.split(" ")[0]))
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

    with http_site(Handler, at) as site.url:
        yield site


def _backend(root: Path, request: BaseHTTPRequestHandler, body: bytes) -> bytes:
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
    # its exit code only repeats what it answers
    done = subprocess.run(("git", "http-backend"), env=environment, input=body, check=False, capture_output=True)
    return done.stdout
