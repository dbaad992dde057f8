"""The embedding model of the GLaS paper."""
