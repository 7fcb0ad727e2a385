"""`lowwater topics`: what one does with topics every day."""
