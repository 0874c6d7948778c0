"""The endpoint against a server in a thread that speaks the protocol, and against servers that misbehave."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import SecretStr

from merit.errors import ModelUnavailable
from merit.models import endpoint, load
from merit.models.endpoint import EndpointModel
from merit.settings import settings

KEY = "sk-very-secret-0123456789"
Behaviour = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


def piece(text: str | None, finish: str | None = None) -> str:
    delta = {} if text is None else {"content": text}
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return f"data: {json.dumps({**chunk, 'choices': [{'index': 0, 'delta': delta, 'finish_reason': finish}]})}\n\n"


def usage(prompt: int, completion: int) -> str:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": counts}
    return f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"


def begin(handler: BaseHTTPRequestHandler, status: int = 200, content_type: str = "text/event-stream") -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", content_type)
    handler.end_headers()


def say(handler: BaseHTTPRequestHandler, *parts: str) -> None:
    for part in parts:
        handler.wfile.write(part.encode())
        handler.wfile.flush()


def answers(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
    begin(handler)
    question = request["messages"][-1]["content"]
    say(handler, piece("SELECT "), piece(question), piece(None, "stop"), usage(11, 3))


def refuses(status: int, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None) -> Behaviour:
    def behave(handler: BaseHTTPRequestHandler, _request: dict[str, Any]) -> None:
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Type", "application/json")
        handler.end_headers()
        say(handler, json.dumps(body or {"error": {"message": f"no: {status}"}}))

    return behave


class Server:
    """Follows the behaviours in order and repeats the last one."""

    def __init__(self) -> None:
        self.behaviours: list[Behaviour] = [answers]
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.hung_up = threading.Event()
        self.stopping = threading.Event()
        server = self
        lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    server.requests.append(request)
                    server.keys.append(self.headers.get("Authorization", ""))
                    behaviours = server.behaviours
                    behave = behaviours.pop(0) if len(behaviours) > 1 else behaviours[0]
                try:
                    behave(self, request)
                except (BrokenPipeError, ConnectionResetError):
                    server.hung_up.set()

            def log_message(self, *_: Any) -> None:
                return None

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def drips(self, handler: BaseHTTPRequestHandler, _request: dict[str, Any]) -> None:
        """A model that never ends."""
        begin(handler)
        while not self.stopping.wait(0.02):
            say(handler, piece("word "))

    def falls_silent(self, handler: BaseHTTPRequestHandler, _request: dict[str, Any]) -> None:
        """One piece, then nothing; notices when the client hangs up."""
        begin(handler)
        say(handler, piece("word "))
        handler.connection.settimeout(10)
        if handler.connection.recv(1) == b"":
            self.hung_up.set()

    def hangs(self, _handler: BaseHTTPRequestHandler, _request: dict[str, Any]) -> None:
        self.stopping.wait(20)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stopping.set()
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture
def model(server: Server, monkeypatch: pytest.MonkeyPatch) -> EndpointModel:
    monkeypatch.setattr(endpoint, "_pause", lambda _state: 0.02)
    return EndpointModel(server.url, "some/model", SecretStr(KEY))


def test_an_answer_with_counts_streamed(server: Server, model: EndpointModel) -> None:
    pieces: list[tuple[int, str]] = []
    completions = model.complete(["a", "b"], 77, system="Be brief.", seed=5, stream=lambda i, p: pieces.append((i, p)))
    assert [(c.text, c.prompt_tokens, c.output_tokens, c.finish_reason) for c in completions] == [
        ("SELECT a", 11, 3, "stop"),
        ("SELECT b", 11, 3, "stop"),
    ]
    for index, completion in enumerate(completions):
        assert "".join(text for i, text in pieces if i == index) == completion.text
    request = next(r for r in server.requests if r["messages"][-1]["content"] == "b")
    assert request["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (request["model"], request["max_tokens"], request["temperature"], request["seed"]) == (
        "some/model",
        77,
        0,
        6,
    )
    assert set(server.keys) == {f"Bearer {KEY}"}


def test_no_system_message_of_ours(server: Server, model: EndpointModel) -> None:
    model.complete(["a"])
    assert server.requests[0]["messages"] == [{"role": "user", "content": "a"}]
    assert "seed" not in server.requests[0]


def test_token_limit_is_told(server: Server, model: EndpointModel) -> None:
    server.behaviours = [lambda handler, _: (begin(handler), say(handler, piece("SEL", "length"), usage(1, 1)))]
    assert model.complete(["a"])[0].finish_reason == "length"


@pytest.mark.parametrize("status", [429, 500, 503])
def test_refusals_for_load_are_tried_again(server: Server, model: EndpointModel, status: int) -> None:
    server.behaviours = [refuses(status), refuses(status), answers]
    assert model.complete(["a"])[0].text == "SELECT a"
    assert len(server.requests) == 3


def test_tries_are_bounded(server: Server, model: EndpointModel) -> None:
    server.behaviours = [refuses(500)]
    with pytest.raises(ModelUnavailable, match=r"status 500: .*no: 500"):
        model.complete(["a"])
    assert len(server.requests) == 4


def test_pause_is_what_the_server_asks_for_up_to_ten_seconds() -> None:
    def state(attempt: int, headers: dict[str, str]) -> Any:
        error = RuntimeError()
        error.response = type("Response", (), {"headers": headers})()  # type: ignore[attr-defined]
        outcome = type("Outcome", (), {"exception": lambda self: error})()
        return type("State", (), {"outcome": outcome, "attempt_number": attempt})()

    assert endpoint._pause(state(1, {"retry-after": "3"})) == 3
    assert endpoint._pause(state(1, {"retry-after": "900"})) == 10
    assert 0.5 <= endpoint._pause(state(1, {})) <= 0.75
    assert 2.0 <= endpoint._pause(state(3, {"retry-after": "tomorrow"})) <= 2.25


@pytest.mark.parametrize(
    ("status", "sentence"),
    [(401, "MERIT_ENDPOINT_KEY"), (403, "MERIT_ENDPOINT_KEY"), (404, "knows no model"), (400, "status 400")],
)
def test_refusals_for_good_are_not_repeated(server: Server, model: EndpointModel, status: int, sentence: str) -> None:
    server.behaviours = [refuses(status, {"error": {"message": f"Incorrect API key provided: {KEY}"}})]
    with pytest.raises(ModelUnavailable, match=sentence) as caught:
        model.complete(["a"])
    assert len(server.requests) == 1
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_key_is_in_no_repr_log_or_message(
    server: Server, model: EndpointModel, caplog: pytest.LogCaptureFixture
) -> None:
    server.behaviours = [refuses(418, {"error": {"message": f"odd {KEY}"}})]
    with caplog.at_level(logging.DEBUG), pytest.raises(ModelUnavailable, match="odd •••"):
        model.complete(["a"])
    assert KEY not in caplog.text + repr(model) + model.id + repr(model.info)


def test_password_in_the_address_is_not_shown(server: Server) -> None:
    model = EndpointModel(server.url.replace("//", "//user:hunter22@"), "m")
    assert "hunter22" not in repr(model) + model.id + repr(model.info)


def test_key_of_another_provider_is_never_sent(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The openai client takes OPENAI_API_KEY from the environment when it is given no key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another-provider")
    load(f"endpoint:{server.url}#m").complete(["a"])
    assert "another" not in server.keys[0]


def test_key_comes_from_the_settings(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERIT_ENDPOINT_KEY", KEY)
    settings.cache_clear()
    load(f"endpoint:{server.url}#m").complete(["a"])
    assert server.keys == [f"Bearer {KEY}"]


def html(handler: BaseHTTPRequestHandler, _request: dict[str, Any]) -> None:
    begin(handler, content_type="text/html")
    say(handler, "<html>Welcome to the router</html>")


def no_json(handler: BaseHTTPRequestHandler, _request: dict[str, Any]) -> None:
    begin(handler)
    say(handler, "data: {not json\n\n")


def other_shape(handler: BaseHTTPRequestHandler, _request: dict[str, Any]) -> None:
    begin(handler)
    say(handler, 'data: {"choices": [{"text": 5}]}\n\n', "data: [DONE]\n\n")


def binary(handler: BaseHTTPRequestHandler, _request: dict[str, Any]) -> None:
    handler.wfile.write(b"\x00\xff\xfe nonsense\r\n\r\n")


@pytest.mark.parametrize("garbage", [html, no_json, other_shape, binary])
def test_another_dialect_gives_a_sentence(server: Server, model: EndpointModel, garbage: Behaviour) -> None:
    server.behaviours = [garbage]
    with pytest.raises(ModelUnavailable, match=r"OpenAI protocol|cannot be reached|complete") as caught:
        model.complete(["a"])
    assert "127.0.0.1" in str(caught.value)


def test_stream_that_ends_half_way_is_no_answer(server: Server, model: EndpointModel) -> None:
    """Half an SQL statement may be valid SQL: it must not pass for the model's answer."""
    server.behaviours = [lambda handler, _: (begin(handler), say(handler, piece("SELECT name FROM singer")))]
    pieces: list[str] = []
    with pytest.raises(ModelUnavailable, match="before the answer was complete"):
        model.complete(["a"], stream=lambda _, text: pieces.append(text))
    assert len(server.requests) == 1, "text that was shown is not shown a second time"


