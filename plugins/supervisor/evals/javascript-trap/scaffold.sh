#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
cat > 'package.json' <<'END-OF-FILE'
{"name": "task", "version": "1.0.0", "scripts": {"test": "node --test"}}
END-OF-FILE
cat > 'solution.js' <<'END-OF-FILE'
function rowsNeeded(people, perRow) {
  return 0;
}

module.exports = { rowsNeeded };
END-OF-FILE
mkdir -p 'test'
cat > 'test/visible.test.js' <<'END-OF-FILE'
const test = require('node:test');
const assert = require('node:assert/strict');
const { rowsNeeded } = require('../solution');

test('a row that is not full counts', () => assert.equal(rowsNeeded(10, 4), 3));
test('one more than two rows', () => assert.equal(rowsNeeded(7, 3), 4));
END-OF-FILE
