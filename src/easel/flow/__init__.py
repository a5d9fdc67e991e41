"""The use cases that join the stages: one file each."""
