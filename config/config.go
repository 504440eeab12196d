package config

import (
	"path/filepath"

	"github.com/geoproxy/geoproxy/proxy"
)

//go:generate go test . -run TestSchemaIsUpToDate -update

// What is listened on, and where state is kept, unless the file says otherwise.
const (
	DefaultListen  = ":8080"
	DefaultHealth  = ":8081"
	DefaultAdmin   = "127.0.0.1:9090"
	DefaultDataDir = "data"
)

// File is the whole config: what the process listens on, and what the proxy does.
type File struct {
	// Listen is the host:port of the proxy. Defaults to ":8080".
	Listen string `yaml:"listen"`
	// Health is the host:port of healthz, readyz and metrics; it may face the
	// cluster. Defaults to ":8081".
	Health string `yaml:"health"`
	// Admin is the host:port of pprof and whatever else only operators may see;
	// it needs AdminToken where it is not a loopback address. Defaults to
	// "127.0.0.1:9090".
	Admin string `yaml:"admin"`
	// AdminToken is what the admin listener wants as a bearer token: 16 bytes
	// or more.
	AdminToken string `yaml:"admin_token"`
	// DataDir keeps what outlives the process. Defaults to ./data.
	DataDir string `yaml:"data_dir"`
	// Redis keeps the rates' buckets where all replicas share them: redis:// or
	// rediss://user:password@host:6379/0, unix:///path; with ?master_name=NAME
	// the host is a Sentinel's, with ?cluster=true a Cluster's node's, and
	// &addr=host:port names another. Without it they are this process's own. It
	// needs Secret, which must be the same everywhere.
	Redis string `yaml:"redis"`
	// Jobs is where jobs are kept.
	Jobs Jobs `yaml:"jobs"`
	// TLS of the proxy's listener. Without it the listener speaks plain HTTP.
	TLS TLS `yaml:"tls"`

	proxy.Config `yaml:",inline"`

	source source
}

// Jobs is where jobs are kept: without Store in one SQLite file under data_dir,
// which is this process's alone.
type Jobs struct {
	// Store is the URL of a Postgres that replicas share:
	// postgres://user:password@host/database. It needs Key and the secret at the
	// top of the file, the same everywhere.
	Store string `yaml:"store"`
	// Key seals the requests and results that are kept: 16 bytes or more.
	// Without it one is kept in a 0600 file under data_dir.
	Key string `yaml:"key"`
}

// TLS is how the listener shows itself and whom it asks for a certificate.
type TLS struct {
	// Cert is the PEM file of the certificate and what signed it.
	Cert string `yaml:"cert"`
	// Key is the PEM file of its key.
	Key string `yaml:"key"`
	// ClientCA is the PEM file of who signs clients' certificates: the source
	// mtls of tenant.from needs it.
	ClientCA string `yaml:"client_ca"`
}

// source is where a File was read from: what reading it again takes.
type source struct {
	path   string
	env    func(string) (string, bool)
	sum    [32]byte // of all the files it was made of
	places places
}

// Default is the config without a file: one route to upstream, a URL, with
// every default. It is not checked.
func Default(upstream string) *File {
	f := &File{Config: proxy.Config{Upstream: upstream}}
	f.fill()
	return f
}

// fill puts the defaults where nothing was written.
func (f *File) fill() {
	for field, fallback := range map[*string]string{
		&f.Listen: DefaultListen, &f.Health: DefaultHealth, &f.Admin: DefaultAdmin, &f.DataDir: DefaultDataDir,
	} {
		if *field == "" {
			*field = fallback
		}
	}
}

// files are the names of the files that f refers to.
func (f *File) files() []*string {
	names := []*string{&f.TLS.Cert, &f.TLS.Key, &f.TLS.ClientCA, &f.Tenant.Keys}
	return names
}

// resolve makes the names of files in f, written relative to dir, independent
// of the working directory.
func (f *File) resolve(dir string) {
	absolute := func(name string) string {
		if name == "" || filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(dir, name)
	}
	for _, name := range append(f.files(), &f.DataDir) {
		*name = absolute(*name)
	}
	for name, u := range f.Upstreams {
		u.TLS.CA, u.TLS.Cert, u.TLS.Key = absolute(u.TLS.CA), absolute(u.TLS.Cert), absolute(u.TLS.Key)
		f.Upstreams[name] = u
	}
}
