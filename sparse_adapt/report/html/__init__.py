"""Pages in HTML: their parts, their pictures, and the one template that writes them."""
