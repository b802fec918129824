#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
cat > 'package.json' <<'END-OF-FILE'
{"name": "task", "version": "1.0.0", "scripts": {"test": "node --test"}}
END-OF-FILE
cat > 'solution.js' <<'END-OF-FILE'
function parcelFee(grams, express) {
  if (express) {
    if (grams <= 0) return 0;
    if (grams <= 100) return 300;
    if (grams <= 500) return 600;
    if (grams <= 2000) return 1200;
    return 2400;
  } else {
    if (grams <= 0) return 0;
    if (grams <= 100) return 150;
    if (grams <= 500) return 300;
    if (grams <= 2000) return 600;
    return 1200;
  }
}

module.exports = { parcelFee };
END-OF-FILE
mkdir -p 'test'
cat > 'test/visible.test.js' <<'END-OF-FILE'
const test = require('node:test');
const assert = require('node:assert/strict');
const { parcelFee } = require('../solution');

test('light', () => assert.equal(parcelFee(50, false), 150));
test('middling', () => assert.equal(parcelFee(400, false), 300));
test('heavy and fast', () => assert.equal(parcelFee(1500, true), 1200));
test('very heavy', () => assert.equal(parcelFee(5000, false), 1200));
END-OF-FILE
