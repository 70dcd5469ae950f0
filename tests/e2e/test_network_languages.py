# SPDX-License-Identifier: Apache-2.0
"""Languages that bring their own resolver, TLS or sockets, and a browser: each reaches an allowed host, at both levels of the network."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lib import netpeers
from lib.identity import Identity
from lib.netlab import Lab, holt, lab  # noqa: F401
from lib.netpeers import AtLevel, at_level  # noqa: F401
from lib.sandbox import Holt
from lib.sessions import until
from lib.tools import needs, needs_peer

pytestmark = pytest.mark.identities("user")

PEER = "peer.example.org"


@pytest.fixture(scope="module")
def nginx(lab: Lab) -> None:
    netpeers.nginx(lab)


@pytest.fixture(scope="module")
def programs(lab: Lab) -> Path:
    """A directory for compiled programs, which commands inside can read."""
    return netpeers.directory(lab, "programs")


def compiled(argv: list[str], source: Path, text: str) -> None:
    source.write_text(text)
    subprocess.run(argv, check=True, cwd=source.parent, env=os.environ | {"HOME": str(source.parent)})


# --- Java ---

JAVA = """
import java.io.*;
import java.net.*;
import java.net.http.*;
import java.nio.file.*;
import java.security.*;
import java.security.cert.*;
import javax.net.ssl.*;

public class Peer {
    static SSLContext trusting(String file) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null);
        store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(Files.newInputStream(Path.of(file))));
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, factory.getTrustManagers(), null);
        return context;
    }

    static void connect(String host, int port) {
        try (Socket end = new Socket(host, port)) {
            System.out.println(new BufferedReader(new InputStreamReader(end.getInputStream())).readLine());
        } catch (IOException error) {
            System.out.println(error);
        }
    }

    public static void main(String[] arguments) throws Exception {
        HttpClient client = HttpClient.newBuilder().sslContext(trusting("ca.pem")).build();
        HttpRequest request = HttpRequest.newBuilder(URI.create("https://peer.example.org/protocol")).build();
        System.out.print(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
        connect("web.example.org", 25);
        connect("web.example.org", 26);
        connect("other.example.org", 25);
    }
}
"""


@pytest.mark.slow
@needs("java", "javac")
@needs_peer("nginx")
def test_java(at_level: AtLevel, lab: Lab, nginx: None, programs: Path) -> None:
    if not (programs / "Peer.class").exists():
        compiled(["javac", "Peer.java"], programs / "Peer.java", JAVA)
    shutil.copy(lab.ca, at_level.cwd / "ca.pem")
    result = at_level(["run", "--net", f"{PEER},web.example.org:25", "--ro", programs, "--", "java", "-cp", programs, "Peer"])

    assert result.ok().out.splitlines() == [
        "HTTP/2.0 TLSv1.3", "220 mail.example.org ESMTP", "java.net.ConnectException: Connection refused",
        "java.net.UnknownHostException: other.example.org"]


# --- Go ---

GO = """
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

