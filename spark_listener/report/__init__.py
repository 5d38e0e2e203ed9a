"""What an application waited for, as tables and as a picture."""
