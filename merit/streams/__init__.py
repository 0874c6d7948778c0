"""Experiments over a stream of questions: datasets, first answers, runs over orders, and what they measure.

What this package does not know: pages, and how one episode comes about (``merit.repair``).
"""

from __future__ import annotations

from merit.streams.datasets import Dataset, GoldFault, load_dataset, own_dataset
from merit.streams.predictions import Predictions, load_predictions, read_predictions

__all__ = [
    "Dataset",
    "GoldFault",
    "Predictions",
    "load_dataset",
    "load_predictions",
    "own_dataset",
    "read_predictions",
]
