"""Records of `__consumer_offsets`: real ones, some of every layout, and Kafka's own decoder to compare ours with.

Records that one test writes for itself stay beside that test; mutated and hostile ones are in `testing.fuzzing` and
`testing.hostile`.
"""
