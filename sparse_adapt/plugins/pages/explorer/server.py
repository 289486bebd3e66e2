"""The explorer's server: for this machine alone, by an address that nobody guesses, and with nothing that runs.

It listens on the loopback address; every address begins with a token; a request of another host or from another
origin is refused, and so are addresses of no page. The content security policy allows this server's own style sheet
and script, and no other source of anything.
"""

import asyncio
import re
import secrets
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qsl

from sparse_adapt.errors import ConfigError, MissingExtraError, SparseAdaptError
from sparse_adapt.files.place import Place
from sparse_adapt.pipeline.calibrate import save_calibrated
from sparse_adapt.plugins.pages.explorer.subject import Explored
from sparse_adapt.plugins.pages.explorer.terms import SLIDER, amounts_with, term_page, terms_page
from sparse_adapt.plugins.pages.explorer.views import Addresses, Missing, document_page, query_page
from sparse_adapt.plugins.pages.html import script, served, style_sheet
from sparse_adapt.report.sections import WebPage

try:
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
    from starlette.routing import Route
except ModuleNotFoundError as error:
    raise MissingExtraError("starlette", "pages") from error

HOST, PORT = "127.0.0.1", 8765
NAMES = (HOST, "localhost")
TOKEN_BYTES = 18
MISTAKE = "That can't be done"
FOLDER_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
MOST = 100.0  # of an amount
LONGEST_BODY, MOST_FIELDS = 4_096, 8  # bytes of an order, and its fields
DIGITS = 10  # that a number in a request has fewer than
SECONDS = 10.0  # in which a request has to be there, whole
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with none at all a browser names no origin of an order either
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}

Next = Callable[[Request], Awaitable[Response]]
View = Callable[[Request], WebPage]


def make_app(explored: Explored, token: str, port: int, saves: Path) -> Starlette:
    """The application. `saves`: the folder in which models are saved."""
    at = Addresses(f"/{token}")
    views: dict[str, View] = {
        "/": lambda request: query_page(explored, at, request.query_params.get("q", "")),
        "/terms": lambda request: terms_page(explored, at),
        "/term/{token_id}": lambda request: _term(explored, at, request),
        "/document": lambda request: document_page(explored, at, request.query_params.get("name", "")),
    }
    routes = [Route(f"/{token}{path}", _answer(explored, at, view)) for path, view in views.items()]
    routes.append(Route(f"/{token}/term/{{token_id}}/save", _save(explored, at, saves), methods=["POST"]))
    routes.append(Route(f"/{token}/page.css", lambda request: Response(style_sheet(), media_type="text/css")))
    routes.append(
        Route(f"/{token}/explore.js", lambda request: Response(script(), media_type="text/javascript"))
    )
    routes.append(Route(f"/{token}/{{rest:path}}", _answer(explored, at, _nowhere)))
    app = Starlette(routes=routes)
    app.add_middleware(BaseHTTPMiddleware, dispatch=_guard(port))
    return app


def _guard(port: int) -> Callable[[Request, Next], Awaitable[Response]]:
    """Let requests through that are for this host and from this origin, and put headers on every answer."""
    hosts = {f"{name}:{port}" for name in NAMES}
    origins, turn = {f"http://{host}" for host in hosts}, asyncio.Lock()

    async def guard(request: Request, follow: Next) -> Response:
        origin = request.headers.get("origin")
        if request.headers.get("host", "") not in hosts:
            answer: Response = PlainTextResponse("this host is none of mine", 421)
        elif (origin is not None and origin not in origins) or (origin is None and request.method == "POST"):
            answer = PlainTextResponse("this origin is none of mine", 403)
        elif request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            answer = PlainTextResponse("another site can't ask me", 403)
        elif request.method == "POST" and not _is_short(request.headers.get("content-length", "")):
            answer = PlainTextResponse("too much for an order", 413)
        else:
            answer = await _in_turn(request, follow, turn)
        answer.headers.update(HEADERS)
        return answer

    return guard


async def _in_turn(request: Request, follow: Next, turn: asyncio.Lock) -> Response:
    """The answer to a request that has come whole, one after the other: who waits no more costs nobody a turn."""
    try:
        await asyncio.wait_for(request.body(), SECONDS)
    except TimeoutError:
        return PlainTextResponse("the order didn't come", 408)
    except ClientDisconnect:
        return Response(status_code=204)
    async with turn:
        return Response(status_code=204) if await request.is_disconnected() else await follow(request)


def _is_short(size: str) -> bool:
    """Whether the length of a body, as a header says it, is that of an order."""
    return size.isascii() and size.isdecimal() and len(size) < DIGITS and int(size) <= LONGEST_BODY


