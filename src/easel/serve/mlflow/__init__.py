"""MLflow's REST API over our own use cases. Its clients need no change: `MLFLOW_TRACKING_URI=…/mlflow/PROJECT`."""
