"""Language models and encoders: the one way in is ``load`` and ``load_encoder``.

Importing this package imports no torch; the libraries that run a model are imported when one is loaded.

What this module does not know: how any of them works.
"""

from __future__ import annotations

from merit.models.choice import load, load_encoder
from merit.models.language import Completion, Encoder, LanguageModel, ModelInfo

__all__ = ["Completion", "Encoder", "LanguageModel", "ModelInfo", "load", "load_encoder"]
