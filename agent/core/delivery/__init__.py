"""Reports on their way: queue, folding, retries, and what is said about them."""
