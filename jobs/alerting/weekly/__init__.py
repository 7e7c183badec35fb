"""The weekly report: when it is due, what is sent to chats and by mail, and which receivers have it.

It runs in a thread of its own and shares nothing with alerts but the process: a slow report delays no alert.
"""
