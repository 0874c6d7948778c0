"""Causal episodic memory: entries, the store, the causal view, the ranking."""
