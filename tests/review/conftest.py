"""A small cleaned table, opened for review."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn

from cellmend import CellMender
from cellmend.decisions.decision import Decision, read_decisions, standing
from cellmend.files.formats import read_file
from cellmend.jobs import Cleaning, clean
from cellmend.review.results import open_results
from cellmend.review.review import Review
from cellmend.review.server import application
from cellmend.settings import Threshold
from tests.conftest import SMALL

TOKEN = "a-token-of-this-start"  # noqa: S105
PORT = 8123
OWN = {"X-Cellmend-Token": TOKEN}
HOSTILE = "<img src=x onerror=\"document.title='run'\">"
ROWS = 200
WRONG = 9  # cells
FAILED = re.compile(r"status of (4\d\d|507)")  # what a browser says of an answer that refuses


def dirty_csv() -> str:
    """Parcels with an identifier, quotes, trailing spaces, misspelled cities, gross widths and one hostile cell."""
    rng = np.random.default_rng(0)
    width = rng.normal(10, 1, ROWS).round(1)
    length = (2 * width).round(1)
    width[[3, 40, 77]] *= 100
    city = np.array(["Rome", "Oslo", "Lima"])[rng.integers(0, 3, ROWS)].astype(object)
    city[[5, 6, 7, 8]] = "Oslx"
    city[20] = "Limq"
    city[30] = HOSTILE.replace('"', '""')
    lines = [f'P{row:04d},"{city[row]}",{width[row]:.1f}, {length[row]:.1f} ,note {row}' for row in range(ROWS)]
    return "\r\n".join(["parcel_id,city,width,length,note", *lines]) + "\r\n"


@pytest.fixture(scope="session")
def cleaned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table and its folder of results; tests work on copies."""
    place = tmp_path_factory.mktemp("cleaned")
    table = place / "parcels.csv"
    table.write_bytes(dirty_csv().encode())
    schema = {"parcel_id": "ignore", "note": "ignore", "city": "category"}
    mender = CellMender(**SMALL, schema=schema, repair_from=0.1)  # a person looks at all repairs
    clean(read_file(table), mender, Cleaning(place / "results", Threshold(top=WRONG), table=str(table)))
    return place


@pytest.fixture
def folder(cleaned: Path, tmp_path: Path) -> Path:
    """A folder of results that the test may change, beside its table."""
    shutil.copytree(cleaned, tmp_path / "own")
    return tmp_path / "own" / "results"


@pytest.fixture
def review(folder: Path) -> Review:
    """Opened, the model not yet read."""
    return Review(open_results(folder, None))


def wait_for_teacher(review: Review) -> None:
    """Until the model is no longer at work."""
    for thread in threading.enumerate():
        if thread.name == "teacher":
            thread.join(120)
    assert not review.teacher.progress.is_running


class Client:
    """Speaks to the application of a review without a network."""

    def __init__(self, review: Review) -> None:
        self.app = application(review, token=TOKEN, port=PORT)

    def get(self, path: str, headers: dict[str, str] = OWN) -> httpx.Response:
        return asyncio.run(self._send("GET", path, headers))

    def post(self, path: str, headers: dict[str, str] = OWN, **body: Any) -> httpx.Response:
        return asyncio.run(self._send("POST", path, headers, **body))

    def tell(self, deed: str, **asked: Any) -> dict[str, Any]:
        """A deed that must succeed."""
        answer = self.post(f"/api/{deed}", json=asked)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def _send(self, method: str, path: str, headers: dict[str, str], **body: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{PORT}") as client:
            return await client.request(method, path, headers=headers, **body)


@pytest.fixture
def client(review: Review) -> Client:
    return Client(review)


@pytest.fixture
def address(review: Review) -> Iterator[str]:
    """Where a server of this process shows the review; the model is not read until a test asks for it."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        config = uvicorn.Config(application(review, token=TOKEN, port=port), log_level="error", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        yield f"http://127.0.0.1:{port}/?token={TOKEN}"
        server.should_exit = server.force_exit = True
        thread.join(30)


@contextmanager
def served(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`cellmend review` as a user runs it: the process, and the address that it prints."""
    command = [sys.executable, "-m", "cellmend.cli", "review", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:  # noqa: S603
        try:
            assert server.stderr is not None
            yield server, re.findall(r"http://\S+", server.stderr.readline())[0]
        finally:
            server.kill()


# ---------------------------------------------------------------- in a browser


@pytest.fixture
def page(chromium: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The open page; at the end no script must have failed in it, and nothing come from elsewhere."""
    context = chromium.new_context(**getattr(request, "param", {}))
    page = context.new_page()
    troubles: list[str] = []
    requests: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: troubles.append(dialog.message))
    page.on("console", lambda message: None if FAILED.search(message.text) else troubles.append(message.text))
    page.on("request", lambda request: requests.append(request.url))
    opened(page, address)
    yield page
    assert troubles == []
    base = address.partition("?")[0]
    assert [url for url in requests if not url.startswith((base, f"blob:{base.rstrip('/')}"))] == []
    context.close()


def opened(page: Any, address: str) -> Any:
    """The page, with one cell after another."""
    page.goto(address.partition("#")[0])
    page.wait_for_selector("html[data-ready]")
    view(page, "Decide")
    page.locator("#card h3").wait_for()
    return page


def cell(page: Any) -> tuple[int, str]:
    """The cell that is asked about."""
    name, _, row = page.locator("#card h3").inner_text().rpartition(" row ")
    return int(row.replace(",", "")), name


def press(page: Any, key: str) -> None:
    """A key that decides; then the next cell is there."""
    before = page.locator("#card h3").inner_text()
    page.keyboard.press(key)
    page.wait_for_function("before => document.querySelector('#card h3').innerText !== before", arg=before)


def saved(page: Any) -> None:
    """All that was decided is acknowledged."""
    page.wait_for_function("() => document.querySelector('#saving').textContent === ''")


def decided(review: Review) -> list[Decision]:
    path = review.results.decisions
    return standing(read_decisions(path)) if path.exists() else []


def view(page: Any, name: str) -> None:
    page.locator(f".view[data-view={name.lower()}]").click()
    page.wait_for_selector(f"#{name.lower()}:not([hidden])")


def read(page: Any, review: Review) -> None:
    """The model is read, and the page knows."""
    review.start()
    wait_for_teacher(review)
    page.locator("#card .news", has_text="New suggestions").wait_for()


def notice(page: Any, words: str) -> None:
    page.locator("#notice").filter(has_text=words).wait_for()
