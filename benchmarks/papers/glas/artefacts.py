"""The GLaS paper redrawn: its table of datasets."""

from benchmarks.papers.artefacts import dataset_table

ARTEFACTS = (dataset_table("glas"),)