func main() {
	pem, _ := os.ReadFile("ca.pem")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	reply, err := client.Get("https://peer.example.org/protocol")
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _ := io.ReadAll(reply.Body)
	fmt.Print(string(body))
	fmt.Println(net.LookupAddr("198.18.1.0"))
	for _, address := range []string{"second.example.org:80", "peer.example.org:81", "other.example.org:80", "8.8.8.8:53"} {
		end, err := net.Dial("tcp", address)
		fmt.Println(err)
		if err == nil {
			end.Close()
		}
	}
}
"""


@pytest.mark.slow
@needs_peer("go", "nginx")
def test_go_s_own_resolver(at_level: AtLevel, lab: Lab, nginx: None, programs: Path) -> None:
    if not (programs / "peer").exists():
        compiled(["go", "build", "-o", "peer", "peer.go"], programs / "peer.go", GO)
    shutil.copy(lab.ca, at_level.cwd / "ca.pem")
    result = at_level(["run", "--net", f"{PEER},second.example.org", "--ro", programs, "-e", "GODEBUG=netdns=go", "--", programs / "peer"])

    assert result.ok().out.splitlines() == [
        "HTTP/2.0 TLSv1.3", "[peer.example.org.] <nil>", "<nil>", "dial tcp 198.18.1.0:81: connect: connection refused",
        "dial tcp: lookup other.example.org on 198.18.0.1:53: no such host",
        "dial tcp 8.8.8.8:53: connect: network is unreachable"]


# --- musl ---

MUSL = r"""
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int main(int argc, char **argv) {
        for (int i = 1; i < argc; i++) {
                struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG }, *found = NULL;
                int r = getaddrinfo(argv[i], "25", &hints, &found);

                if (r)
                        printf("%s\n", gai_strerror(r));
                for (struct addrinfo *a = found; a; a = a->ai_next) {
                        int fd = socket(a->ai_family, SOCK_STREAM, 0);
                        const char *error = connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? "ok" : strerror(errno);
                        char name[256];

                        r = getnameinfo(a->ai_addr, a->ai_addrlen, name, sizeof(name), NULL, 0, NI_NAMEREQD);
                        printf("%d %s %s\n", a->ai_family == AF_INET6 ? 6 : 4, error, r ? gai_strerror(r) : name);
                }
        }
        return 0;
}
"""


@needs("musl-gcc")
def test_musl(at_level: AtLevel, programs: Path) -> None:
    if not (programs / "names").exists():
        compiled(["musl-gcc", "-static", "-o", "names", "names.c"], programs / "names.c", MUSL)
    names = ("web.example.org", "four.example.org", "six.example.org", "other.example.org")
    result = at_level(["run", "--net", ",".join(f"{name}:25" for name in names[:3]), "--ro", programs, "--", programs / "names", *names])

    assert sorted(result.ok().out.splitlines()[:2]) == ["4 ok web.example.org", "6 ok web.example.org"]
    assert result.out.splitlines()[2:] == ["4 ok four.example.org", "6 ok six.example.org", "Name does not resolve"]


# --- Chromium ---

CHROMIUM = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors"]

# A page that uses the network in every way that pages can, and then reports the results to the server.
PAGE = """<!doctype html><meta charset="utf-8"><title>peer</title><p id="told"></p><script>
const tell = text => told.textContent += text + " ";
const socket = url => new Promise((done, failed) => {
    const end = new WebSocket(url);
    end.onopen = () => end.send("hello");
    end.onmessage = message => { end.close(); done(message.data); };
    end.onerror = () => failed(new Error("websocket"));
});
const events = url => new Promise(done => {
    const seen = [], source = new EventSource(url);
    source.onmessage = event => {
        seen.push(event.data);
        if (seen.length == 1) fetch("/continue");
        if (seen.length == 2) { source.close(); done(seen.join("+")); }
    };
});
(async () => {
    tell((await (await fetch("/protocol")).text()).trim().replaceAll(" ", "/"));
    if (SOCKETS) tell(await socket("wss://peer.example.org:8443/"));
    tell(await events("/events"));
    await fetch("https://other.example.org/").then(() => tell("reached"), error => tell("refused"));
    await fetch("/told?" + encodeURIComponent(told.textContent.trim()));
})();
</script>
"""


@pytest.mark.slow
@needs_peer("chromium", "nginx")
def test_chromium(at_level: AtLevel, lab: Lab, nginx: None) -> None:
    sockets = Path("/usr/lib/python3/dist-packages/websockets").exists()
    if sockets and not (lab.directory / "sockets").exists():
        (lab.directory / "sockets").touch()
        netpeers.websockets(lab)
    (lab.files / "page.html").write_text(PAGE.replace("SOCKETS", str(sockets).lower()))
    lab.log()
    argv = ["run", "--net", f"{PEER},{PEER}:8443", "--", *CHROMIUM, "--user-data-dir=/tmp/profile", f"https://{PEER}/page.html"]
    told = list[str]()
    with at_level.start(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        def has_told() -> bool:
            told.extend(row["target"] for row in lab.log("http") if row["target"].startswith("/told?"))
            return bool(told)
        until(has_told, "the page has ended")

    expected = ["HTTP%2F2.0%2FTLSv1.3", *(["hello"] if sockets else []), "1%2B2", "refused"]
    assert told == ["/told?" + "%20".join(expected)]


@pytest.mark.slow
@needs_peer("chromium")
def test_chromium_of_the_host_opens_a_published_server(holt: Holt, lab: Lab, identity: Identity, place: Path) -> None:
    (holt.cwd / "index.html").write_text("<p id=x></p><script>x.textContent = 6 * 7 + ' is shown'</script>")
    profile = identity.own(Path(shutil.copytree(holt.cwd, place / "profile")))
    with holt.start(["run", "-p", "0:3000", "--", "python3", "-m", "http.server", "-b", "127.0.0.1", "3000"], report=False) as running:
        assert running.process.stderr
        address = running.process.stderr.readline().decode().split()[2]
        until(lambda: lab.run(["curl", "-s", f"http://{address}/"]).returncode == 0, "the server listens")
        shown = lab.run([*CHROMIUM, f"--user-data-dir={profile}", "--dump-dom", f"http://{address}/"],
                                 env=identity.environment({"HOME": str(profile), "XDG_RUNTIME_DIR": str(profile)}), cwd=profile)

    assert '<p id="x">42 is shown</p>' in shown.stdout
