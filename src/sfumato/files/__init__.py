"""Files of others: opened so that no pipe and no device keeps a run waiting."""
