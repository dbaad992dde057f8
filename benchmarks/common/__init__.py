"""Files written whole, documents checked against schemas: what every room needs."""
