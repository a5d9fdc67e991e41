"""The use cases of prices: bills, budgets, profiles, provisioning."""
