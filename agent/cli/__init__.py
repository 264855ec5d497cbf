"""The command line: one module per command, `wiring` puts the parts together, `main` runs it.

Not here: what an audit is (`agent.audit`), what verdicts mean (`agent.core`).
"""
