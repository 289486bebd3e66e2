"""Research beside the main path: nothing else imports it but the table of its commands."""
