"""`lowwater groups`: who reads, how far behind, and from where on."""
