"""Rows of one group prepared for drawing over time. Pure; times are epoch ms."""
