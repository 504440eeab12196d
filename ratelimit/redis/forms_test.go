package redis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/geoproxy/geoproxy/ratelimit"
	"github.com/geoproxy/geoproxy/ratelimit/buckettest"
	"github.com/geoproxy/geoproxy/ratelimit/redis"
	"github.com/geoproxy/geoproxy/test/redistest"
)

func TestCheckURL(t *testing.T) {
	for url, want := range map[string]string{
		"redis://127.0.0.1:6379/0":                                  "",
		"rediss://user:pass@redis.example:6380/2?client_name=geo":   "",
		"unix:///run/redis.sock?db=1":                               "",
		"redis://s0:26379/0?master_name=m&addr=s1:26379&password=x": "",
		"redis://n0:6379?cluster=true&addr=n1:6379":                 "",
		"":                                    "must be redis://",
		"127.0.0.1:6379":                      "is not a URL",
		"redis:///0":                          "must be redis://",
		"http://hidden@127.0.0.1":             "invalid URL scheme",
		"redis://:hidden@127.0.0.1:6379/x":    "invalid database number",
		"redis://:hidden@127.0.0.1:63790000/": "",
		"redis://:hidden@127.0.0.1:6379/0?pool_size=3":                       `has the parameter "pool_size"`,
		"redis://:hidden@127.0.0.1:port/0":                                   "is not a URL",
		"redis://h:6379?cluster=yes":                                         "has a cluster that is not true",
		"redis://h:26379?cluster=true&master_name=m":                         "not both",
		"redis://h:6379?cluster=true&addr=nonsense":                          "unable to parse addr",
		"redis://h:26379/0?master_name=m&addr=nonsense":                      "unable to parse addr",
		"redis://h:6379?cluster=true&addr=x:1&master_name=m&read_timeout=1s": "has the parameter",
	} {
		err := redis.CheckURL(url)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", url, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v shows a password", url, err)
		}
	}
}

// suite runs the buckets' suite on a server reached by url, emptied by flush.
func suite(t *testing.T, url string, flush func(t *testing.T)) {
	t.Helper()
	buckettest.Run(t, func(t *testing.T) ratelimit.Buckets {
		t.Helper()
		flush(t)
		return patient(t, url)
	})
}

func TestCluster(t *testing.T) {
	server := redistest.Start(t, "--cluster-enabled", "yes")
	c := client(t, server)
	if err := c.Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "serving", func() bool { return strings.Contains(c.ClusterInfo(t.Context()).Val(), "cluster_state:ok") })
	suite(t, "redis://"+server.Address+"?cluster=true", func(t *testing.T) { t.Helper(); c.FlushAll(t.Context()) })
	// Keys of one policy have one slot, whomever they count.
	slots := map[int64]bool{}
	for _, key := range c.Keys(t.Context(), "rate:geoproxy:{route/rate}:*").Val() {
		slots[c.ClusterKeySlot(t.Context(), key).Val()] = true
	}
	if len(slots) != 1 {
		t.Errorf("the keys of one policy are in %d slots", len(slots))
	}
}

func TestSentinel(t *testing.T) {
	server := redistest.Start(t)
	host, port, _ := net.SplitHostPort(server.Address)
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "sentinel monitor limits %s %s 1\n", host, port), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := redistest.StartSentinel(t, conf)
	c := client(t, server)
	suite(t, "redis://"+sentinel.Address+"/0?master_name=limits", func(t *testing.T) { t.Helper(); c.FlushAll(t.Context()) })
}

func TestTLS(t *testing.T) {
	cert, key := selfSigned(t)
	server := redistest.StartTLS(t, cert, key)
	b := patient(t, "rediss://"+server.Address+"/0?skip_verify=true")
	if n := until(t, b, one("a", anHour, 1000)); n != 10 || !b.Up() {
		t.Errorf("%d drawn, up %v", n, b.Up())
	}
}

func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// Each bucket drawn is one call, by Redis's own count: one where one policy
// applies, two where two do.
func TestOneRoundTripForEachBucket(t *testing.T) {
	server := redistest.Start(t)
	b := patient(t, server.URL())
	c := client(t, server)
	eventually(t, "warm", func() bool { return scripts(t, c) >= 2 && b.Replicas() == 1 })
	until(t, b, one("warm", anHour, 10_000))
	for draws := 1; draws <= 3; draws++ {
		var asked []ratelimit.Draw
		for i := range draws {
			asked = append(asked, one(fmt.Sprint("subject", i), ratelimit.Limit{Tokens: 1000, Every: time.Second, Burst: 1_000_000}, 1)...)
		}
		c.ConfigResetStat(t.Context())
		for range 100 {
			if g, err := b.Reserve(t.Context(), asked, time.Second); err != nil || !g.OK {
				t.Fatal(g, err)
			}
		}
		// A beat or two may have come between.
		if n := scripts(t, c); n < 100*draws || n > 100*draws+3 {
			t.Errorf("100 requests of %d draws ran %d scripts", draws, n)
		}
	}
}

func scripts(tb testing.TB, c *goredis.Client) (n int) {
	tb.Helper()
	stats := c.InfoMap(tb.Context(), "commandstats").Val()["Commandstats"]
	for _, name := range []string{"cmdstat_eval", "cmdstat_evalsha"} {
		calls := 0
		_, _ = fmt.Sscanf(stats[name], "calls=%d,", &calls) // absent: none
		n += calls
	}
	return n
}
