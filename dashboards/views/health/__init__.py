"""What Regroup has read, missed and failed to do, as the Health page and the answer say it."""
