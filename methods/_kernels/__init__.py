"""Compiled helpers that several families of methods share."""
