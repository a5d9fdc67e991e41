"""The FastAPI app: routes, access, live events, the background loops."""
