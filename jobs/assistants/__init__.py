"""The command `regroup mcp`: tools with which assistants ask why a group stopped."""
