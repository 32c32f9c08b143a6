"""Debian's Chromium, headless, for tests of web pages. It is downloaded once to ~/.cache/muster, and not installed."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from muster_dev.cache import fill_folder
from support import debian_packages
from support.browser import Page

_START_SECONDS = 60


def can_download() -> bool:
    """Whether this machine has Chromium, or can download it."""
    return shutil.which("chromium") is not None or debian_packages.can_unpack()


@asynccontextmanager
async def open_page(profile: Path, *, width: int = 1200, height: int = 800) -> AsyncIterator[Page]:
    """Start Chromium with its profile in the empty folder `profile`, and open an empty page of this size."""
    program, environment = _find_program()
    process = await asyncio.create_subprocess_exec(
        program,
        # Its sandbox needs rights that root in a container does not have; the pages are our own.
        *("--headless", "--no-sandbox", "--remote-debugging-port=0", f"--user-data-dir={profile}"),
        *("--disable-gpu", "--no-first-run", "--disable-background-networking", f"--window-size={width},{height}"),
        "about:blank",
        env={**os.environ, **environment, "TMPDIR": str(profile)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        address = await asyncio.wait_for(_read_address(process), _START_SECONDS)
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(await _find_page(session, address), max_msg_size=0) as socket,
            Page.open(socket, width, height) as page,
        ):
            yield page
    finally:
        process.kill()
        await process.communicate()


async def _read_address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    printed = []
    async for line in process.stderr:
        printed.append(line.decode())
        start = "DevTools listening on ws://"
        if printed[-1].startswith(start):
            return printed[-1].removeprefix(start).split("/")[0]
    raise AssertionError(f"Chromium did not start: {''.join(printed)}")


async def _find_page(session: aiohttp.ClientSession, address: str) -> str:
    async with session.get(f"http://{address}/json/list") as response:
        targets = await response.json()
    url: str = next(target["webSocketDebuggerUrl"] for target in targets if target["type"] == "page")
    return url


def _find_program() -> tuple[str, dict[str, str]]:
    installed = shutil.which("chromium")
    if installed is not None:
        return installed, {}
    root = fill_folder(f"chromium-{debian_packages.compute_digest(('chromium',))}", _unpack)
    libraries = next((root / "usr" / "lib").glob("*-linux-gnu"))
    return str(root / "usr" / "lib" / "chromium" / "chromium"), {
        "LD_LIBRARY_PATH": f"{libraries}:{libraries / 'pulseaudio'}"
    }


def _unpack(folder: Path) -> None:
    # The libraries that Chromium needs and this machine lacks.
    command = ["apt-get", "install", "--simulate", "--no-install-recommends", "chromium"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    packages = [line.split()[1] for line in printed.splitlines() if line.startswith("Inst ")]
    folder.mkdir()
    debian_packages.unpack(packages, folder)
