"""Words for the outside: states, reasons, durations. Everything that people read is made here, from facts."""
