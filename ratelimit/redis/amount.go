package redis

import (
	"math"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"github.com/geoproxy/geoproxy/ratelimit"
)

const (
	// slack widens every burst by what refills in it: instants are doubles of
	// some 60 ns, and a bucket that is exactly full must have its whole burst.
	slack = time.Microsecond
	// most is the largest number that a double counts up to by ones.
	most = 1 << 53
)

// scale is what a limit's thousandths are multiplied by so that one refills in
// a microsecond or less. redis_rate takes whole numbers; without it, a rate of
// one an hour would round a caller's wait down to a multiple of 3.6 s.
func scale(l ratelimit.Limit) int {
	return max(1, int(math.Ceil(float64(l.Every.Microseconds())/float64(l.Tokens))))
}

// widened is the limit to ask redis_rate with, and the cost, for a caller that
// can wait.
func widened(l ratelimit.Limit, cost ratelimit.Milli, wait time.Duration) (redis_rate.Limit, int) {
	k := scale(l)
	rate := float64(l.Tokens) * float64(k) / l.Every.Seconds()
	burst := float64(l.Burst)*float64(k) + math.Ceil(rate*slack.Seconds()) + math.Floor(rate*max(0, wait).Seconds())
	return redis_rate.Limit{
		Rate: int(l.Tokens) * k, Period: l.Every, Burst: int(min(burst, most)),
	}, int(cost) * k
}

// seconds is how long an amount takes to refill.
func seconds(l ratelimit.Limit, amount ratelimit.Milli) float64 {
	return float64(amount) / float64(l.Tokens) * l.Every.Seconds()
}

func duration(seconds float64) time.Duration {
	return time.Duration(min(seconds*1e9, math.MaxInt64/2))
}

// due is how long it takes until a bucket that is full in reset is out of debt.
func due(l ratelimit.Limit, reset time.Duration) time.Duration {
	if d := reset - duration(seconds(l, l.Burst)); d > slack {
		return d
	}
	return 0
}

// left is what a bucket holds that is full in reset, rounded down but for what
// the precision of instants may lack.
func left(l ratelimit.Limit, reset time.Duration) ratelimit.Milli {
	rate := float64(l.Tokens) / l.Every.Seconds()
	missing := math.Ceil(reset.Seconds()*rate - 2*slack.Seconds()*rate - 1e-9)
	return ratelimit.Milli(max(0, float64(l.Burst)-max(0, missing)))
}
