"""What sits on LVs: DRBD, encryption, filesystems, and where a size got lost."""
