//! The same step with the runners that live in `node_modules`, behind `npm test`.

use super::table::Cycle;

pub(super) static JEST: Cycle = Cycle {
    needs: &["node", "npm"],
    files: &[
        (
            "package.json",
            "{\"name\": \"demo\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"jest\"}}\n",
        ),
        ("src/calc.js", "exports.add = (a, b) => a + b;\n"),
        (
            "test/add.test.js",
            "const { add } = require('../src/calc');\n\ntest('adds', () => {\n  expect(add(1, 2)).toBe(3);\n});\n",
        ),
    ],
    test_path: "test/double.test.js",
    red: "const calc = require('../src/calc');\n\ndescribe('double', () => {\n  test('of a number', () => {\n    \
          expect(calc.double(1200)).toBe(2400);\n  });\n});\n",
    new_test: "test/double.test.js > double > of a number",
    code_path: "src/calc.js",
    wrong: "exports.add = (a, b) => a + b;\nexports.double = (n) => n + 1;\n",
    right: "exports.add = (a, b) => a + b;\nexports.double = (n) => n + n;\n",
    neat: "exports.add = (a, b) => a + b;\nexports.double = (n) => exports.add(n, n);\n",
    new_item: "double",
    symbol: "double is not a function",
};

pub(super) static VITEST: Cycle = Cycle {
    needs: &["node", "npm"],
    files: &[
        (
            "package.json",
            "{\"name\": \"demo\", \"version\": \"1.0.0\", \"type\": \"module\", \"scripts\": {\"test\": \"vitest run\"}}\n",
        ),
        ("src/calc.js", "export const add = (a, b) => a + b;\n"),
        (
            "src/add.test.js",
            "import { expect, test } from 'vitest';\nimport { add } from './calc.js';\n\n\
             test('adds', () => {\n  expect(add(1, 2)).toBe(3);\n});\n",
        ),
    ],
    test_path: "src/double.test.js",
    red: "import { describe, expect, test } from 'vitest';\nimport * as calc from './calc.js';\n\n\
          describe('double', () => {\n  test('of a number', () => {\n    expect(calc.double(1200)).toBe(2400);\n  });\n});\n",
    new_test: "src/double.test.js > double > of a number",
    code_path: "src/calc.js",
    wrong: "export const add = (a, b) => a + b;\nexport const double = (n) => n + 1;\n",
    right: "export const add = (a, b) => a + b;\nexport const double = (n) => n + n;\n",
    neat: "export const add = (a, b) => a + b;\nexport const double = (n) => add(n, n);\n",
    new_item: "double",
    symbol: "is not a function",
};

pub(super) static MOCHA: Cycle = Cycle {
    needs: &["node", "npm"],
    files: &[
        (
            "package.json",
            "{\"name\": \"demo\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"mocha\"}}\n",
        ),
        ("calc.js", "exports.add = (a, b) => a + b;\n"),
        (
            "test/add.js",
            "const assert = require('node:assert');\nconst { add } = require('../calc');\n\n\
             it('adds', () => assert.equal(add(1, 2), 3));\n",
        ),
    ],
    test_path: "test/double.js",
    red: "const assert = require('node:assert');\nconst calc = require('../calc');\n\n\
          describe('double', () => {\n  it('of a number', () => assert.equal(calc.double(1200), 2400));\n});\n",
    new_test: "test/double.js > double of a number",
    code_path: "calc.js",
    wrong: "exports.add = (a, b) => a + b;\nexports.double = (n) => n + 1;\n",
    right: "exports.add = (a, b) => a + b;\nexports.double = (n) => n + n;\n",
    neat: "exports.add = (a, b) => a + b;\nexports.double = (n) => exports.add(n, n);\n",
    new_item: "double",
    symbol: "double is not a function",
};
