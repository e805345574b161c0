"""The server behind the page: it listens on 127.0.0.1 only, and carries what the page asks to the review and back."""

from __future__ import annotations

import asyncio
import gc
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from cellmend.errors import CellmendError, DecisionError
from cellmend.files.records import parsed
from cellmend.review.answers import DEEDS, QUESTIONS, Answer, mapping
from cellmend.review.answers_many import MANY_DEEDS, MANY_QUESTIONS
from cellmend.review.answers_model import MODEL_DEEDS, MODEL_QUESTIONS
from cellmend.review.guard import Guard
from cellmend.review.ledger import ConflictError
from cellmend.review.review import Review, UnusualError

READS_AFTER = 1.0  # seconds: the first page need not wait for the model, whose libraries take some time to load
MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
ASSETS = {f"/{each.name}": each for each in files("cellmend.review").joinpath("assets").iterdir() if "." in each.name}
PAGE = "/review.html"
NO_ACCESS = "/no_access.html"


def application(review: Review, *, token: str, port: int) -> ASGIApp:
    """The page and what it asks, behind the guard."""
    questions, deeds = QUESTIONS | MANY_QUESTIONS | MODEL_QUESTIONS, DEEDS | MANY_DEEDS | MODEL_DEEDS
    routes = [Route(path, _serving(asset)) for path, asset in {"/": ASSETS[PAGE], **ASSETS}.items()]
    routes += [Route(f"/api/{name}", _answering(review, answer)) for name, answer in questions.items()]
    routes += [Route(f"/api/{name}", _doing(review, deed), methods=["POST"]) for name, deed in deeds.items()]
    routes += [Route(f"/api/export/{what}", _sending(path)) for what, path in review.results.exported.items()]
    open_paths = frozenset(ASSETS) - {PAGE}
    no_access = ASSETS[NO_ACCESS].read_bytes()
    return Guard(Starlette(routes=routes), token=token, port=port, open_paths=open_paths, no_access=no_access)


def _serving(asset: Any) -> Callable[[Request], Response]:
    return lambda _: Response(asset.read_bytes(), media_type=MEDIA[Path(asset.name).suffix])


def _answering(review: Review, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(_told, review, answer, dict(request.query_params))

    return endpoint


def _doing(review: Review, deed: Answer) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            asked = mapping(parsed(await request.body()))
        except DecisionError:
            return JSONResponse({"error": "A request must be a JSON object."}, 400)
        return await run_in_threadpool(_told, review, deed, asked)

    return endpoint


def _told(review: Review, answer: Answer, asked: Mapping[str, Any]) -> Response:
    """An answer as JSON; what is refused as one sentence."""
    try:
        return JSONResponse(answer(review, asked))
    except CellmendError as error:
        status = 409 if isinstance(error, ConflictError) else 422
        return JSONResponse({"error": str(error), "may_insist": isinstance(error, UnusualError)}, status)
    except OSError as error:  # a full disk: the decision is not taken, and that is said
        return JSONResponse({"error": f"Nothing was saved: {error.strerror or error}."}, 507)


def _sending(path: Path) -> Callable[[Request], Response]:
    """One of the files that an export wrote; which, is no matter of the request."""

    def endpoint(_: Request) -> Response:
        if not path.is_file():
            return JSONResponse({"error": f"{path.name} is not written yet."}, 404)
        return FileResponse(path, filename=path.name, media_type="application/octet-stream")

    return endpoint


def serve(review: Review, *, port: int, ready: Callable[[str], None]) -> None:
    """Serve until stopped; `ready` is called with the address once it listens. Port 0 is any that is free."""
    token = secrets.token_urlsafe(32)
    gc.freeze()  # the table and what was found stay, and need not be looked through for garbage again and again
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        chosen = listener.getsockname()[1]
        app = application(review, token=token, port=chosen)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, lifespan="off", timeout_graceful_shutdown=1
        )
        listener.listen()
        ready(f"http://127.0.0.1:{chosen}/?token={token}")
        reading = threading.Timer(READS_AFTER, review.start)
        reading.daemon = True
        reading.start()
        asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))
