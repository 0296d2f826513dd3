"""Where the work is done: the same verbs for every size of table."""
