from quotascope.spark_listener.errors import brief


class _FromJava(Exception):
    def __init__(self, java: object) -> None:
        super().__init__("An error occurred while calling o1.x.\n\tat a.b.c")
        self.java_exception = java


class _Throwable:
    def toString(self) -> str:  # noqa: N802 - Java's name
        return "java.lang.NoSuchMethodException: x\n  y"


def test_java_errors_are_reported_without_their_stack() -> None:
    """Only what the JVM calls them."""
    assert brief(_FromJava(_Throwable())) == "java.lang.NoSuchMethodException: x y"


def test_error_of_a_jvm_that_is_gone_is_reported() -> None:
    """When it cannot be asked, the kind of that failure is what is known."""
    assert brief(_FromJava(object())) == "AttributeError"


def test_texts_are_one_line_and_bounded() -> None:
    """An error without a text is reported by its kind."""
    assert brief(ValueError("a\nb\t c")) == "a b c"
    assert brief(ValueError()) == "ValueError"
    assert len(brief(ValueError("x" * 10_000))) == 300
