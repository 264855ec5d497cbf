"""The pure core: standard library and msgspec only, no I/O, no clock, no logging, never exits."""
