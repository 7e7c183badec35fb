"""Programs of the lab's Python members that are not librdkafka consumers. They import nothing of Regroup."""
