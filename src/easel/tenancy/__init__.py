"""Who shares the pool: apps and studies as tenants of the scheduler, the state that it decides on, starts and ends."""
