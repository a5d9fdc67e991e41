"""The models themselves. Its modules may import torch; the package itself does not."""
