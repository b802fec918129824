# Runs unittest like `python -m unittest` and records every result in the format of `report_lines.rs`, next to this file.
import json
import os
import re
import sys
import unittest

# As with `-m`, import modules from the current directory and not from the directory of this program.
sys.path[0] = root = os.getcwd()
report = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.jsonl"), "w", encoding="utf-8")


def file_of(test):
    module = sys.modules.get(type(test).__module__)
    file = os.path.abspath(getattr(module, "__file__", None) or "")
    return os.path.relpath(file, root) if file.startswith(root + os.sep) else ""


def write(**line):
    report.write(json.dumps(line) + "\n")
    report.flush()


def record(test, state, message=""):
    kind = type(test).__name__
    if kind in ("_FailedTest", "ModuleImportFailure", "LoadTestsFailure") or type(test).__module__ == "unittest.loader":
        name = test.id().replace("unittest.loader." + kind + ".", "", 1)
        files = [start + name.replace(".", "/") + ".py" for start in ("", "tests/", "test/")]
        file = next(filter(os.path.isfile, files), "")
        if state != "skipped":
            state = "unloaded"
            message = next((line for line in reversed(message.splitlines()) if "Error" in line), message).strip()
    elif kind == "_ErrorHolder":
        name, file = test.id(), ""
    else:
        name = type(test).__qualname__.replace(".", "::") + "::" + test.id().rsplit(".", 1)[-1]
        file = file_of(test)
    # The error is at the end of a traceback. Show it first.
    error = re.search(r"^[^ :\n]*Error(?::|$)", message, re.M)
    if state == "failed" and error:
        message = message[error.start() :].rstrip("\n") + "\n\n" + message
    write(test=name, file=file, state=state, message=message)


class Result(unittest.TextTestResult):
    def startTest(self, test):
        self._parts = []
        super().startTest(test)

    def addSuccess(self, test):
        super().addSuccess(test)
        if not self._parts:
            record(test, "passed")

    def addError(self, test, err):
        super().addError(test, err)
        self._parts = getattr(self, "_parts", []) + ["error"]
        record(test, "failed", self.errors[-1][1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._parts.append("failure")
        record(test, "failed", self.failures[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            if not self._parts:
                message = (self.failures if issubclass(err[0], test.failureException) else self.errors)[-1][1]
                record(test, "failed", message)
            self._parts.append("subtest")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if not self._parts:
            record(test, "skipped", reason)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        record(test, "passed")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        record(test, "failed", "expected to fail, and passed")


class Runner(unittest.TextTestRunner):
    resultclass = Result

    def run(self, test):
        result = super().run(test)
        write(state="end")
        return result


unittest.main(module=None, argv=["python -m unittest"] + sys.argv[1:], testRunner=Runner)
