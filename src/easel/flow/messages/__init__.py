"""Messages to people, from an outbox that is written with the events that they are about."""
