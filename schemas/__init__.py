"""Facts: record layouts, log line patterns, tables and vocabularies. This package has no behaviour and no engine."""
