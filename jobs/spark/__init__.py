"""The Spark session, its JVM and Python workers, its streaming queries and their checkpoints.

What a stream reads belongs to `jobs.kafka`; what a batch writes belongs to `jobs.tables`.
"""
