#!/bin/bash
# Written by `generate`. Lays out the project in the current directory.
set -eu
cat > 'go.mod' <<'END-OF-FILE'
module example.com/task

go 1.19
END-OF-FILE
cat > 'solution.go' <<'END-OF-FILE'
package task

func RowsNeeded(people, perRow int) int {
	return 0
}
END-OF-FILE
cat > 'visible_test.go' <<'END-OF-FILE'
package task

import "testing"

func TestARowThatIsNotFullCounts(t *testing.T) {
	got, want := RowsNeeded(10, 4), 3
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOneMoreThanTwoRows(t *testing.T) {
	got, want := RowsNeeded(7, 3), 4
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
END-OF-FILE
