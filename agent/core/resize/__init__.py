"""Whether a resize that somebody is about to ask for would be safe."""
