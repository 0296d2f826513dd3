"""The engines: memory, disk and Spark, with the same verbs for every size of table."""
