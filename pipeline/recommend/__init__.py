"""The lowest limits that would have throttled hardly ever, and how to set them."""
