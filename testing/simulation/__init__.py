"""Simulated groups and clusters as rows of silver, and how many of their storms the product finds."""
