"""Sign on elsewhere: OpenID Connect, LDAP, and machines without a browser."""
