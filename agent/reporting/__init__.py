"""What happens to the documents of an audit: stored, delivered, never lost silently."""
