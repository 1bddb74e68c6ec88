"""Questions → drafts of actions → a small library; plans that reached the gold answer → examples."""
