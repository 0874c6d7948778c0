"""Experiments over a stream of questions: datasets, first answers, runs over orders, and what they measure.

What this package does not know: pages, and how one episode comes about (``merit.repair``).
"""

from __future__ import annotations

from merit.streams.cache import GenerationCache
from merit.streams.datasets import Dataset, GoldFault, load_dataset, own_dataset
from merit.streams.measures import Measures, Paired, measure, paired
from merit.streams.plan import Plan, stream_order
from merit.streams.predictions import Predictions, load_predictions, read_predictions
from merit.streams.runner import RunCancelled, RunPaused, run
from merit.streams.trajectory import Attempt, Trajectory

__all__ = [
    "Attempt",
    "Dataset",
    "GenerationCache",
    "GoldFault",
    "Measures",
    "Paired",
    "Plan",
    "Predictions",
    "RunCancelled",
    "RunPaused",
    "Trajectory",
    "load_dataset",
    "load_predictions",
    "measure",
    "own_dataset",
    "paired",
    "read_predictions",
    "run",
    "stream_order",
]
