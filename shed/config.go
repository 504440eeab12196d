package shed

import "time"

// GateConfig is a gate as written.
type GateConfig struct {
	// Seats: 1 to 100000. Required.
	Seats int `yaml:"seats"`
	// Queue is how many requests may wait. Defaults to 8 x Seats.
	Queue int `yaml:"queue"`
	// AtMost caps the seats that a class may hold together, by its name;
	// "batch" stands for downloads and Priority 6 and 7. Defaults: batch a
	// quarter of the seats (at least 1), write half of them (at least 1). 0 lets
	// none of them in.
	AtMost map[string]int `yaml:"at_most"`
	// Connections caps the slots held at once, whatever their seats. Defaults to Seats.
	Connections int `yaml:"connections"`
	// SeatSeconds is the estimate that one seat stands for; a request takes
	// one seat for each, rounded up, at most MaxSeats. Zero: every request takes one.
	SeatSeconds time.Duration `yaml:"seat_seconds"` //nolint:staticcheck // called as its key is
	// MaxSeats is the widest a request can be: 1 to Seats/2. Defaults to 1.
	MaxSeats int `yaml:"max_seats"`
}

// BodyConfig says what refusals look like.
type BodyConfig struct {
	// Body: native (the default) or empty (the empty collection or tile).
	Body string `yaml:"body"`
	// Status maps reasons, families and classes to other statuses than the
	// contract's. A class's wins, then a family's. A 2xx needs Silent.
	Status map[string]int `yaml:"status"`
	// Silent allows a 2xx status on a refusal. Each such answer is counted.
	Silent bool `yaml:"silent"`
}
