"""What a run will cost, before it starts: laws fitted to earlier runs, a schedule, a page."""
