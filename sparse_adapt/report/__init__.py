"""Results as a person reads them: tables, JSON, pages in HTML, and the progress of long work."""
