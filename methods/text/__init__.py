"""Deep text models: parts that are shared (batches, embeddings, attention, training) and bases."""
