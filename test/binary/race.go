//go:build race

package binary

var raceFlags = []string{"-race"}
