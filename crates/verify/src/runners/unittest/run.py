# Runs unittest like `python -m unittest` and records every result as one line of JSON at the path given as the first
# argument. The last line marks the end of the report.
import json
import os
import sys
import unittest

path = sys.argv[1]
arguments = sys.argv[2:]
# As with `-m`, import modules from the current directory and not from the directory of this program.
sys.path[0] = os.getcwd()
report = open(path, "w", encoding="utf-8")
root = os.getcwd()


def file_of(test):
    module = sys.modules.get(type(test).__module__)
    file = os.path.abspath(getattr(module, "__file__", None) or "")
    return os.path.relpath(file, root) if file.startswith(root + os.sep) else ""


def record(test, state, message=""):
    kind = type(test).__name__
    if kind in ("_FailedTest", "ModuleImportFailure", "LoadTestsFailure") or type(test).__module__ == "unittest.loader":
        name = test.id().replace("unittest.loader." + kind + ".", "", 1)
        file = name.replace(".", "/") + ".py"
        for start in ("", "tests/", "test/"):
            if os.path.isfile(start + file):
                file = start + file
                break
        line = {"id": name, "file": file if os.path.isfile(file) else "", "state": "unloaded" if state != "skipped" else state}
    elif kind == "_ErrorHolder":
        line = {"id": test.id(), "file": "", "state": state}
    else:
        method = test.id().rsplit(".", 1)[-1] if "." in test.id() else test.id()
        line = {"id": type(test).__qualname__.replace(".", "::") + "::" + method, "file": file_of(test), "state": state}
    line["message"] = message
    report.write(json.dumps(line) + "\n")
    report.flush()


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
        report.write(json.dumps({"id": None}) + "\n")
        report.flush()
        return result


unittest.main(module=None, argv=["python -m unittest"] + arguments, testRunner=Runner)
