"""What goes to an OpenTelemetry collector: read from the tables, apart from batches and from alerts."""
