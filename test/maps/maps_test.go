// Package maps_test puts the built geoproxy in front of real map servers and
// uses them through it as their users do: with GDAL, OWSLib and ogr2ogr.
package maps_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/geoproxy/geoproxy/test/bed"
	"github.com/geoproxy/geoproxy/test/binary"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	defer bed.Stop()
	return binary.Main(m)
}

// inFront starts geoproxy with four seats in front of an address.
func inFront(t *testing.T, address string) *binary.Proxy {
	t.Helper()
	return binary.Start(t, binary.Path(t), fmt.Sprintf("routes:\n- upstream: http://%s\n  gate: { seats: %d }\n", address, bed.Workers))
}
