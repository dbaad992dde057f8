"""What is measured: datasets, metrics, statistics, published figures, tables."""
