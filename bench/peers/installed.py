"""Which programs to compare with are here."""
import importlib


def installed(name):
    """The module, or None behind a line that says why it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as e:
        print(f"{name} is not installed: {e}")
        return None
