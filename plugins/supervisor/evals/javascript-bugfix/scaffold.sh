#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
cat > 'package.json' <<'END-OF-FILE'
{"name": "task", "version": "1.0.0", "scripts": {"test": "node --test"}}
END-OF-FILE
cat > 'solution.js' <<'END-OF-FILE'
function priceAfter(cents, percent) {
  return cents - Math.floor((cents * percent) / 100);
}

module.exports = { priceAfter };
END-OF-FILE
mkdir -p 'test'
cat > 'test/visible.test.js' <<'END-OF-FILE'
const test = require('node:test');
const assert = require('node:assert/strict');
const { priceAfter } = require('../solution');

test('the discount is rounded once', () => assert.equal(priceAfter(199, 25), 149));
test('a tenth off', () => assert.equal(priceAfter(999, 10), 899));
test('half price', () => assert.equal(priceAfter(250, 50), 125));
END-OF-FILE
