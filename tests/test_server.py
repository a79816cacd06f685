"""Connections that do not come to the point: too slow, or too large, or silent."""

import socket
import threading
import time

import pytest

from app.server import HEAD_BYTES, REQUEST_SECONDS
from tests.world import Server

HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
BODY = b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path).start()
    yield server
    server.stop()


def opened(server: Server, *first: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=5)
    for piece in first:
        connection.sendall(piece)
    return connection


def is_cut(connection: socket.socket, drip: bytes, until: float) -> bool:
    """Whether the server ends a connection on which a byte comes now and then."""
    connection.settimeout(0.5)
    while time.monotonic() < until:
        try:
            if drip:
                connection.sendall(drip)
            if connection.recv(65536) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def test_a_head_without_end_is_cut(server: Server) -> None:
    filler = (b"X-Filler: " + b"x" * 1000 + b"\r\n") * (100 * HEAD_BYTES // 1000)
    with opened(server, HEAD) as connection, pytest.raises(ConnectionError):
        connection.sendall(filler)


def test_a_large_head_within_the_limit_is_read(server: Server) -> None:
    with opened(server, HEAD + b"X-Filler: " + b"x" * (HEAD_BYTES // 2) + b"\r\n\r\n") as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.slow
def test_requests_that_come_too_slowly_are_cut_and_a_stream_is_not(server: Server) -> None:
    kept = opened(server, HEAD + b"\r\n")
    assert kept.recv(65536).startswith(b"HTTP/1.1 200")
    kept.sendall(HEAD)
    stream = opened(server, b"GET /simulator/api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    until = time.monotonic() + 2 * REQUEST_SECONDS
    slow = {
        "silent": (opened(server), b""),
        "head": (opened(server, HEAD), b"x"),
        "body": (opened(server, BODY), b"x"),
        "second request": (kept, b"x"),
    }
    outcomes: dict[str, bool] = {}

    def watch(name: str, connection: socket.socket, drip: bytes) -> None:
        outcomes[name] = is_cut(connection, drip, until)

    watchers = [threading.Thread(target=watch, args=(name, *pair)) for name, pair in slow.items()]
    for watcher in watchers:
        watcher.start()
    for watcher in watchers:
        watcher.join()
    assert outcomes == dict.fromkeys(slow, True)
    assert not is_cut(stream, b"", time.monotonic() + 1)
    assert server.http.get("/health").status_code == 200
