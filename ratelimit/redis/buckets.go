package redis

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/geoproxy/geoproxy/ratelimit"
)

// Config is what Buckets are given. Every field is required.
type Config struct {
	// URL is where Redis is; see [CheckURL].
	URL string
	// Secret keys the HMAC of subjects. Replicas that share buckets have the same.
	Secret []byte
	// Max is how many buckets are followed in this process.
	Max int
	// Registry takes the metrics.
	Registry prometheus.Registerer
	// Log takes each change between up and down.
	Log *slog.Logger
}

// Buckets are [ratelimit.Buckets] in Redis.
type Buckets struct {
	client  redis.UniversalClient
	limiter *redis_rate.Limiter
	secret  []byte
	replica string // this process's name in the set of replicas
	metrics *metrics
	log     *slog.Logger

	patience func(wait time.Duration) time.Duration // the most that the calls of one Reserve take
	turns    chan struct{}                          // one place for each draw that asks Redis
	mirror   *ratelimit.Local
	refunds  chan refund
	pending  atomic.Int64 // refunds not made yet

	breaker  breaker
	nodes    nodes
	replicas atomic.Int64 // living ones, this included
	unsaid   atomic.Bool  // the mirror has spent what Redis has not been told of

	stop func()
	done sync.WaitGroup
}

// mostPatience is the most that the calls of one Reserve take together.
const mostPatience = 50 * time.Millisecond

// patience is how long the calls of one Reserve take at most, for a caller that
// waits that long for its tokens.
func patience(wait time.Duration) time.Duration { return min(mostPatience, wait/4) }

// New makes buckets and begins to look after them in the background. It does
// not wait for Redis. The error is a mistake in the URL. End them with Close.
func New(cfg Config) (*Buckets, error) { return start(cfg, patience) }

func start(cfg Config, patience func(time.Duration) time.Duration) (*Buckets, error) {
	logging.Disable() // go-redis would write to standard error, once a connection
	ctx, cancel := context.WithCancel(context.Background())
	b := &Buckets{
		secret: cfg.Secret, replica: rand.Text(), log: cfg.Log, stop: cancel,
		patience: patience, turns: make(chan struct{}, mostInFlight),
		mirror: ratelimit.NewLocal(cfg.Max), refunds: make(chan refund, mostRefunds),
	}
	b.replicas.Store(1)
	open, err := parse(cfg.URL, b.greet)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("redis: the URL %w", err)
	}
	b.metrics = newMetrics(cfg.Registry)
	b.client = open()
	b.limiter = redis_rate.NewLimiter(b.client)
	b.done.Go(func() { b.tend(ctx) })
	b.done.Go(func() { b.refundAll(ctx) })
	return b, nil
}

// Close ends what runs in the background, takes this process out of the set of
// replicas, and closes the connections. Refunds that are waiting are made
// first, for at most a second.
func (b *Buckets) Close() error {
	b.stop()
	b.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), dialWithin)
	defer cancel()
	if !b.breaker.isOpen() {
		b.client.ZRem(ctx, replicaSet, b.replica) // else the entry runs out by itself
	}
	return b.client.Close()
}

// Up reports whether Redis decides.
func (b *Buckets) Up() bool { return !b.breaker.isOpen() }

// keyPrefix is put before the keys that are given to redis_rate, which puts
// "rate:" before that.
const keyPrefix = "geoproxy:{"

// key names a bucket for redis_rate. The braces make the policy the key's hash
// tag: the part that chooses the node of a Cluster.
func (b *Buckets) key(k ratelimit.Key) string {
	if k.Subject == "" {
		return keyPrefix + k.Policy + "}:all"
	}
	mac := hmac.New(sha256.New, b.secret)
	mac.Write([]byte(k.Subject)) // never fails
	var sum [sha256.Size]byte
	return keyPrefix + k.Policy + "}:" + base64.RawURLEncoding.EncodeToString(mac.Sum(sum[:0])[:16])
}

// storeKey is the name under which redis_rate keeps the bucket of a key.
func storeKey(key string) string { return "rate:" + key }

// nodes are the servers that have been seen: a name made at random when a
// server starts, by address.
type nodes struct {
	mu    sync.Mutex
	known map[string]string
}

// restarted notes a node's name and reports whether it had another before.
func (n *nodes) restarted(node, id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.known[node]
	if n.known == nil {
		n.known = make(map[string]string)
	}
	n.known[node] = id
	return before != "" && before != id
}

var errRestarted = errors.New("the server has been restarted: its memory may be lost")

// greet looks, on each new connection to a node, whether its server is the one
// that was there before. One that restarted may have lost its memory: it
// decides on nothing before it has been told what the buckets lack.
func (b *Buckets) greet(node string) func(context.Context, *redis.Conn) error {
	return func(ctx context.Context, cn *redis.Conn) error {
		info, err := cn.Info(ctx, "server").Result()
		if _, refused := errors.AsType[redis.Error](err); refused {
			return nil // it may not be asked: the heartbeat finds a loss within a second
		}
		if err != nil {
			return err
		}
		if id := runID(info); id != "" && b.nodes.restarted(node, id) {
			b.trip(errRestarted)
			return errRestarted
		}
		return nil
	}
}

// runID finds the name of a server's run in what INFO says. A Sentinel, which
// is greeted as well, has none that matters: it keeps no buckets.
func runID(info string) string {
	if strings.Contains(info, "\r\nredis_mode:sentinel\r\n") {
		return ""
	}
	if _, rest, found := strings.Cut(info, "\r\nrun_id:"); found {
		id, _, _ := strings.Cut(rest, "\r\n")
		if _, err := hex.DecodeString(id); err == nil {
			return id
		}
	}
	return ""
}
