"""The decision trace: its events, the live view and metrics made from them, and the file and spans they go to."""
