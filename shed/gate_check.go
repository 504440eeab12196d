package shed

import (
	"fmt"
	"maps"
	"slices"

	"github.com/geoproxy/geoproxy/classify"
)

const (
	// batchName stands in AtMost for what is batch, of any class.
	batchName = "batch"

	maxGateSeats = 100_000
	maxGateQueue = 1_000_000
)

// Check reports every mistake in the config, with the path of its key.
func (c *GateConfig) Check(report func(path, message string)) {
	if c.Queue < 0 || c.Queue > maxGateQueue {
		report("queue", fmt.Sprintf("must be 1 to %d, not %d", maxGateQueue, c.Queue))
	}
	if c.Seats < 1 || c.Seats > maxGateSeats {
		report("seats", fmt.Sprintf("must be 1 to %d, not %d", maxGateSeats, c.Seats))
		return // all else is measured by it
	}
	for _, name := range slices.Sorted(maps.Keys(c.AtMost)) {
		if _, err := classify.ParseClass(name); err != nil && name != batchName {
			report("at_most."+name, "is neither a class nor batch")
		} else if n := c.AtMost[name]; n < 0 || n > c.Seats {
			report("at_most."+name, fmt.Sprintf("must be 0 to the gate's %d seats, not %d", c.Seats, n))
		}
	}
	if c.Connections < 0 || c.Connections > c.Seats {
		report("connections", fmt.Sprintf("must be 1 to the gate's %d seats, not %d: every slot takes at least one", c.Seats, c.Connections))
	}
	c.checkWeights(report)
}

func (c *GateConfig) checkWeights(report func(path, message string)) {
	if c.SeatSeconds < 0 {
		report("seat_seconds", fmt.Sprintf("must not be negative: %v", c.SeatSeconds))
		return
	}
	if widest := max(1, c.Seats/2); c.MaxSeats < 0 || c.MaxSeats > widest {
		report("max_seats", fmt.Sprintf("must be 1 to half the seats, %d, not %d", widest, c.MaxSeats))
		return
	}
	switch {
	case c.MaxSeats > 1 && c.SeatSeconds == 0:
		report("max_seats", "does nothing without seat_seconds: every request takes one seat")
	case c.SeatSeconds > 0 && c.MaxSeats <= 1:
		report("seat_seconds", "does nothing without max_seats: every request takes one seat")
	}
}