def _answer(explored: Explored, at: Addresses, view: View) -> Callable[[Request], Awaitable[Response]]:
    """A view as an endpoint; views take turns, as models aren't made for several at once."""

    def shown(request: Request) -> tuple[WebPage, int]:
        with explored.lock:
            try:
                return view(request), 200
            except Missing:
                return _missing(explored, at), 404
            except SparseAdaptError as error:
                return at.message_page(explored, MISTAKE, str(error)), 400

    async def endpoint(request: Request) -> Response:
        page, status = await run_in_threadpool(shown, request)
        return HTMLResponse(served(page, f"{at.root}/page.css", f"{at.root}/explore.js"), status)

    return endpoint


def _nowhere(request: Request) -> WebPage:
    """No page: whoever knows the token is led on by one that says so."""
    raise Missing


def _term(explored: Explored, at: Addresses, request: Request) -> WebPage:
    fields = request.query_params
    amount = _number(fields.get("amount", "0"))
    return term_page(explored, at, _token_id(request), amount, fields.get("q", ""), fields.get("saved", ""))


def _save(explored: Explored, at: Addresses, saves: Path) -> Callable[[Request], Awaitable[Response]]:
    """Save the model with a term lowered, in a folder of that name, and lead back to the term."""

    def save(token_id: int, amount: float, name: str) -> Response:
        with explored.lock:
            token = explored.terms.get(token_id)
            if token is None:
                raise Missing
            amounts = amounts_with(explored, token, amount)
            before_after = explored.scales.before_after(amounts)
            save_calibrated(
                explored.main.model, explored.places.model, amounts, before_after, Place(saves / name)
            )
        return RedirectResponse(f"{at.term(token_id, amount=f'{amount:g}', saved=name)}#{SLIDER}", 303)

    async def endpoint(request: Request) -> Response:
        try:
            fields = dict(_fields(await request.body()))
            name = fields.get("name", "")
            if FOLDER_NAME.fullmatch(name) is None:
                raise ConfigError(f"the folder {name!r}: use letters, digits, dots, dashes")
            return await run_in_threadpool(save, _token_id(request), _number(fields.get("amount", "")), name)
        except Missing:
            page, status = _missing(explored, at), 404
        except SparseAdaptError as error:
            page, status = at.message_page(explored, MISTAKE, str(error)), 400
        return HTMLResponse(served(page, f"{at.root}/page.css", f"{at.root}/explore.js"), status)

    return endpoint


def _missing(explored: Explored, at: Addresses) -> WebPage:
    return at.message_page(explored, "Nothing is here", "Follow a link above.")


def _fields(body: bytes) -> list[tuple[str, str]]:
    """The fields of an order. Raises ConfigError for more than an order has."""
    try:
        return parse_qsl(body.decode("utf-8", "replace"), max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise ConfigError(f"an order has {MOST_FIELDS} fields at most") from error


def _token_id(request: Request) -> int:
    """The id in an address. Raises Missing for what is none."""
    text = request.path_params["token_id"]
    if not (text.isascii() and text.isdecimal() and len(text) < DIGITS):
        raise Missing
    return int(text)


def _number(text: str) -> float:
    """An amount. Raises ConfigError for none."""
    try:
        value = float(text)
    except ValueError as error:
        raise ConfigError(f"amount {text!r}: is no number") from error
    if not abs(value) <= MOST:
        raise ConfigError(f"amount {text}: lies beyond {MOST:g}")
    return value


# -- serving --------------------------------------------------------------------------------------


def listen(port: int) -> socket.socket:
    """A socket on the loopback address. Raises ConfigError for a port that is in use."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen()  # so that who has the address by the first moment is answered
    except (OSError, OverflowError) as error:
        listening.close()
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise ConfigError(f"--port {port}: can't be listened on ({reason}); choose another one") from error
    return listening


def serve(explored: Explored, listening: socket.socket, saves: Path, ready: Callable[[str], None]) -> None:
    """Answer until it is stopped. `ready` hears the address once the first query has been tried."""
    import uvicorn

    port, token = listening.getsockname()[1], secrets.token_urlsafe(TOKEN_BYTES)
    app = make_app(explored, token, port, saves)
    _warm_up(explored, Addresses(f"/{token}"))
    from sparse_adapt.plugins.pages.explorer.connections import ClosingProtocol

    settings = uvicorn.Config(
        app, http=ClosingProtocol, log_level="warning", access_log=False, server_header=False
    )
    settings.load()
    ready(f"http://{HOST}:{port}/{token}/")
    server = uvicorn.Server(settings)
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listening])


def _warm_up(explored: Explored, at: Addresses) -> None:
    """Write a page of each kind once, so that nobody waits for what loads and compiles by then."""
    document = explored.documents[0]
    pages = [query_page(explored, at, document.full_text), document_page(explored, at, document.document_id)]
    pages += [term_page(explored, at, token_id, 0.0, "") for token_id in list(explored.terms)[:1]]
    for page in pages:
        served(page, "", "")
