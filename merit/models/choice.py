"""From a specification such as ``auto`` or ``endpoint:http://…#model`` to a model that answers.

What this module does not know: when it is called (``loading``) or how a model generates.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from merit.errors import BadInput, ModelUnavailable
from merit.models.language import Encoder, LanguageModel
from merit.models.packages import Progress, silent
from merit.settings import settings


@dataclass(frozen=True)
class Candidate:
    """A model for a GPU: hub id, pinned revision, GiB that must be free to load it in NF4 and answer 8,192 tokens."""

    reference: str
    revision: str
    free_gib: float


CANDIDATES = (
    Candidate("Qwen/Qwen2.5-7B-Instruct", "a09a35458c702b33eeacc393d103063234e8bc28", 8.0),
    Candidate("Qwen/Qwen2.5-3B-Instruct", "aa8e72537993ba99e69dfaafa59ed015b17504d1", 4.0),
    Candidate("Qwen/Qwen2.5-1.5B-Instruct", "989aa7980e4cf806f80c7fef2b1adb7bc71aa306", 3.0),
    Candidate("Qwen/Qwen2.5-0.5B-Instruct", "7ae557604adf67be50417f59c2c2f167def9a775", 1.5),
)
"""Best first; ``auto`` takes the first that fits."""


def load(spec: str = "auto", progress: Progress = silent, cancel: threading.Event | None = None) -> LanguageModel:
    """``embedded``, ``local:<hub id or folder>``, ``endpoint:<url>#<model>`` or ``auto``.

    Models that run here come with a queue in front. Errors: ``ModelUnavailable``, ``BadInput`` for another spec,
    ``packages.Cancelled``.
    """
    from merit.models.queue import Queued

    kind, _, rest = spec.partition(":")
    match kind:
        case "auto" if not rest:
            configured = settings().model
            return load(configured, progress, cancel) if configured != "auto" else _automatic(progress, cancel)
        case "embedded" if not rest:
            return Queued(_embedded(progress, cancel, ()))
        case "local" if rest:
            from merit.models import local

            return Queued(local.load(rest, progress=progress, cancel=cancel))
        case "endpoint" if rest:
            from merit.models.endpoint import EndpointModel

            url, _, model = rest.rpartition("#")
            return EndpointModel(url, model, settings().endpoint_key)
    raise BadInput(
        f"There is no model {spec!r}. Write auto, embedded, local:<hub id or folder> or endpoint:<address>#<model>."
    )


def load_encoder(spec: str = "auto", progress: Progress = silent, cancel: threading.Event | None = None) -> Encoder:
    """``embedded``, ``local:<hub id or folder>`` or ``auto`` (the paper's encoder on a GPU, else the embedded one).

    Errors as ``load``.
    """
    from merit.models import encoder

    kind, _, rest = spec.partition(":")
    match kind:
        case "auto" if not rest:
            configured = settings().encoder
            if configured != "auto":
                return load_encoder(configured, progress, cancel)
            if free_gpu_gib() is None:
                return encoder.load_embedded(progress, cancel)
            try:
                return encoder.load_local(encoder.BGE, encoder.BGE_REVISION, progress, cancel)
            except ModelUnavailable:
                return encoder.load_embedded(progress, cancel)
        case "embedded" if not rest:
            return encoder.load_embedded(progress, cancel)
        case "local" if rest:
            return encoder.load_local(rest, None, progress, cancel)
    raise BadInput(f"There is no encoder {spec!r}. Write auto, embedded or local:<hub id or folder>.")


def free_gpu_gib() -> float | None:
    """Free memory of the first CUDA device in GiB, or None without one."""
    import torch

    if not torch.cuda.is_available():
        return None
    return float(torch.cuda.mem_get_info(0)[0] / 2**30)


def fitting(free_gib: float | None) -> Candidate | None:
    """The best candidate for so much free GPU memory (GiB)."""
    return next((c for c in CANDIDATES if free_gib is not None and c.free_gib <= free_gib), None)


def _automatic(progress: Progress, cancel: threading.Event | None) -> LanguageModel:
    from merit.models.queue import Queued

    candidate = fitting(free_gpu_gib())
    if candidate is None:
        return Queued(_embedded(progress, cancel, ()))
    from merit.models import local

    try:
        return Queued(local.load(candidate.reference, revision=candidate.revision, progress=progress, cancel=cancel))
    except ModelUnavailable as unavailable:
        return Queued(_embedded(progress, cancel, (f"{unavailable} The embedded model answers instead.",)))


def _embedded(progress: Progress, cancel: threading.Event | None, notes: tuple[str, ...]) -> LanguageModel:
    from merit.models import embedded, local

    folder = embedded.fetch(progress, cancel)
    adapted = embedded.adapter_hash() is not None
    return local.load(
        str(folder),
        quantise=False,
        model_id=embedded.model_id(),
        label=f"{embedded.NAME} (embedded{', with the text-to-SQL adapter' if adapted else ''})",
        notes=notes,
        progress=progress,
    )
