package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/geoproxy/geoproxy/ratelimit/redis"
)

// Check reports everything in f that is wrong, and warns of what works and is
// probably not meant. It opens none of the files that f names.
func (f *File) Check(mistake, warn func(path, message string)) {
	listeners := []struct{ path, address string }{{"listen", f.Listen}, {"health", f.Health}, {"admin", f.Admin}}
	for i, l := range listeners {
		_, port, err := net.SplitHostPort(l.address)
		if err != nil || port == "" {
			mistake(l.path, `must be host:port, or :port for every address`)
			continue
		}
		for _, other := range listeners[:i] {
			if other.address == l.address && port != "0" {
				mistake(l.path, "is the same as "+other.path)
			}
		}
	}
	if f.AdminToken != "" && len(f.AdminToken) < 16 {
		mistake("admin_token", "must be at least 16 bytes")
	}
	if host, _, err := net.SplitHostPort(f.Admin); err == nil && !isLoopback(host) && f.AdminToken == "" {
		mistake("admin", "is not a loopback address, so it needs an admin_token")
	}
	f.checkRedis(mistake, warn)
	f.checkJobs(mistake)
	f.checkTLS(mistake, warn)
	f.Config.Check(mistake, warn)
}

func (f *File) checkRedis(mistake, warn func(path, message string)) {
	if f.Redis == "" {
		for i := range f.Routes {
			if f.Routes[i].RedisDown != "" {
				warn(fmt.Sprintf("routes[%d].redis_down", i), "without redis it decides on nothing")
			}
		}
		return
	}
	if err := redis.CheckURL(f.Redis); err != nil {
		mistake("redis", err.Error())
	}
	if f.Secret == "" {
		mistake("redis", "needs a secret: with one of its own, each replica would give tenants other names")
	}
}

// sharedResult is the largest result that a store in Postgres takes.
const sharedResult = 256 << 20

func (f *File) checkJobs(mistake func(path, message string)) {
	if f.Jobs.Key != "" && len(f.Jobs.Key) < 16 {
		mistake("jobs.key", "must be at least 16 bytes")
	}
	if f.Jobs.Store == "" {
		return
	}
	if !strings.HasPrefix(f.Jobs.Store, "postgres://") && !strings.HasPrefix(f.Jobs.Store, "postgresql://") {
		mistake("jobs.store", "must begin with postgres://; without it jobs are kept in a file under data_dir")
	}
	if f.Jobs.Key == "" {
		mistake("jobs.store", "needs jobs.key: with one of its own, no replica could read what another has kept")
	}
	if f.Secret == "" {
		mistake("jobs.store", "needs a secret: with one of its own, each replica would know owners by other names")
	}
	for i := range f.Routes {
		if f.Routes[i].Jobs.MaxResult > sharedResult {
			mistake(fmt.Sprintf("routes[%d].jobs.max_result", i), "is at most 256MiB where jobs.store is a Postgres")
		}
	}
}

func (f *File) checkTLS(mistake, warn func(path, message string)) {
	if (f.TLS.Cert == "") != (f.TLS.Key == "") {
		mistake("tls", "cert and key go together")
	}
	if f.TLS.ClientCA != "" && f.TLS.Cert == "" {
		mistake("tls.client_ca", "asks for clients' certificates, which needs cert and key")
	}
	mtls := slices.Index(f.Tenant.From, "mtls")
	switch {
	case mtls >= 0 && f.TLS.ClientCA == "":
		mistake("tenant.from", "mtls needs tls.client_ca: without it no certificate is checked")
	case mtls < 0 && f.TLS.ClientCA != "":
		warn("tls.client_ca", "tenant.from does not name mtls, so a checked certificate names nobody")
	}
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
