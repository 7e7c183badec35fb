"""Facts: record layouts, log patterns, tables and vocabularies. No behaviour, no engine."""
