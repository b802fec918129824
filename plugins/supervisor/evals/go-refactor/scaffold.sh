#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
cat > 'go.mod' <<'END-OF-FILE'
module example.com/task

go 1.19
END-OF-FILE
cat > 'solution.go' <<'END-OF-FILE'
package task

func ParcelFee(grams int, express bool) int {
	if express {
		if grams <= 0 {
			return 0
		} else if grams <= 100 {
			return 300
		} else if grams <= 500 {
			return 600
		} else if grams <= 2000 {
			return 1200
		}
		return 2400
	}
	if grams <= 0 {
		return 0
	} else if grams <= 100 {
		return 150
	} else if grams <= 500 {
		return 300
	} else if grams <= 2000 {
		return 600
	}
	return 1200
}
END-OF-FILE
cat > 'visible_test.go' <<'END-OF-FILE'
package task

import "testing"

func TestLight(t *testing.T) {
	got, want := ParcelFee(50, false), 150
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestMiddling(t *testing.T) {
	got, want := ParcelFee(400, false), 300
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestHeavyAndFast(t *testing.T) {
	got, want := ParcelFee(1500, true), 1200
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestVeryHeavy(t *testing.T) {
	got, want := ParcelFee(5000, false), 1200
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
END-OF-FILE
