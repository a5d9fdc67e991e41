"""Moving experiments, runs, files and registered models between MLflow and Easel."""
