"""Objects → arrays. An encoder is fitted on training inputs and is then a plain value that JSON can hold."""
