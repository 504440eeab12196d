package redis

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	// mostInFlight is how many draws ask Redis at a time. Redis is one thread:
	// above some 16, more only wait there instead of here; the rest is for
	// networks that take their time.
	mostInFlight = 32
	// poolSize leaves connections to the probe and to refunds.
	poolSize = mostInFlight + 4
	// idle is how many connections are made before they are asked for.
	idle = 16
	// dialWithin bounds making a connection. No request waits for it longer
	// than for its call: the connection is then the next one's.
	dialWithin = time.Second
)

// parameters are what may stand behind the "?" of a URL. What go-redis would
// also read there is set by this package, so that writing it would do nothing.
var parameters = []string{"db", "client_name", "skip_verify", "master_name", "addr", "username", "password", "cluster"}

// CheckURL reports what is wrong with the address of a Redis. It never quotes
// the URL, which may hold a password. The forms:
//
//	redis://user:password@host:6379/0         one server; rediss with TLS
//	unix:///path/to.sock?db=0                 one server
//	redis://host:26379/0?master_name=m&addr=host2:26379   by its Sentinels; the
//	        server's own username and password are parameters
//	redis://host:6379?cluster=true&addr=host2:6379        a Cluster
func CheckURL(raw string) error {
	_, err := parse(raw, func(string) func(context.Context, *redis.Conn) error { return nil })
	return err
}

// greeting is called on every new connection to a node, before anything else.
type greeting func(node string) func(ctx context.Context, cn *redis.Conn) error

// parse reads a URL and gives what makes the client.
func parse(raw string, greet greeting) (open func() redis.UniversalClient, err error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("is not a URL")
	}
	query := u.Query()
	for name := range query {
		if !slices.Contains(parameters, name) {
			return nil, fmt.Errorf("has the parameter %q: there are %s", name, strings.Join(parameters, ", "))
		}
	}
	if u.Scheme != "unix" && u.Hostname() == "" {
		return nil, errors.New("must be redis://host:port, rediss://host:port or unix:///path")
	}
	cluster := query.Get("cluster")
	query.Del("cluster")
	u.RawQuery = query.Encode()
	switch {
	case cluster != "" && cluster != "true":
		return nil, errors.New("has a cluster that is not true")
	case query.Has("master_name") && cluster != "":
		return nil, errors.New("is of Sentinels (master_name) or of a Cluster, not both")
	case query.Has("master_name"):
		return parseSentinel(u.String(), greet)
	case cluster != "":
		return parseCluster(u.String(), greet)
	}
	opt, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, plain(err)
	}
	opt.OnConnect = greet("")
	opt.MaxRetries, opt.ContextTimeoutEnabled = -1, true
	opt.PoolSize, opt.MinIdleConns = poolSize, idle
	opt.DialTimeout, opt.DialerRetries = dialWithin, 1
	opt.DisableIdentity, opt.MaintNotificationsConfig = true, quiet
	return func() redis.UniversalClient { return redis.NewClient(opt) }, nil
}

func parseSentinel(raw string, greet greeting) (func() redis.UniversalClient, error) {
	opt, err := redis.ParseFailoverURL(raw)
	if err != nil {
		return nil, plain(err)
	}
	opt.OnConnect = greet("")
	opt.MaxRetries, opt.ContextTimeoutEnabled = -1, true
	opt.PoolSize, opt.MinIdleConns = poolSize, idle
	opt.DialTimeout, opt.DialerRetries = dialWithin, 1
	opt.DisableIdentity = true
	return func() redis.UniversalClient { return redis.NewFailoverClient(opt) }, nil
}

func parseCluster(raw string, greet greeting) (func() redis.UniversalClient, error) {
	opt, err := redis.ParseClusterURL(raw)
	if err != nil {
		return nil, plain(err)
	}
	opt.MaxRetries, opt.ContextTimeoutEnabled = -1, true
	opt.PoolSize, opt.MinIdleConns = poolSize, idle
	opt.DialTimeout, opt.DialerRetries = dialWithin, 1
	opt.DisableIdentity, opt.MaintNotificationsConfig = true, quiet
	opt.NewClient = func(node *redis.Options) *redis.Client {
		node.OnConnect = greet(node.Addr)
		return redis.NewClient(node)
	}
	return func() redis.UniversalClient { return redis.NewClusterClient(opt) }, nil
}

// quiet keeps a connection from asking for notices that nothing here reads.
var quiet = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

// plain is a mistake in a URL without the URL.
func plain(err error) error {
	if inURL, ok := errors.AsType[*url.Error](err); ok {
		err = inURL.Err
	}
	return errors.New(strings.TrimPrefix(err.Error(), "redis: "))
}
