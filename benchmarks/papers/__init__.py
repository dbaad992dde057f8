"""The papers as data, and the machinery that reads, compares and audits them."""
