"""From a program to candidates and from a candidate to a trained model. Nothing here knows a server."""
