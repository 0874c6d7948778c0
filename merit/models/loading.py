"""Load the model and the encoder in the background, once for the whole process, and tell how far it is.

A page polls ``start(...)`` at every redraw and never blocks. A failure is a state with a sentence, not an exception
at every caller; ``retry()`` tries again.

What this module does not know: what is drawn, or what a model is used for.
"""

from __future__ import annotations

import threading
import time
from enum import StrEnum

from merit.errors import MeritError
from merit.models import choice
from merit.models.language import Encoder, LanguageModel
from merit.models.packages import Cancelled


class State(StrEnum):
    """Where a loading stands. READY and FAILED are ends; ``retry`` leads out of FAILED."""

    WAITING = "waiting"
    DOWNLOADING = "downloading"
    CONVERTING = "converting"
    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


_STATES = {
    "downloading": State.DOWNLOADING,
    "converting": State.CONVERTING,
    "merging": State.CONVERTING,
    "loading": State.LOADING,
}
"""The first word of a progress message names the state."""


class Loading:
    """A model and an encoder on their way. All fields are read from any thread; only its own thread writes.

    ``fraction`` is in [0, 1] or None where unknown; ``error`` is a sentence when ``state`` is FAILED.
    """

    def __init__(self, spec: str, encoder_spec: str, predecessor: Loading | None = None) -> None:
        self.spec = spec
        self.encoder_spec = encoder_spec
        self.state = State.WAITING
        self.message = "waiting to load the model"
        self.fraction: float | None = None
        self.model: LanguageModel | None = None
        self.encoder: Encoder | None = None
        self.error: str | None = None
        self._predecessor = predecessor
        self._loaded: LanguageModel | None = None
        self._released = False
        self._cancel = threading.Event()
        self._lock = threading.Lock()
        self._started_at = time.monotonic()
        self._ended_at: float | None = None
        self._thread = self._begin()

    @property
    def elapsed_s(self) -> float:
        """Seconds from the (last) start to now or to the end."""
        return (self._ended_at or time.monotonic()) - self._started_at

    def retry(self) -> None:
        """Start again after a failure; while loading, once ready, or after a switch it does nothing."""
        with self._lock:
            if self.state is not State.FAILED or self._released:
                return
            self.state, self.message, self.fraction, self.error = State.WAITING, "waiting to load the model", None, None
            self._cancel.clear()
            self._started_at, self._ended_at = time.monotonic(), None
            self._thread = self._begin()

    def cancel(self) -> None:
        """Stop as soon as possible; ends as FAILED, so that it can be retried."""
        self._cancel.set()

    def wait(self, timeout_s: float | None = None) -> Loading:
        """Block until it ends or the time is up (for the command line and tests, not for a page)."""
        self._thread.join(timeout_s)
        return self

    def _begin(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name="model loading", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        try:
            encoder = self._inherited_encoder()
            # Kept over a retry: when only the encoder failed, the model is not loaded again.
            self._loaded = self._loaded or choice.load(self.spec, self._progress, self._cancel)
            self.encoder = encoder or choice.load_encoder(self.encoder_spec, self._progress, self._cancel)
            self.model = self._loaded
        except Cancelled:
            self._end(State.FAILED, "Loading was stopped.")
        except MeritError as error:
            self._end(State.FAILED, str(error))
        except Exception as error:  # noqa: BLE001 - a page shows it; the process must live on
            self._end(State.FAILED, f"The model could not be loaded ({type(error).__name__}: {error}).")
        else:
            self._end(State.READY, None)

    def _inherited_encoder(self) -> Encoder | None:
        """Free the model that was loaded before, and take over its encoder if it is the one asked for."""
        before, self._predecessor = self._predecessor, None
        if before is None:
            return self.encoder
        before.cancel()
        before.wait()
        encoder = before.encoder if before.encoder_spec == self.encoder_spec else None
        before._release()
        return encoder

    def _release(self) -> None:
        # An episode that still runs on the old model holds it until its end; then it is freed.
        self._released = True
        self.model = self._loaded = self.encoder = None
        self._end(State.FAILED, "This model was unloaded because another one was chosen.")
        import gc

        gc.collect()
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _progress(self, message: str, fraction: float | None) -> None:
        if self._cancel.is_set():
            raise Cancelled
        self.state = _STATES.get(message.partition(" ")[0], self.state)
        self.message, self.fraction = message, fraction

    def _end(self, state: State, error: str | None) -> None:
        with self._lock:
            self._ended_at = time.monotonic()
            self.error = error
            self.message = error or "ready"
            self.fraction = 1.0 if state is State.READY else None
            self.state = state


_current: Loading | None = None
_guard = threading.Lock()


def start(spec: str | None = None, encoder_spec: str | None = None) -> Loading:
    """The loading of this process; begun at the first call, by whichever thread calls first.

    None means what is there already, else ``auto``: pages call ``start()``. Another spec switches the model of all
    sessions: what was loaded before is released, the encoder kept where its spec is the same.
    """
    global _current
    with _guard:
        spec = spec or (_current.spec if _current else "auto")
        encoder_spec = encoder_spec or (_current.encoder_spec if _current else "auto")
        if _current is None or (_current.spec, _current.encoder_spec) != (spec, encoder_spec):
            _current = Loading(spec, encoder_spec, _current)
        return _current
