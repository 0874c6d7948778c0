"""Files of a model hub id: from the local cache if they are complete there, else downloaded, else a plain sentence.

An unreachable hub costs at most two seconds, whatever it does (refuses, drops packets, accepts and never answers).

What this module does not know: what is done with the folder.
"""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

from merit.errors import ModelUnavailable
from merit.models.packages import Cancelled, Progress, silent

PROBE_S = 1.5
"""Seconds the hub has to say that it knows a model."""
_WANTED = ["*.safetensors", "*.json", "*.jinja", "*.txt", "*.model"]
_ID = re.compile(r"[\w.-]+/[\w.-]+")


def folder(
    reference: str, revision: str | None = None, progress: Progress = silent, cancel: threading.Event | None = None
) -> Path:
    """The local folder of a folder path or hub id, downloaded if need be.

    Errors: ``ModelUnavailable`` (no such folder or id, gated, hub out of reach, disk full), ``Cancelled``.
    """
    path = Path(reference).expanduser()
    if path.is_dir():
        return path
    if path.suffix == ".gguf":
        raise ModelUnavailable(
            "GGUF files are not loaded directly. Serve the file with llama.cpp and use "
            "endpoint:http://localhost:8080/v1#model, or give the safetensors model it was made from."
        )
    if not _ID.fullmatch(reference):
        raise ModelUnavailable(
            f"{reference!r} is neither a folder here nor a hub id of the form owner/name. Check the spelling."
        )
    cached = _cached(reference, revision)
    if cached is not None:
        return cached
    _probe(reference, revision)
    return _download(reference, revision, progress, cancel)


def _cached(reference: str, revision: str | None) -> Path | None:
    """The snapshot in the hub's cache, if configuration and every weight file are there (no network)."""
    from huggingface_hub import snapshot_download

    try:
        found = Path(snapshot_download(reference, revision=revision, local_files_only=True))
    except Exception:  # noqa: BLE001 - the hub client has many ways to say "not here"
        return None
    index = found / "model.safetensors.index.json"
    if index.is_file():
        weights = set(json.loads(index.read_text("utf-8"))["weight_map"].values())
    else:
        weights = {"model.safetensors"}
    complete = (found / "config.json").is_file() and all((found / name).is_file() for name in weights)
    return found if complete else None


def _probe(reference: str, revision: str | None) -> None:
    """Ask the hub for the model in a thread that is left behind if it hangs in a name lookup or a silent server."""
    from huggingface_hub import HfApi

    outcome: list[BaseException | None] = []

    def ask() -> None:
        try:
            HfApi().model_info(reference, revision=revision, timeout=PROBE_S)
            outcome.append(None)
        except BaseException as error:  # noqa: BLE001 - carried to the caller
            outcome.append(error)

    thread = threading.Thread(target=ask, name="hub probe", daemon=True)
    thread.start()
    thread.join(PROBE_S)
    if not outcome or outcome[0] is not None:
        raise _explained(reference, outcome[0] if outcome else None) from None


def _explained(reference: str, error: BaseException | None) -> ModelUnavailable:
    """Turn what the hub client raised into a sentence; ``None`` means it did not answer in time."""
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    if isinstance(error, GatedRepoError):
        return ModelUnavailable(
            f"{reference} asks for an agreement first. Accept it on the model's page, then set HF_TOKEN to your token."
        )
    if isinstance(error, RevisionNotFoundError):
        return ModelUnavailable(f"The model hub has {reference}, but not the revision this version was built for.")
    if isinstance(error, RepositoryNotFoundError):
        return ModelUnavailable(f"The model hub knows no public model {reference}. Check the spelling.")
    if isinstance(error, OSError) and error.errno == 28:
        return ModelUnavailable(f"The disk is full: {reference} could not be stored. Free some space and try again.")
    network = error is None or isinstance(error, OSError) or type(error).__module__.startswith(("httpx", "httpcore"))
    if not network:
        return ModelUnavailable(f"{reference} could not be downloaded from the model hub ({type(error).__name__}).")
    return ModelUnavailable(
        f"The model hub cannot be reached, and {reference} is not on this machine yet. "
        "Connect to the network, give the path of a local folder, or use the embedded model."
    )


def _download(reference: str, revision: str | None, progress: Progress, cancel: threading.Event | None) -> Path:
    from huggingface_hub import snapshot_download
    from tqdm.auto import tqdm

    message = f"downloading {reference} from the model hub"

    class Bar(tqdm):  # type: ignore[misc]
        """The hub client's own progress bar, told to us instead of the terminal."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            options.pop("name", None)
            super().__init__(*arguments, **{**options, "disable": False, "file": _Nowhere()})

        def update(self, n: float | None = 1) -> bool | None:
            if cancel is not None and cancel.is_set():
                raise Cancelled
            shown: bool | None = super().update(n)
            if self.unit == "B" and self.total:
                progress(message, min(1.0, self.n / self.total))
            return shown

    progress(message, 0.0)
    try:
        return Path(snapshot_download(reference, revision=revision, allow_patterns=_WANTED, tqdm_class=Bar))
    except Cancelled:
        raise
    except Exception as error:
        raise _explained(reference, error) from error


class _Nowhere:
    """A terminal that shows nothing."""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        return None
