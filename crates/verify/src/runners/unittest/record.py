# Records results of unittest in the format of `report_lines.rs`, next to this file.
import json
import os
import re
import sys
import unittest

root = os.getcwd()
report = os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.jsonl")


def file_of(test):
    module = sys.modules.get(type(test).__module__)
    file = os.path.abspath(getattr(module, "__file__", None) or "")
    return os.path.relpath(file, root) if file.startswith(root + os.sep) else ""


def write(**line):
    # Opened each time, because tests may run in several processes.
    with open(report, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


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


