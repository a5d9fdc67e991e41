"""Conformance suites for every interface, and stand-ins for time. Shipped: other back ends can use them."""
