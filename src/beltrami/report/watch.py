"""A server for this machine alone that shows the flow of a run and explains the predictions that are clicked."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from threading import Lock, Thread
from typing import Any

from beltrami.errors import DataError
from beltrami.report.collect import LoadedRun
from beltrami.report.page import watch_page
from beltrami.report.run_data import RunData
from beltrami.report.viewer_data import reasons_data

HOST = "127.0.0.1"
EXPLAIN = "/explain/"  # followed by the number of a node
POLL = 0.2  # seconds within which an interrupt ends the server


class PageServer(ThreadingHTTPServer):
    """Serve a page at ``/`` and the explanation of node k as JSON at ``/explain/k``."""

    daemon_threads = False  # `server_close` waits: a thread that outlives the interpreter can abort the process

    def __init__(self, run: LoadedRun, data: RunData, *, port: int) -> None:
        self.run, self.data, self.turn = run, data, Lock()
        self.connections: set[socket] = set()
        self.page = watch_page(data, explain_at=EXPLAIN).encode()
        super().__init__((HOST, port), _Handler)

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.server_port}/"

    @property
    def hosts(self) -> set[str]:
        """The names by which this machine may ask; a page of another site that has a name of its own may not."""
        return {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    def explanation(self, node: int) -> bytes:
        """Return the explanation of a node as JSON, one at a time."""
        with self.turn:
            found = reasons_data(self.data, self.run.explain(node))
        return json.dumps(found, allow_nan=False).encode()

    def serve_until_interrupted(self) -> None:
        """Serve until Ctrl-C, in a thread: an interrupt of the server's loop could leave a request half accepted."""
        loop = Thread(target=self.serve_forever, args=(POLL,))
        try:
            loop.start()
            while loop.is_alive():
                loop.join(POLL)
        except KeyboardInterrupt:
            pass
        finally:
            self.shutdown()
            loop.join()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Close the connections, also those on which a browser has asked nothing yet, and wait for their threads."""
        for connection in self.connections.copy():
            with suppress(OSError):  # closed by its thread, or by the browser
                connection.shutdown(SHUT_RDWR)
        super().server_close()


@contextmanager
def page_server(run: LoadedRun, data: RunData, *, port: int = 0) -> Iterator[PageServer]:
    """Open the server of a run; port 0 is any that is free."""
    try:
        server = PageServer(run, data, port=port)
    except OSError as error:
        raise DataError(
            f"port {port} cannot be used ({error.strerror}): leave out `--port`, or give another."
        ) from None
    try:
        yield server
    finally:
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: PageServer

    def do_GET(self) -> None:
        if self.headers.get("Host") not in self.server.hosts:
            self._answer(HTTPStatus.FORBIDDEN, b"This page is for this machine alone.", "text/plain")
        elif self.path == "/":
            self._answer(HTTPStatus.OK, self.server.page, "text/html")
        elif self.path.startswith(EXPLAIN):
            self._explain(self.path.removeprefix(EXPLAIN))
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"There is no such page.", "text/plain")

    def _explain(self, number: str) -> None:
        try:
            if not number.isdecimal():
                raise ValueError(f"`{number}` is no number of a node.")
            content = self.server.explanation(int(number))
        except ValueError as error:
            self._answer(HTTPStatus.BAD_REQUEST, str(error).encode(), "text/plain")
        else:
            self._answer(HTTPStatus.OK, content, "application/json")

    def _answer(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(ConnectionError):  # the browser may have gone on
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""
