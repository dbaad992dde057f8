"""Other people's programs behind the protocol, for side-by-side rows (extra ``peers``)."""
