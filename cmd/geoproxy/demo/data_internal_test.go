package demo

import "testing"

// The processes rely on it, and reading does not check it again.
func TestEveryGeometryIsValid(t *testing.T) {
	for _, entry := range collections {
		c, err := entry.load()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range c.features {
			if err := f.geometry.Validate(); err != nil {
				t.Errorf("%s %s: %v", c.name, f.id, err)
			}
			if f.geometry.IsEmpty() {
				t.Errorf("%s %s is empty", c.name, f.id)
			}
		}
		if len(c.byID) != len(c.features) {
			t.Errorf("%s: %d ids for %d features", c.name, len(c.byID), len(c.features))
		}
	}
}
