"""The RankNet+Taug paper: its tables, figures and claims, redone."""
