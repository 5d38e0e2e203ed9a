"""Names that strangers might give."""

HOSTILE = (
    "<script>alert('hit')</script>\n\u202e\"&amp;<img src=x onerror=alert(1)>\x1b[2J"
)
