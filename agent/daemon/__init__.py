"""The daemon: one mailbox, one worker, and what tells the worker to look.

Timer, udev thread and signal handlers only post messages; everything else happens in the main thread,
one thing after the other.  Not here: audits (`agent.audit`), wiring (`agent.cli.run`).
"""
