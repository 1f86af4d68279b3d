"""Servers of plain sockets and proxies on loopback, and clusters that are reached through them."""

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Self

from tests.cluster.https_server import HttpsServer
from tests.cluster.kubeconfigs import inline


@contextmanager
def listening(handle: Callable[[socket.socket], object]) -> Iterator[int]:
    """A server on loopback that handles each connection in a thread and closes it then; its port."""

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=run, args=listener.accept()[:1], daemon=True).start()

    def run(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            handle(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)  # closing it alone does not wake `accept`


class Proxy:
    """A proxy that runs as long as the block."""

    def __init__(self, serve: Callable[[socket.socket], object]) -> None:
        self._running = listening(serve)
        self.address = f"127.0.0.1:{self._running.__enter__()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.__exit__(None, None, None)


class ConnectProxy(Proxy):
    """An HTTP proxy that only tunnels; `requested` are the request lines."""

    def __init__(self) -> None:
        self.requested: list[str] = []
        self.heads: list[str] = []
        super().__init__(self._tunnel)
        self.url = f"http://{self.address}"

    def _tunnel(self, client: socket.socket) -> None:
        head = client.recv(65536).decode()
        line = head.split("\r\n")[0]
        self.requested.append(line)
        self.heads.append(head)
        host, _, port = line.split()[1].rpartition(":")
        with socket.create_connection((host, int(port))) as server:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            pass_on(client, server)


class SocksProxy(Proxy):
    """A SOCKS5 proxy that knows one host by name; it keeps what was `requested` of it, and `logins`."""

    def __init__(
        self, *, known: str = "kube.invalid", login: tuple[str, str] | None = None, code: int = 0
    ) -> None:
        self.requested: list[tuple[str, int]] = []
        self.logins: list[tuple[str, str]] = []
        self._known, self._login, self._code = known, login, code
        super().__init__(self._serve)

    def _serve(self, client: socket.socket) -> None:
        with client.makefile("rb") as read:
            methods = read.read(read.read(2)[1])
            method = 2 if self._login else 0
            client.sendall(bytes([5, method if method in methods else 255]))
            if method not in methods:
                return
            if self._login:
                name = read.read(read.read(2)[1]).decode()
                self.logins.append((name, read.read(read.read(1)[0]).decode()))
                client.sendall(bytes([1, 0 if self.logins[-1] == self._login else 1]))
            kind = read.read(4)[3]
            host = read.read(read.read(1)[0]).decode() if kind == 3 else socket.inet_ntoa(read.read(4))
            port = int.from_bytes(read.read(2), "big")
            self.requested.append((host, port))
            client.sendall(bytes([5, self._code, 0, 1, 0, 0, 0, 0, 0, 0]))
            if self._code:
                return
            with socket.create_connection(("127.0.0.1" if host == self._known else host, port)) as server:
                pass_on(client, server)


def pass_on(client: socket.socket, server: socket.socket) -> None:
    """What either says, to the other, until one hangs up."""
    with suppress(ConnectionError):
        while ready := select.select([client, server], [], [], 10)[0]:
            data = ready[0].recv(65536)
            if not data:
                return
            (server if ready[0] is client else client).sendall(data)


def through(proxy: str, server: HttpsServer) -> dict[str, str]:
    return {
        "server": f"https://kube.invalid:{server.port}",
        "tls-server-name": "localhost",
        "certificate-authority-data": inline(server.authority.certificate),
        "proxy-url": proxy,
    }