def test_connection_lost_before_any_text_is_tried_again(server: Server, model: EndpointModel) -> None:
    server.behaviours = [lambda handler, _: handler.connection.shutdown(socket.SHUT_RDWR), answers]
    assert model.complete(["a"])[0].text == "SELECT a"


def test_error_inside_the_stream_is_told(server: Server, model: EndpointModel) -> None:
    body = 'data: {"error": {"message": "KV cache is full", "code": 500}}\n\n'
    server.behaviours = [lambda handler, _: (begin(handler), say(handler, piece("S"), body))]
    with pytest.raises(ModelUnavailable, match="KV cache is full"):
        model.complete(["a"])


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_pause", lambda _state: 0.01)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        EndpointModel(f"http://127.0.0.1:{port}/v1", "m").complete(["a"])


def test_server_that_never_answers_is_left(server: Server) -> None:
    server.behaviours = [server.hangs]
    started = time.monotonic()
    with pytest.raises(ModelUnavailable, match="did not answer"):
        EndpointModel(server.url, "m", silence_s=0.3).complete(["a"])
    assert time.monotonic() - started < 2
    assert len(server.requests) == 1, "a silent server is not asked again and again"
    with pytest.raises(ModelUnavailable, match="did not answer"):
        EndpointModel(server.url, "m", max_time_s=0.3).complete(["a"])


