"""Work that is pulled: how it is offered, given away, and heard of again."""
