"""What the printed numbers of the papers say about themselves and one another."""
