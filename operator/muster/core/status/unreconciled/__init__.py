"""The statuses of resources that muster does not reconcile."""
