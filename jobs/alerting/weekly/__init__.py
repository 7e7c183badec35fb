"""The weekly report: when it is due, what is sent to chats and by mail, and which receivers have it.

It runs in a separate thread and shares only the process with alerts, so a slow report delays no alert.
"""
