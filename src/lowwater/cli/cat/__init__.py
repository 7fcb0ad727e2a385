"""`lowwater cat`: kcat's command line over this client."""
