"""One file for each family of models, or for a few that differ in one number."""
