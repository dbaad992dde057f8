"""The parts of the report: each module turns frames of a run into plain data for its template."""
