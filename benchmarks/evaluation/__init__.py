"""Predictions in, numbers out: rankings, metrics, conventions, propensities, statistics."""
