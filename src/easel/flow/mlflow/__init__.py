"""Use cases of the MLflow face: what its clients ask for, done with our own jobs, series, tags, files and sets."""
