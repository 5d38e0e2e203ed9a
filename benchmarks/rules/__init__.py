"""What our rules and the queries of our dashboards cost a Prometheus; see ``__main__``."""
