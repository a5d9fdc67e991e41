"""Request and response models shared by server and SDK."""
