"""Who is let in, and what a browser is told: each promise of docs/review.md about safety."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cellmend.review.guard import LARGEST_BODY, LARGEST_QUERY
from cellmend.review.review import Review
from cellmend.review.server import ASSETS, serve
from tests.review.conftest import OWN, PORT, TOKEN, Client

NOBODY: dict[str, str] = {}


def decision(review: Review) -> dict[str, Any]:
    flag = review.flagged.flags[0]
    return {"row": flag.row, "column": flag.column, "verdict": "right"}


def test_the_page_and_its_answers_need_the_token(client: Client) -> None:
    assert client.get("/", NOBODY).status_code == 403
    assert client.get("/?token=another", NOBODY).status_code == 403
    assert client.get("/api/state", NOBODY).status_code == 403
    assert client.get("/api/state", headers={"X-Cellmend-Token": "another"}).status_code == 403
    assert client.get(f"/?token={TOKEN}", NOBODY).status_code == 200
    assert client.get("/api/state", headers=OWN).status_code == 200


@pytest.mark.parametrize("address", ["/", "/?token=another"])
def test_without_the_token_a_page_says_where_to_find_it(client: Client, address: str) -> None:
    answer = client.get(address, NOBODY)
    assert answer.status_code == 403
    assert answer.headers["content-type"].startswith("text/html")
    assert "the address that <code>cellmend review</code> printed" in " ".join(answer.text.split())
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_the_token_in_an_address_opens_the_page_only(client: Client, review: Review) -> None:
    assert client.get(f"/api/state?token={TOKEN}", NOBODY).status_code == 403
    assert client.post(f"/api/decide?token={TOKEN}", NOBODY, json=decision(review)).status_code == 403


def test_nothing_is_decided_without_the_token(client: Client, review: Review) -> None:
    assert client.post("/api/decide", NOBODY, json=decision(review)).status_code == 403
    assert review.ledger.standing == []
    assert not review.results.decisions.exists()


@pytest.mark.parametrize("host", ["evil.example:8123", "127.0.0.1:9999", "127.0.0.1", "0.0.0.0:8123", "[::1]:8123", ""])
def test_another_host_is_refused_as_after_dns_rebinding(client: Client, host: str) -> None:
    assert client.get("/api/state", headers=OWN | {"Host": host}).status_code == 403
    assert client.get(f"/?token={TOKEN}", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1:8123"])
def test_another_origin_is_refused_even_with_the_token(client: Client, review: Review, origin: str) -> None:
    answer = client.post("/api/decide", json=decision(review), headers=OWN | {"Origin": origin})
    assert answer.status_code == 403
    assert review.ledger.standing == []


def test_the_own_origin_is_let_in(client: Client, review: Review) -> None:
    for origin in (f"http://127.0.0.1:{PORT}", f"http://localhost:{PORT}"):
        assert client.get("/api/state", headers=OWN | {"Origin": origin}).status_code == 200


def test_a_request_that_the_browser_calls_cross_site_is_refused(client: Client) -> None:
    assert client.get("/api/state", headers=OWN | {"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.get("/api/state", headers=OWN | {"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_a_body_that_is_too_large_is_refused_whether_its_length_is_told_or_not(client: Client) -> None:
    large = b" " * (LARGEST_BODY + 1)
    assert client.post("/api/decide", content=large, headers=OWN).status_code == 413
    assert client.post("/api/decide", content=in_pieces(large)).status_code == 413


async def in_pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 1000):
        yield body[start : start + 1000]


def test_a_question_that_is_too_long_is_refused(client: Client) -> None:
    assert client.get(f"/api/rows?text={'x' * LARGEST_QUERY}", headers=OWN).status_code == 414


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"{", b"\xff", b"[" * 30_000, b'{"row": NaN}'])
def test_a_body_that_is_no_json_object_is_refused_in_a_sentence(client: Client, body: bytes) -> None:
    answer = client.post("/api/decide", content=body, headers=OWN)
    assert answer.status_code in (400, 422)
    assert answer.json()["error"].endswith(".")


@pytest.mark.parametrize(
    "path",
    [
        "/../results/model.cellmend",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/assets/../../guard.py",
        "/api/export/..%2fmodel.cellmend",
        "/api/export/model.cellmend",
        "//etc/passwd",
        "/review.css/../../guard.py",
    ],
)
def test_no_path_of_a_request_reaches_the_file_system(client: Client, path: str) -> None:
    assert client.get(path, headers=OWN).status_code == 404


def test_an_export_takes_no_place_to_write_to(client: Client, review: Review, tmp_path: Path) -> None:
    asked = {"path": str(tmp_path / "evil"), "folder": str(tmp_path / "evil"), "files": {"table": "../evil"}}
    before = {each.name for each in review.results.folder.iterdir()}
    assert client.post("/api/export", json=asked, headers=OWN).status_code == 200
    new = {each.name for each in review.results.folder.iterdir()} - before
    assert new == {"reviewed.csv", "patch.jsonl", "recipe.jsonl"}
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("path", [*sorted(ASSETS), f"/?token={TOKEN}", "/api/state", "/nowhere"])
def test_every_answer_forbids_what_is_inline_or_from_elsewhere(client: Client, path: str) -> None:
    headers = client.get(path, headers=OWN).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("name", ["/review.html", "/no_access.html"])
def test_a_page_has_no_script_and_no_style_of_its_own(name: str) -> None:
    page = ASSETS[name].read_text("utf-8")
    assert "<style" not in page
    assert " style=" not in page
    assert not re.search(r"\son\w+=", page)
    scripts = [part.partition(">") for part in page.split("<script")[1:]]
    assert all("src=" in attributes and text.startswith("</script>") for attributes, _, text in scripts)


def test_the_scripts_never_take_text_for_markup() -> None:
    for name, asset in ASSETS.items():
        if name.endswith(".js"):
            text = asset.read_text("utf-8")
            for word in (
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "http://",
                "https://",
            ):
                assert word not in text.replace('"http://www.w3.org/2000/svg"', ""), (name, word)


@pytest.fixture
def listening(review: Review) -> str:
    """The address of a server that really listens; it goes on in its thread until the tests end."""
    addresses: list[str] = []
    is_ready = threading.Event()

    def ready(url: str) -> None:
        addresses.append(url)
        is_ready.set()

    review.start = lambda: None  # type: ignore[method-assign]
    threading.Thread(target=lambda: serve(review, port=0, ready=ready), daemon=True).start()
    assert is_ready.wait(30)
    return addresses[0]


def test_a_server_listens_on_this_machine_only_and_draws_a_token(listening: str) -> None:
    assert listening.startswith("http://127.0.0.1:")
    base, _, token = listening.removeprefix("http://").partition("/?token=")
    assert len(token) >= 40
    with closing(http.client.HTTPConnection(base)) as connection:
        connection.request("GET", "/api/state", headers={"X-Cellmend-Token": token})
        assert json.load(connection.getresponse())["table"] == "parcels.csv"
