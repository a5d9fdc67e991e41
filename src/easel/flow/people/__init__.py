"""People come and go: accounts, invitations, projects that end."""
