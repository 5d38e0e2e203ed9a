from quotascope.exporter.web.settings import alternative_names


def test_kinds_of_names() -> None:
    """As the toolkit compares them: an IPv6 address in its short form, and nothing of what is no name."""
    certificate = {
        "subject": ((("commonName", "alice"),),),
        "subjectAltName": (
            ("DNS", "prometheus.corp"),
            ("email", "prometheus@corp"),
            ("URI", "spiffe://corp/prometheus"),
            ("IP Address", "0:0:0:0:0:0:0:1\n"),
            ("IP Address", "10.0.0.1"),
            ("IP Address", "<invalid>"),
            ("DirName", ((("commonName", "bob"),),)),
        ),
    }
    assert alternative_names(certificate) == {
        "prometheus.corp",
        "prometheus@corp",
        "spiffe://corp/prometheus",
        "::1",
        "10.0.0.1",
        "<invalid>",
    }
    assert alternative_names({}) == set()