@pytest.mark.parametrize("behaviour", ["drips", "hangs"])
def test_cancel_returns_at_once(server: Server, model: EndpointModel, behaviour: str) -> None:
    server.behaviours = [getattr(server, behaviour)]
    cancel = threading.Event()
    times: list[float] = []
    threading.Timer(0.4, lambda: (times.append(time.monotonic()), cancel.set())).start()
    completion = model.complete(["a"], cancel=cancel)[0]
    assert time.monotonic() - times[0] < 0.5
    assert completion.finish_reason == "cancelled"
    assert completion.text.startswith("word ") == (behaviour == "drips")


@pytest.mark.parametrize("behaviour", ["drips", "falls_silent"])
def test_cancel_hangs_up_so_that_the_server_stops(server: Server, model: EndpointModel, behaviour: str) -> None:
    """A server that generates for nobody keeps everybody else waiting."""
    server.behaviours = [getattr(server, behaviour)]
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    model.complete(["a"], cancel=cancel)
    assert server.hung_up.wait(3)


def test_answer_that_never_ends_is_cut(server: Server) -> None:
    server.behaviours = [server.drips]
    timed = EndpointModel(server.url, "m", max_time_s=0.5).complete(["a"])[0]
    assert timed.finish_reason == "time"
    assert timed.text.startswith("word ")
    limited = EndpointModel(server.url, "m").complete(["a"], max_new_tokens=1)[0]
    assert limited.finish_reason == "length"
    assert len(limited.text) <= 64 + 5


def test_what_the_stream_raises_reaches_the_caller(server: Server, model: EndpointModel) -> None:
    def broken(_index: int, _piece: str) -> None:
        raise LookupError("the page is gone")

    with pytest.raises(LookupError, match="the page is gone"):
        model.complete(["a"], stream=broken)


def test_more_prompts_than_connections(server: Server, model: EndpointModel) -> None:
    prompts = [str(i) for i in range(30)]
    assert [c.text for c in model.complete(prompts)] == [f"SELECT {i}" for i in range(30)]


@pytest.mark.parametrize(
    ("url", "leaves"),
    [
        ("http://localhost:8000/v1", False),
        ("http://127.0.0.1:1/v1", False),
        ("http://[::1]:8000/v1", False),
        ("https://api.example.org/v1", True),
        ("http://192.168.0.7:8000/v1", True),
        ("http://localhost.example.org/v1", True),
    ],
)
def test_says_whether_prompts_leave_this_machine(url: str, leaves: bool) -> None:
    assert EndpointModel(url, "m").info.leaves_machine is leaves


@pytest.mark.parametrize("spec", ["endpoint:http://localhost:8000/v1", "endpoint:localhost#m", "endpoint:ftp://h/v1#m"])
def test_incomplete_spec_shows_how_it_is_written(spec: str) -> None:
    with pytest.raises(ModelUnavailable, match="endpoint:<address>#<model>"):
        load(spec)
