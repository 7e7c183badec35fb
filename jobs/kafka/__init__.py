"""Reading from sources: Kafka clients, the Admin API, log files and Spark's streaming sources.

Only the events topic is written here.
Decoding of records belongs to `pipelines`; storing rows belongs to `jobs.tables`.
"""
