package bed

import (
	"embed"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/template"
)

// configs are templates over the Bed.
//
//go:embed servers/bed.map servers/mapserver.conf servers/nginx.conf servers/mapproxy.yaml servers/mapproxy_app.py servers/mapcache.xml servers/pygeoapi.yml servers/titiler_app.py
var configs embed.FS

// Workers is how many requests MapServer works on at once.
const Workers = 4

// configure chooses the addresses and writes the configs into the run's folder.
func (b *Bed) configure() error {
	for _, address := range []*string{&b.MapServer, &b.MapProxy, &b.MapCache, &b.TiTiler, &b.Tipg, &b.Pygeoapi} {
		var err error
		if *address, err = freeAddress(); err != nil {
			return err
		}
	}
	for _, dir := range []string{"mapproxy", "mapproxy-locks", "mapcache", "mapcache-locks"} {
		if err := os.Mkdir(filepath.Join(b.Run, dir), 0o700); err != nil {
			return err
		}
	}
	return fs.WalkDir(configs, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		config, err := template.ParseFS(configs, path)
		if err != nil {
			return err
		}
		file, err := os.Create(filepath.Join(b.Run, entry.Name()))
		if err != nil {
			return err
		}
		defer file.Close()
		return config.Execute(file, b)
	})
}

// fastCGI starts workers of a FastCGI program that share a socket in the run's
// folder: such a program finds its listening socket as its standard input.
func (b *Bed) fastCGI(name string, workers int, program, variable string) ([]*child, error) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(b.Run, name+".sock")})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	defer listener.Close()
	socket, err := listener.File()
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	// Go leaves it non-blocking, and accept would give up at once.
	if err := syscall.SetNonblock(int(socket.Fd()), false); err != nil {
		return nil, err
	}
	var all []*child
	for range workers {
		cmd := exec.Command(program)
		cmd.Stdin = socket
		cmd.Env = append(os.Environ(), variable)
		c, err := b.spawn(name, cmd, syscall.SIGKILL) // it stays in accept on SIGTERM
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func (b *Bed) startMapServer() error {
	workers, err := b.fastCGI("mapserver", Workers, "/usr/lib/cgi-bin/mapserv", "MAPSERVER_CONFIG_FILE="+filepath.Join(b.Run, "mapserver.conf"))
	b.workers = workers
	return err
}

// Busy gives how many of MapServer's workers are at work, and not waiting in
// accept for the next request.
func (b *Bed) Busy() (int, error) {
	busy := 0
	for _, worker := range b.workers {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", worker.cmd.Process.Pid))
		if err != nil {
			return 0, err
		}
		call, _, _ := strings.Cut(string(text), " ") // "running" where it is in none
		if call != strconv.Itoa(syscall.SYS_ACCEPT) && call != strconv.Itoa(syscall.SYS_ACCEPT4) {
			busy++
		}
	}
	return busy, nil
}

func (b *Bed) startMapCache() error {
	_, err := b.fastCGI("mapcache", 2, "/usr/lib/cgi-bin/mapcache", "MAPCACHE_CONFIG_FILE="+filepath.Join(b.Run, "mapcache.xml"))
	return err
}

func (b *Bed) startNginx() error {
	c, err := b.spawn("nginx", exec.Command("nginx", "-p", b.Run, "-e", filepath.Join(b.Run, "nginx.log"), "-c", filepath.Join(b.Run, "nginx.conf")), syscall.SIGKILL)
	if err != nil {
		return err
	}
	if err := c.answers("http://" + b.MapServer + "/bed?SERVICE=WMS&REQUEST=GetCapabilities"); err != nil {
		return err
	}
	return c.answers("http://" + b.MapCache + "/wmts/1.0.0/WMTSCapabilities.xml")
}

func (b *Bed) startMapProxy() error {
	c, err := b.spawn("mapproxy", exec.Command("/usr/bin/python3", filepath.Join(b.Run, "mapproxy_app.py")), syscall.SIGKILL)
	if err != nil {
		return err
	}
	return c.answers("http://" + b.MapProxy + "/wmts/1.0.0/WMTSCapabilities.xml")
}

// StartTiTiler starts TiTiler where it does not run yet: raster tiles, previews
// and statistics of /cog/...?url=FILE, FILE being one of Data's.
func (b *Bed) StartTiTiler(t *testing.T) {
	t.Helper()
	b.startPython(t, "titiler", "titiler_app:app", "http://"+b.TiTiler+"/cog/info?url="+b.Data+"/dem.tif")
}

// StartTipg starts tipg where it does not run yet: OGC API Features and vector
// tiles of the tables.
func (b *Bed) StartTipg(t *testing.T) {
	t.Helper()
	b.startPython(t, "tipg", "tipg.main:app", "http://"+b.Tipg+"/collections/public.parcels",
		"DATABASE_URL=postgresql://bed@"+url.PathEscape(b.Socket)+":5432/bed",
		"TIPG_DB_SCHEMAS=[\"public\"]")
}

// StartPygeoapi starts pygeoapi where it does not run yet: OGC API Processes.
func (b *Bed) StartPygeoapi(t *testing.T) {
	t.Helper()
	b.startPython(t, "pygeoapi", "pygeoapi.starlette_app:APP", "http://"+b.Pygeoapi+"/processes?f=json",
		"PYGEOAPI_CONFIG="+filepath.Join(b.Run, "pygeoapi.yml"),
		"PYGEOAPI_OPENAPI="+filepath.Join(b.Run, "pygeoapi-openapi.yml"))
}

// startPython starts an ASGI application from the virtual environment that
// `make setup` makes.
func (b *Bed) startPython(t *testing.T, name, app, probe string, env ...string) {
	t.Helper()
	err, known := b.python[name]
	if !known {
		err = b.python3(name, app, probe, env)
		b.python[name] = err
	}
	if err != nil {
		t.Fatalf("%s (make setup installs it): %v", name, err)
	}
}

func (b *Bed) python3(name, app, probe string, env []string) error {
	bin, err := pythonBin()
	if err != nil {
		return err
	}
	env = append(os.Environ(), env...)
	if name == "pygeoapi" {
		document := exec.Command(filepath.Join(bin, "pygeoapi"), "openapi", "generate", filepath.Join(b.Run, "pygeoapi.yml"), "--output-file", filepath.Join(b.Run, "pygeoapi-openapi.yml"))
		document.Env = env
		if out, err := document.CombinedOutput(); err != nil {
			return fmt.Errorf("its OpenAPI document: %w\n%s", err, out)
		}
	}
	cmd := exec.Command(filepath.Join(bin, "uvicorn"), "--uds", filepath.Join(b.Run, name+".sock"), "--log-level", "warning", app)
	cmd.Dir = b.Run
	cmd.Env = env
	c, err := b.spawn(name, cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	return c.answers(probe)
}

// pythonBin finds the virtual environment's programs, from the folder of
// whichever package is tested.
func pythonBin() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".cache", "python", "bin"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above the tests' folder")
		}
	}
}
