"""Understanding what vgs and lvs print: decoding, rows, volumes, conditions."""
