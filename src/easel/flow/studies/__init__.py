"""Studies: the best configuration under a budget, each point a job."""
