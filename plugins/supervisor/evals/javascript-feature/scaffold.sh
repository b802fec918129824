#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
cat > 'package.json' <<'END-OF-FILE'
{"name": "task", "version": "1.0.0", "scripts": {"test": "node --test"}}
END-OF-FILE
cat > 'solution.js' <<'END-OF-FILE'
function parseSpan(text) {
  return 0;
}

module.exports = { parseSpan };
END-OF-FILE
mkdir -p 'test'
cat > 'test/visible.test.js' <<'END-OF-FILE'
const test = require('node:test');
const assert = require('node:assert/strict');
const { parseSpan } = require('../solution');

test('hours and minutes', () => assert.equal(parseSpan("1h30m"), 5400));
test('seconds', () => assert.equal(parseSpan("45s"), 45));
test('minutes', () => assert.equal(parseSpan("2m"), 120));
END-OF-FILE
