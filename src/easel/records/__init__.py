"""Facts handed from stage to stage."""
