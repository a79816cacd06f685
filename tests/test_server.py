"""Connections that do not come to the point: too slow, too large, silent. And what is there at the start."""

import resource
import socket
import threading
import time
from contextlib import suppress

import pytest

from app.http.limits import CONNECTIONS, HEAD_BYTES, REQUEST_SECONDS
from tests.world import Server, connected, free_port, text_body, wait_for

HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
BODY = b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server")).start()
    yield server
    server.stop()


def test_the_token_is_kept_in_a_private_file(server: Server) -> None:
    kept = server.folder / "admin_token"
    assert len(kept.read_text().strip()) >= 32
    assert kept.stat().st_mode & 0o777 == 0o600


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


def test_trailers_without_end_are_cut(server: Server) -> None:
    chunked = HEAD.replace(b"GET /health", b"POST /webhook") + b"Transfer-Encoding: chunked\r\n"
    chunked += b"X-Hub-Signature-256: sha256=" + b"0" * 64 + b"\r\n\r\n1\r\na\r\n0\r\n"
    trailers = b"".join(b"t%d: x\r\n" % number for number in range(HEAD_BYTES))
    with opened(server, chunked) as connection, pytest.raises(ConnectionError):
        connection.sendall(trailers * 20)


def test_large_bodies_one_after_the_other_on_a_connection_are_read(server: Server) -> None:
    body = (
        HEAD.replace(b"GET /health", b"POST /nowhere") + b"Content-Length: 1000000\r\n\r\n" + b"x" * 1_000_000
    )
    with opened(server, body, body, HEAD + b"\r\n") as connection:
        answers = b""
        while answers.count(b"HTTP/1.1") < 3:
            answers += connection.recv(65536)
    assert answers.count(b"HTTP/1.1 404") == 2
    assert b'"status"' in answers or b"HTTP/1.1 200" in answers


def test_many_bodies_that_do_not_come_keep_no_other_from_being_read(server: Server) -> None:
    claimed = HEAD.replace(b"GET /health", b"POST /webhook") + b"X-Hub-Signature-256: sha256=" + b"0" * 64
    waiting = [opened(server, claimed + b"\r\nContent-Length: 1000\r\n\r\nx") for _ in range(100)]
    with opened(server, claimed + b"\r\nContent-Length: 2\r\n\r\n{}") as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 401")
    for one in waiting:
        one.close()


def test_odd_heads_are_read_or_refused_without_a_line_in_the_log(server: Server) -> None:
    with opened(server, HEAD + b"X-Filler: " + b"x" * (HEAD_BYTES // 2) + b"\r\n\r\n") as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    upgrade = HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n"
    with opened(server, upgrade) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    with opened(server, b"\x16\x03\x01 hello\r\n\r\n") as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    with opened(server, HEAD + b"\r\n") as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    signed = b"X-Hub-Signature-256: sha256=" + b"0" * 64 + b"\r\nContent-Length: 9\r\n\r\nx"
    for path in [b"/webhook", b"/console/sign-in"] * 20:  # bodies that break off
        opened(server, HEAD.replace(b"GET /health", b"POST " + path) + signed).close()
    with opened(server, HEAD + b"\r\n") as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    assert [word for word in ("pgrade", "Invalid", "Traceback") if word in server.log] == []


UNSIGNED = (
    b"POST /webhook HTTP/1.1\r\nHost: localhost\r\nX-Hub-Signature-256: sha256=" + b"0" * 64 + b"\r\n"
    b"Content-Length: 3000000\r\n\r\n"
)


@pytest.mark.slow
def test_unsigned_bodies_and_idle_connections_do_not_keep_signed_webhooks_out(tmp_path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    server = Server(tmp_path, **connected(free_port()), ALLOWED_PHONE_NUMBERS="525550100001").start()
    held: list[socket.socket] = []
    try:
        held = [opened(server, UNSIGNED) for _ in range(60)]
        for number in range(5):
            for connection in held:
                with suppress(OSError):  # it had to make room
                    connection.sendall(b"x" * 64_000)
            for text in ("hola", "hola " * 60_000):
                body = text_body(f"wamid.{len(text)}.{number}", text)
                assert server.post(body).status_code == 200, number
        held += [opened(server) for _ in range(CONNECTIONS + 100)]
        for number in range(5):
            assert server.post(text_body(f"wamid.c{number}", "hola")).status_code == 200
        assert server.rows("SELECT count(*) FROM messages WHERE direction = 'in'")[0][0] == 15
    finally:
        for connection in held:
            connection.close()
        server.kill()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
def test_requests_that_come_too_slowly_are_cut_and_a_stream_is_not(server: Server) -> None:
    kept = opened(server, HEAD + b"\r\n")
    assert kept.recv(65536).startswith(b"HTTP/1.1 200")
    kept.sendall(HEAD)
    rested = opened(server, HEAD + b"\r\n")
    assert rested.recv(65536).startswith(b"HTTP/1.1 200")
    rested.sendall(b"\r\n")
    cookie = f"Cookie: recado_simulator={server.http.cookies['recado_simulator']}\r\n".encode()
    stream = opened(server, b"GET /simulator/api/events HTTP/1.1\r\nHost: localhost\r\n" + cookie + b"\r\n")
    deaf = unread(server)
    until = time.monotonic() + 2 * REQUEST_SECONDS
    slow = {
        "silent": (opened(server), b""),
        "head": (opened(server, HEAD), b"x"),
        "body": (opened(server, BODY), b"x"),
        "second request": (kept, b"x"),
        "empty line": (rested, b""),
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
    wait_for(lambda: is_gone(deaf), "the answers that nobody fetches to be given up")
    assert not is_cut(stream, b"", time.monotonic() + 1)
    assert server.http.get("/health").status_code == 200


def unread(server: Server) -> socket.socket:
    """A connection that asks for more than the buffers hold, and fetches nothing."""
    asks = (HEAD.replace(b"/health", b"/simulator") + b"\r\n") * 2000
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.connect(("127.0.0.1", server.port))
    connection.settimeout(0.5)
    with suppress(TimeoutError):
        connection.sendall(asks)
    return connection


def is_gone(connection: socket.socket) -> bool:
    """Whether the other side takes no more, ever: found by sending."""
    try:
        connection.send(b"\r\n")
    except TimeoutError:
        return False
    except OSError:
        return True
    return False
