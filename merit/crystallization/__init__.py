"""Crystallization: what a memory of repaired episodes is worth later (arXiv 2608.07213).

The paper's code could not be had. What it leaves open is reconstructed, and every table here says which of its rows
are the paper's and which are ours.

What this package does not know: pages.
"""

from __future__ import annotations
