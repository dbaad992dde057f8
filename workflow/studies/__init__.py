"""Programs on top of the library, such as the choice of a variant's settings."""
