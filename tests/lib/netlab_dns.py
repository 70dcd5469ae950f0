# SPDX-License-Identifier: Apache-2.0
"""The DNS server of the test network (netlab.py): over UDP and TCP, with names that misbehave on purpose."""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

A, CNAME, PTR, AAAA, OPT = 1, 5, 12, 28, 41
NOERROR, SERVFAIL, NXDOMAIN = 0, 2, 3
TYPES = {A: "A", CNAME: "CNAME", PTR: "PTR", AAAA: "AAAA", 65: "HTTPS", 64: "SVCB"}


def encode_name(name: str) -> bytes:
    labels = [part.encode() for part in name.rstrip(".").split(".") if part]
    return b"".join(bytes([len(part)]) + part for part in labels) + b"\0"


def decode_name(data: bytes, at: int) -> tuple[str, int]:
    labels = []
    while (length := data[at]) != 0:
        labels.append(data[at + 1 : at + 1 + length].decode("latin-1"))
        at += 1 + length
    return ".".join(labels).lower(), at + 1


def address_record(name: str, text: str) -> tuple[str, int, bytes]:
    address = ipaddress.ip_address(text)
    return name, A if address.version == 4 else AAAA, address.packed


class Zone:
    """Names and their answers; netlab._zone() describes the entries."""

    def __init__(self, entries: dict[str, Json]) -> None:
        self.entries = entries
        self.turns: dict[str, int] = {}
        self.reverse = {
            ipaddress.ip_address(address).reverse_pointer: name
            for name, entry in reversed(list(entries.items())) for address in entry.get("answers", ())
        }

    def entry(self, name: str) -> Json | None:
        """Returns the entry of the name, or that of the "*." above it."""
        if name in self.entries:
            return self.entries[name]
        parts = name.split(".")
        above = (f"*.{'.'.join(parts[i:])}" for i in range(1, len(parts)))
        return next((self.entries[wild] for wild in above if wild in self.entries), None)

    def _turn(self, name: str, turns: list[list[str]]) -> list[str]:
        turn = self.turns.get(name, 0)
        self.turns[name] = turn + 1
        return turns[min(turn, len(turns) - 1)]

    def _addresses(self, name: str, entry: Json, kind: int) -> list[tuple[str, int, bytes]]:
        turns = entry.get("turns")
        texts = entry.get("answers", ()) if not turns else self._turn(f"{name} {kind}", turns)
        return [record for record in (address_record(name, text) for text in texts) if record[1] == kind]

    def answer(self, name: str, kind: int) -> tuple[int, list[tuple[str, int, bytes]]]:
        if kind == PTR and name in self.reverse:
            return NOERROR, [(name, PTR, encode_name(self.reverse[name]))]
        records: list[tuple[str, int, bytes]] = []
        for _ in range(20):  # A loop of aliases ends here.
            entry = self.entry(name)
            if entry is None:
                exists_above = any(known.endswith(f".{name}") for known in self.entries)
                return NOERROR if exists_above else NXDOMAIN, records
            if "alias" not in entry:
                return entry.get("rcode", NOERROR), records + self._addresses(name, entry, kind)
            records.append((name, CNAME, encode_name(entry["alias"])))
            name = entry["alias"]
        return NOERROR, records


def reply(zone: Zone, query: bytes, room: int) -> tuple[bytes, str, int]:
    """Returns the reply, the name and the type. room: bytes that a reply without TC may have; EDNS raises it to 1232."""
    ident, flags, count, _, _, additional = struct.unpack("!6H", query[:12])
    name, end = decode_name(query, 12)
    kind, _ = struct.unpack("!2H", query[end : end + 4])
    question = query[12 : end + 4]
    rcode, records = zone.answer(name, kind)
    ttl = (zone.entry(name) or {}).get("ttl", 300)
    body = b"".join(
        encode_name(owner) + struct.pack("!2HIH", of, 1, ttl, len(data)) + data for owner, of, data in records
    )
    room = max(room, 1232) if additional else room
    truncated = 12 + len(question) + len(body) > room
    flags = 0x8080 | (flags & 0x0100) | (0x0200 if truncated else 0) | rcode
    head = struct.pack("!6H", ident, flags, 1, 0 if truncated else len(records), 0, 0)
    return head + question + (b"" if truncated else body), name, kind


class Server:
    def __init__(self, zone: Zone, log: Callable[..., None]) -> None:
        self.zone, self.log = zone, log

    def serve(self, address: str) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        udp = socket.socket(family, socket.SOCK_DGRAM)
        udp.bind((address, 53))
        tcp = socket.create_server((address, 53), family=family, backlog=64)
        threading.Thread(target=self._serve_udp, args=(udp,), daemon=True).start()
        threading.Thread(target=self._serve_tcp, args=(tcp,), daemon=True).start()

    def _answer(self, query: bytes, room: int, over: str) -> bytes | None:
        """Returns None for a name that gets no reply."""
        try:
            data, name, kind = reply(self.zone, query, room)
        except (IndexError, struct.error):
            return None
        self.log("dns", name=name, type=TYPES.get(kind, str(kind)), over=over)
        entry = self.zone.entry(name) or {}
        time.sleep(entry.get("delay", 0))
        if entry.get("garbage"):
            return data[:12] + b"\xff" * 40
        return None if entry.get("dead") else data

    def _serve_udp(self, sock: socket.socket) -> None:
        def one(query: bytes, peer: Any) -> None:
            data = self._answer(query, 512, "udp")
            if data:
                sock.sendto(data, peer)

        while True:
            query, peer = sock.recvfrom(4096)
            # A slow name must not hold up the others.
            threading.Thread(target=one, args=(query, peer), daemon=True).start()

    def _serve_tcp(self, sock: socket.socket) -> None:
        def one(end: socket.socket) -> None:
            with end, end.makefile("rb") as file:
                while head := file.read(2):
                    data = self._answer(file.read(struct.unpack("!H", head)[0]), 65535, "tcp")
                    if data:
                        end.sendall(struct.pack("!H", len(data)) + data)

        while True:
            end, _ = sock.accept()
            threading.Thread(target=one, args=(end,), daemon=True).start()
