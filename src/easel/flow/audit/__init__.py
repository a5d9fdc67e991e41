"""The audit: who did what, chained, checked, sent on."""
