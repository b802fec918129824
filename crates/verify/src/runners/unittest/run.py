# Runs unittest like `python -m unittest` and records every result.

# As with `-m`, import modules from the current directory and not from the directory of this program.
sys.path[0] = root


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
