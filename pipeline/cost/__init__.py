"""What teams owe for the bytes of a month: usage from several sources, prices, and charges as FOCUS has them."""
