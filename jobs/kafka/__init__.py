"""Everything that reads from a source: Kafka clients, the Admin API, log files and Spark's streaming sources.

The only thing written to Kafka here is the events topic.
How records are decoded belongs to `pipelines`; how rows are stored belongs to `jobs.tables`.
"""
