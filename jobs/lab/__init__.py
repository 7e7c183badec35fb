"""A real Kafka broker and real consumers that churn, for users without a Kafka cluster and for the tests."""
