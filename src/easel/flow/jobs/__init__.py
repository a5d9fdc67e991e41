"""The use cases of the job engine."""
