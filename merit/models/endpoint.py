"""A model behind an OpenAI-compatible server (vLLM, SGLang, llama.cpp, a provider), through the openai client.

Prompts leave this machine unless the server is on it; ``info.leaves_machine`` says so. The key comes from the
settings and appears in no representation, message or log of ours.

What this module does not know: what runs behind the address. It cannot count tokens beforehand.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

from merit.errors import ModelUnavailable
from merit.models.language import CANCELLED, LENGTH, STOP, TIME, Completion, ModelInfo, Stream

STREAM_EVERY_S = 0.1
_LOOK_EVERY_S = 0.05
_ATTEMPTS = 4
_PARALLEL = 8
_MOST_CHARS_PER_TOKEN = 64
"""A server that ignores ``max_tokens`` is stopped here."""
_THIS_MACHINE = {"localhost", "127.0.0.1", "::1"}


class _Broken(Exception):
    """The answer did not come to its end; ``str`` is the sentence."""


class EndpointModel:
    """``merit.models.language.LanguageModel`` over HTTP; safe for concurrent calls.

    ``connect_s`` and ``silence_s`` bound, in seconds, the connection and the wait for each next piece.
    """

    def __init__(
        self,
        url: str,
        model: str,
        key: SecretStr | None = None,
        *,
        connect_s: float = 5.0,
        silence_s: float = 120.0,
        max_time_s: float = 600.0,
    ) -> None:
        import openai

        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not model:
            raise ModelUnavailable(
                "An endpoint is written endpoint:<address>#<model>, "
                "for example endpoint:http://localhost:8000/v1#Qwen/Qwen2.5-7B-Instruct."
            )
        shown = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))
        local = parts.hostname in _THIS_MACHINE
        self.id = f"endpoint:{shown}#{model}"
        self.info = ModelInfo(label=model, quantisation="unknown", device=shown, leaves_machine=not local)
        self.max_time_s = max_time_s
        self.context_tokens = 8192
        self.tokens_per_second: float | None = None
        self._model = model
        self._secrets = [text for text in (key.get_secret_value() if key else "", parts.password or "") if text]
        self._client = openai.OpenAI(
            base_url=url,
            # Never empty: the client would then send the key of another provider from OPENAI_API_KEY.
            api_key=(key.get_secret_value() if key else "") or "none",
            timeout=openai.Timeout(silence_s, connect=connect_s),
            max_retries=0,
            http_client=openai.DefaultHttpxClient(trust_env=False) if local else None,
        )

    def __repr__(self) -> str:
        return f"EndpointModel({self.id!r})"

    def complete(
        self,
        prompts: Sequence[str],
        max_new_tokens: int = 512,
        *,
        system: str | None = None,
        temperature: float = 0.0,
        seed: int | None = None,
        stream: Stream | None = None,
        cancel: threading.Event | None = None,
    ) -> list[Completion]:
        """One request per prompt, up to eight at once; prompt i is sent with ``seed + i``.

        Refusals for load (429, 5xx) and lost connections are tried four times with growing pauses, unless text has
        arrived already. Errors: ``ModelUnavailable`` with what the server said, the key struck out.
        """
        call = _Call(len(prompts), stream)
        settings = {"model": self._model, "max_tokens": max_new_tokens, "temperature": temperature}
        todo: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()
        for index, prompt in enumerate(prompts):
            todo.put((index, prompt))

        def work() -> None:
            while not call.abandoned.is_set():
                try:
                    index, prompt = todo.get_nowait()
                except queue.Empty:
                    return
                messages = [{"role": "system", "content": system}] if system is not None else []
                messages.append({"role": "user", "content": prompt.encode("utf-8", "replace").decode("utf-8")})
                request = {**settings, "messages": messages} | ({} if seed is None else {"seed": seed + index})
                try:
                    call.events.put((index, self._ask(request, index, call)))
                except Exception as error:  # noqa: BLE001 - carried to the caller's thread
                    call.events.put((index, error))

        for _ in range(min(_PARALLEL, len(prompts))):
            threading.Thread(target=work, name="endpoint request", daemon=True).start()
        started = time.monotonic()
        try:
            completions = self._collect(call, cancel, started + self.max_time_s)
        finally:
            call.abandon()
        output_tokens = sum(completion.output_tokens for completion in completions)
        if output_tokens:
            self.tokens_per_second = output_tokens / max(time.monotonic() - started, 1e-6)
        return completions

    def _collect(self, call: _Call, cancel: threading.Event | None, deadline: float) -> list[Completion]:
        while len(call.done) < len(call.texts):
            if cancel is not None and cancel.is_set():
                return call.unfinished(CANCELLED)
            if time.monotonic() > deadline:
                if not any(call.texts):
                    raise ModelUnavailable(f"{self.info.device} did not answer within {self.max_time_s:.0f} seconds.")
                return call.unfinished(TIME)
            try:
                index, event = call.events.get(timeout=_LOOK_EVERY_S)
            except queue.Empty:
                call.flush()
                continue
            if isinstance(event, Exception):
                raise ModelUnavailable(self._explained(event)) from None
            call.take(index, event)
        call.flush(everything=True)
        return [call.done[index] for index in range(len(call.texts))]

    def _ask(self, request: dict[str, Any], index: int, call: _Call) -> Completion:
        """One request with its retries; runs in a worker thread."""
        import tenacity

        def worth_another_try(error: BaseException) -> bool:
            return _temporary(error) and index not in call.spoken

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(worth_another_try),
            wait=_pause,
            stop=tenacity.stop_after_attempt(_ATTEMPTS) | tenacity.stop_when_event_set(call.abandoned),
            sleep=tenacity.sleep_using_event(call.abandoned),
            reraise=True,
        )
        completion: Completion = retrying(self._ask_once, request, index, call)
        return completion

    def _ask_once(self, request: dict[str, Any], index: int, call: _Call) -> Completion:
        text, reason, usage, chunks = [], None, None, 0
        limit = request["max_tokens"] * _MOST_CHARS_PER_TOKEN
        answer = self._client.chat.completions.create(**request, stream=True, stream_options={"include_usage": True})
        with call.reading(answer):
            for chunk in answer:
                chunks += 1
                usage = getattr(chunk, "usage", None) or usage
                for choice in getattr(chunk, "choices", None) or ():
                    piece = getattr(choice.delta, "content", None)
                    if piece:
                        text.append(piece)
                        call.spoken.add(index)
                        call.events.put((index, piece))
                    reason = choice.finish_reason or reason
                if call.abandoned.is_set() or sum(map(len, text)) > limit:
                    reason = reason or LENGTH
                    break
        if chunks == 0:
            raise _Broken(
                "does not speak the OpenAI protocol (no answer could be read). The address often ends in /v1."
            )
        if reason is None:
            raise _Broken("closed the connection before the answer was complete.")
        return Completion(
            "".join(text),
            getattr(usage, "prompt_tokens", None) or 0,
            getattr(usage, "completion_tokens", None) or 0,
            LENGTH if reason == "length" else STOP,
        )

    def _explained(self, error: Exception) -> str:
        """What went wrong as a sentence, without the key."""
        import openai

        where = self.info.device
        if isinstance(error, _Broken):
            return f"{where} {error}"
        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            return f"{where} refused the key. Set MERIT_ENDPOINT_KEY to a valid one and start again."
        if isinstance(error, openai.NotFoundError):
            return f"{where} knows no model {self._model!r}, or the address is wrong (it often ends in /v1)."
        if isinstance(error, openai.RateLimitError):
            return f"{where} is busy or the quota is used up (429). Wait a little and ask again."
        if isinstance(error, openai.APITimeoutError):
            return f"{where} did not answer in time. Check that the server is running and not overloaded."
        if isinstance(error, openai.APIStatusError):
            return f"{where} answered with status {error.status_code}: {self._clean(error.message)}"
        if isinstance(error, openai.APIConnectionError) or _lost(error):
            return (
                f"{where} cannot be reached or closed the connection. Check the address and that the server is running."
            )
        if isinstance(error, openai.APIError):
            return f"{where} reported an error: {self._clean(error.message)}"
        return f"{where} does not speak the OpenAI protocol ({type(error).__name__}). The address often ends in /v1."

    def _clean(self, message: str) -> str:
        for secret in self._secrets:
            message = message.replace(secret, "•••")
        line = " ".join(message.split())
        return line if len(line) <= 200 else f"{line[:200]}…"


class _Call:
    """What the threads of one ``complete`` share. Only the calling thread takes events and streams."""

    def __init__(self, prompts: int, stream: Stream | None) -> None:
        self.events: queue.SimpleQueue[tuple[int, str | Completion | Exception]] = queue.SimpleQueue()
        self.abandoned = threading.Event()
        self.spoken: set[int] = set()
        self.texts = [""] * prompts
        self.done: dict[int, Completion] = {}
        self._stream = stream
        self._unsent = [""] * prompts
        self._next_flush = 0.0
        self._answers: set[Any] = set()

    @contextlib.contextmanager
    def reading(self, answer: Any) -> Iterator[None]:
        """While a response is read, ``abandon`` can end it; afterwards its connection may serve another call."""
        self._answers.add(answer)
        if self.abandoned.is_set():
            _hang_up(answer)
        try:
            with answer:
                yield
        finally:
            self._answers.discard(answer)

    def abandon(self) -> None:
        """No more retries, and close the connections so that the server stops generating."""
        self.abandoned.set()
        for answer in tuple(self._answers):
            _hang_up(answer)

    def take(self, index: int, event: str | Completion) -> None:
        if isinstance(event, Completion):
            self.done[index] = event
        else:
            self.texts[index] += event
            self._unsent[index] += event
        self.flush()

    def flush(self, *, everything: bool = False) -> None:
        """Stream what has arrived, at most every 100 ms."""
        now = time.monotonic()
        if self._stream is None or (now < self._next_flush and not everything):
            return
        self._next_flush = now + STREAM_EVERY_S
        for index, piece in enumerate(self._unsent):
            if piece:
                self._unsent[index] = ""
                self._stream(index, piece)

    def unfinished(self, reason: str) -> list[Completion]:
        """What there is: finished answers as they are, the others as far as they came (their tokens uncounted)."""
        self.flush(everything=True)
        return [self.done.get(i, Completion(text, 0, 0, reason)) for i, text in enumerate(self.texts)]


def _hang_up(answer: Any) -> None:
    """End the connection of a response; its reader, blocked in another thread, sees the end and closes it.

    ``close`` would only take effect once that reader wakes up by itself.
    """
    network_stream = answer.response.extensions.get("network_stream")
    connection = network_stream.get_extra_info("socket") if network_stream is not None else None
    if connection is not None:
        with contextlib.suppress(OSError):  # it may be closed already
            connection.shutdown(socket.SHUT_RDWR)


def _temporary(error: BaseException) -> bool:
    """Whether the same request may work a moment later. A server that is silent for minutes is not asked again."""
    import openai

    if isinstance(error, openai.APITimeoutError):
        return False
    return isinstance(
        error, openai.RateLimitError | openai.InternalServerError | openai.APIConnectionError | _Broken
    ) or _lost(error)


def _lost(error: BaseException) -> bool:
    """A connection error that the client lets through unwrapped while a stream is read."""
    return type(error).__module__.split(".")[0] in {"httpx", "httpx2", "httpcore", "httpcore2"}


def _pause(state: Any) -> float:
    """Seconds before the next try: what the server asks for, at most 10, else 0.5, 1, 2 with some jitter."""
    import tenacity

    error = state.outcome.exception()
    asked = getattr(getattr(error, "response", None), "headers", {}).get("retry-after", "")
    if asked.isdecimal():
        return min(float(asked), 10.0)
    return float(tenacity.wait_exponential_jitter(multiplier=0.5, max=4.0, jitter=0.25)(state))
