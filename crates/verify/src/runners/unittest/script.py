# Runs a script that runs unittest, such as Django's `manage.py test`, and records every result, whatever class it is of.
import functools
import runpy
import traceback


def watch(result):
    if result is None or getattr(result, "_is_recorded", False):
        return
    result._is_recorded = True

    def add(method, state, message_of):
        original = getattr(result, method, None)
        if original is None:
            return

        @functools.wraps(original)
        def wrapper(test, *args, **kwargs):
            original(test, *args, **kwargs)
            message = message_of(*args, **kwargs)
            if message is not None:
                record(test, state, message)

        setattr(result, method, wrapper)

    def traceback_of(err, *_):
        return "".join(traceback.format_exception(*err)) if isinstance(err, tuple) else str(err)

    add("addSuccess", "passed", lambda *_: "")
    add("addError", "failed", traceback_of)
    add("addFailure", "failed", traceback_of)
    add("addSkip", "skipped", lambda reason, *_: str(reason))
    add("addExpectedFailure", "passed", lambda *_: "")
    add("addUnexpectedSuccess", "failed", lambda *_: "expected to fail, and passed")
    add("addSubTest", "failed", lambda subtest, err=None, *_: traceback_of(err) if err else None)


def watched(run):
    @functools.wraps(run)
    def wrapper(self, result=None, *args, **kwargs):
        watch(result)
        return run(self, result, *args, **kwargs)

    return wrapper


unittest.TestCase.run = watched(unittest.TestCase.run)
unittest.TestSuite.run = watched(unittest.TestSuite.run)
del sys.argv[0]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    # Without a test there is nothing to tell, and the exit code counts.
    if os.path.exists(report):
        write(state="end")
