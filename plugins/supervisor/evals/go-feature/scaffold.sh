#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
cat > 'go.mod' <<'END-OF-FILE'
module example.com/task

go 1.19
END-OF-FILE
cat > 'solution.go' <<'END-OF-FILE'
package task

func ParseSpan(text string) int {
	return 0
}
END-OF-FILE
cat > 'visible_test.go' <<'END-OF-FILE'
package task

import "testing"

func TestHoursAndMinutes(t *testing.T) {
	got, want := ParseSpan("1h30m"), 5400
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSeconds(t *testing.T) {
	got, want := ParseSpan("45s"), 45
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestMinutes(t *testing.T) {
	got, want := ParseSpan("2m"), 120
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
END-OF-FILE
