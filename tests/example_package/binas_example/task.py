"""A task: a stub that says hello."""


def greet(name: str = "world") -> str:
    return f"hello, {name}"
