"""Messages of Kafka's protocol that the client libraries lack, as kafka-python reads them: one JSON file a message.

Field names, types and versions are those of Kafka 4.4.0 (`clients/src/main/resources/common/message`).
"""
