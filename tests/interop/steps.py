"""One line per step: `ok`, `FAILED` or `SKIPPED:`. The recipe counts them."""
import traceback


def step(name, action):
    """Runs `action`; whatever it raises is a failure that names the step."""
    try:
        action()
    except Exception as error:  # noqa: BLE001: a step that falls over has failed, whatever it was
        where = traceback.extract_tb(error.__traceback__)[-1]
        detail = " ".join(str(error).split())[:600] or type(error).__name__
        print(f"FAILED {name}: {detail} ({where.filename.rsplit('/', 1)[-1]}:{where.lineno})", flush=True)
        return False
    print(f"ok {name}", flush=True)
    return True


def expect(condition, detail):
    if not condition:
        raise AssertionError(detail)
