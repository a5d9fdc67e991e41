"""What a file set refers to: a sorted map from path to file version, kept as a tree of shared nodes."""
