// Package bed starts real spatial servers on this machine for tests: PostGIS
// with the same data everywhere, MapServer in front of it, MapProxy and
// MapCache in front of that, and TiTiler, tipg and pygeoapi.
//
// The servers are children of the test's process and end with it, whatever way
// it ends. The database and the rasters are made once, in about ten seconds, and
// kept below the system's folder for temporary files until what makes them
// changes; all else is new with every run. One process at a time has the bed;
// others wait for it.
//
// `make setup` installs the servers. A bed that cannot start fails the test.
package bed

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Bed is where the servers are. The addresses are host:port on loopback.
type Bed struct {
	MapServer string // /bed: WMS, WFS, WCS; /bed/ogcapi: OGC API Features; four workers behind nginx
	MapProxy  string // /service: WMS; /wmts: WMTS; /tms/1.0.0: TMS
	MapCache  string // /: WMS; /wmts: WMTS; /tms/1.0.0: TMS; /gmaps: XYZ

	Data     string // the folder with dem.tif and ortho.tif
	Run      string // the folder of logs, sockets, caches and configs of this run
	Socket   string // the folder of the database's socket
	Base     string // stands in the servers' documents for the host that the client named
	TiTiler  string // call StartTiTiler first
	Tipg     string // call StartTipg first
	Pygeoapi string // call StartPygeoapi first

	lock     *os.File
	mu       sync.Mutex
	children []*child // in the order of their start
	workers  []*child // MapServer's, which are children too
	python   map[string]error
}

var shared struct {
	sync.Mutex
	started bool
	bed     *Bed
	err     error
}

// Start gives the bed of this test binary and starts it where it does not run
// yet. Call Stop at the end of TestMain.
func Start(t *testing.T) *Bed {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.started {
		shared.bed, shared.err = start()
		shared.started = true
	}
	if shared.err != nil {
		t.Fatalf("no test bed (make setup installs its servers): %v", shared.err)
	}
	return shared.bed
}

// Stop ends the servers, where any run, whatever they are at. Start begins anew
// after it.
func Stop() {
	shared.Lock()
	defer shared.Unlock()
	if shared.bed != nil {
		shared.bed.stop()
	}
	shared.started, shared.bed = false, nil
}

func start() (*Bed, error) {
	home := filepath.Join(os.TempDir(), "geoproxy-bed-"+strconv.Itoa(os.Getuid()))
	b := &Bed{
		Run:    filepath.Join(home, "run"),
		Base:   "http://bed.invalid",
		python: map[string]error{},
	}
	// The database's user has to get through to its own folder.
	if err := os.MkdirAll(home, 0o711); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(home); err != nil {
		return nil, err
	} else if owner, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(owner.Uid) != os.Getuid() {
		return nil, fmt.Errorf("%s is not a folder of this user's", home)
	}
	var err error
	if b.lock, err = os.OpenFile(filepath.Join(home, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(b.lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		func() error { return b.open(home) },
		b.configure,
		b.startMapServer,
		b.startMapCache,
		b.startNginx,
		b.startMapProxy,
	} {
		if err := step(); err != nil {
			b.stop()
			return nil, err
		}
	}
	return b, nil
}

// stop ends the children in the reverse order of their start.
func (b *Bed) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, v := range slices.Backward(b.children) {
		v.end()
	}
	b.children = nil
	_ = b.lock.Close()
}

// freeAddress gives an address that nobody listens on now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// answers waits until a URL answers 200.
func (c *child) answers(url string) error {
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return c.until(url+" answers", func() error {
		answer, err := client.Get(url)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("status %s", answer.Status)
		}
		return nil
	})
}
