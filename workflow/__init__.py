"""How it is run: configuration, cells, supervision, provenance, the Snakemake rules."""
