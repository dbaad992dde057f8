"""What a run leaves: a cell's identity and files, and the frames that join all cells."""
