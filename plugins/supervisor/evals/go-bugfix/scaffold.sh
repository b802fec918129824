#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
cat > 'go.mod' <<'END-OF-FILE'
module example.com/task

go 1.19
END-OF-FILE
cat > 'solution.go' <<'END-OF-FILE'
package task

func PriceAfter(cents, percent int) int {
	return cents - cents*percent/100
}
END-OF-FILE
cat > 'visible_test.go' <<'END-OF-FILE'
package task

import "testing"

func TestTheDiscountIsRoundedOnce(t *testing.T) {
	got, want := PriceAfter(199, 25), 149
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestATenthOff(t *testing.T) {
	got, want := PriceAfter(999, 10), 899
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestHalfPrice(t *testing.T) {
	got, want := PriceAfter(250, 50), 125
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
END-OF-FILE
