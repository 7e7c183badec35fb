"""Records of `__consumer_offsets`: real ones, some of every layout, and Kafka's own decoder to compare ours with."""
