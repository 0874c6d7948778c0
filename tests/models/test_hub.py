"""The model hub: reached, not reached, silent; what is in the cache is taken without it."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest

from merit.errors import ModelUnavailable
from merit.models import hub
from merit.models.packages import Cancelled

SHA = "a" * 40


@pytest.fixture(autouse=True)
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache. The client reads its environment at import, so its constants are changed."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.setattr(huggingface_hub.constants, name, str(tmp_path / "hub"), raising=False)
    monkeypatch.setattr("huggingface_hub._snapshot_download.HF_HUB_CACHE", str(tmp_path / "hub"), raising=False)
    return tmp_path / "hub"


def use(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
    monkeypatch.setattr(
        huggingface_hub.constants,
        "HUGGINGFACE_CO_URL_TEMPLATE",
        address + "/{repo_id}/resolve/{revision}/{filename}",
    )
    monkeypatch.setattr("huggingface_hub.hf_api.ENDPOINT", address, raising=False)


@pytest.fixture
def silent_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Accepts connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        use(monkeypatch, f"http://127.0.0.1:{listener.getsockname()[1]}")
        yield


def in_cache(cache: Path, folder: Path, reference: str) -> Path:
    snapshot = cache / f"models--{reference.replace('/', '--')}" / "snapshots" / SHA
    shutil.copytree(folder, snapshot)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text(SHA)
    return snapshot


def test_silent_hub_costs_at_most_two_seconds(silent_hub: None) -> None:
    started = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"hub cannot be reached, and Qwen/Qwen2\.5-7B-Instruct is not on this"):
        hub.folder("Qwen/Qwen2.5-7B-Instruct")
    assert time.monotonic() - started < 2.0


def test_refused_connection_gives_the_same_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, "http://127.0.0.1:9")
    with pytest.raises(ModelUnavailable, match="hub cannot be reached"):
        hub.folder("owner/name")


def test_hanging_name_lookup_costs_at_most_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """No timeout of a client covers the name lookup; the probe is left behind instead."""
    use(monkeypatch, "http://hub.invalid")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(4))
    started = time.monotonic()
    with pytest.raises(ModelUnavailable, match="hub cannot be reached"):
        hub.folder("owner/name")
    assert time.monotonic() - started < 2.0


def test_complete_cached_model_needs_no_hub(silent_hub: None, hub_cache: Path, tiny_folder: Path) -> None:
    snapshot = in_cache(hub_cache, tiny_folder, "owner/name")
    started = time.monotonic()
    assert hub.folder("owner/name") == snapshot
    assert hub.folder("owner/name", SHA) == snapshot
    assert time.monotonic() - started < 1.0


def test_half_downloaded_model_is_not_taken_for_a_whole_one(
    silent_hub: None, hub_cache: Path, tiny_folder: Path
) -> None:
    snapshot = in_cache(hub_cache, tiny_folder, "owner/name")
    (snapshot / "model.safetensors").rename(snapshot / "model-00001-of-00002.safetensors")
    weight_map = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(ModelUnavailable, match="is not on this machine yet"):
        hub.folder("owner/name")


def test_folder_is_taken_as_it_is(tiny_folder: Path) -> None:
    assert hub.folder(str(tiny_folder)) == tiny_folder


@pytest.mark.parametrize("reference", ["nope", "a/b/c", "https://huggingface.co/a/b", "/no/such/folder", "a b/c"])
def test_what_is_neither_folder_nor_id(reference: str) -> None:
    with pytest.raises(ModelUnavailable, match="neither a folder here nor a hub id"):
        hub.folder(reference)


def test_gguf_says_what_to_do_instead() -> None:
    with pytest.raises(ModelUnavailable, match=r"llama\.cpp"):
        hub.folder("/models/some.gguf")


class FakeHub:
    """Serves one model, file by file, the way the hub does."""

    def __init__(self, folder: Path, error: tuple[int, str] | None) -> None:
        files = {path.name: path for path in folder.iterdir()} | {"weights.bin": folder / "config.json"}
        self.served: list[str] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self, body: bytes, *, send: bool) -> None:
                self.send_response(error[0] if error else 200)
                if error:
                    self.send_header("X-Error-Code", error[1])
                self.send_header("X-Repo-Commit", SHA)
                self.send_header("ETag", f'"{hash(body)}"')
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if send:
                    self.wfile.write(body)

            def respond(self, *, send: bool) -> None:
                if "/tree/" in self.path:
                    tree = [
                        {"type": "file", "path": name, "size": path.stat().st_size, "oid": "0" * 40}
                        for name, path in files.items()
                    ]
                    self.answer(json.dumps(tree).encode(), send=send)
                elif self.path == "/api/agent-harnesses":
                    self.answer(b"{}", send=send)
                elif self.path.startswith("/api/models/"):
                    siblings = [{"rfilename": name} for name in files]
                    info = {"id": "owner/name", "sha": SHA, "siblings": siblings, "private": False, "tags": []}
                    self.answer(json.dumps(info).encode(), send=send)
                else:
                    name = self.path.rpartition("/")[2]
                    if send:
                        fake.served.append(name)
                    self.answer(files[name].read_bytes(), send=send)

            def do_GET(self) -> None:
                self.respond(send=True)

            def do_HEAD(self) -> None:
                self.respond(send=False)

            def log_message(self, *_: Any) -> None:
                return None

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def fake_hub(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[FakeHub]:
    fake = FakeHub(tiny_folder, getattr(request, "param", None))
    use(monkeypatch, f"http://127.0.0.1:{fake.http.server_port}")
    yield fake
    fake.http.shutdown()
    fake.http.server_close()


def test_downloads_what_is_needed_and_tells_the_progress(fake_hub: FakeHub, tiny_folder: Path) -> None:
    told: list[tuple[str, float | None]] = []
    folder = hub.folder("owner/name", progress=lambda message, fraction: told.append((message, fraction)))
    assert (folder / "model.safetensors").read_bytes() == (tiny_folder / "model.safetensors").read_bytes()
    assert "weights.bin" not in fake_hub.served
    assert told[0] == ("downloading owner/name from the model hub", 0.0)
    assert all(0.0 <= (fraction or 0.0) <= 1.0 for _, fraction in told)
    assert told[-1][1] == 1.0


def test_download_can_be_cancelled(fake_hub: FakeHub) -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        hub.folder("owner/name", cancel=cancel)


@pytest.mark.parametrize(
    ("fake_hub", "sentence"),
    [
        ((404, "RepoNotFound"), "knows no public model owner/name"),
        ((403, "GatedRepo"), "asks for an agreement first"),
        ((404, "RevisionNotFound"), "not the revision"),
        ((500, ""), "cannot be reached"),
    ],
    indirect=["fake_hub"],
)
def test_what_the_hub_refuses_is_said(fake_hub: FakeHub, sentence: str) -> None:
    with pytest.raises(ModelUnavailable, match=sentence):
        hub.folder("owner/name", SHA)
