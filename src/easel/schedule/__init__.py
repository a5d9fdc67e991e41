"""Who is served next: policies over tenants, candidates and devices; priors from history; the simulator."""
