package redis

import (
	"github.com/redis/go-redis/v9"
)

// The scripts work on redis_rate's key: a number, the instant at which the
// bucket will be full again, in seconds since 2017 by the store's clock. Each
// is one step of Redis, and none needs a key that another node of a Cluster has.
const (
	clock = `
local t = redis.call("TIME")
local now = (t[1] - 1483228800) + (t[2] / 1000000)
`
	store = `
if tat > now then
  redis.call("SET", KEYS[1], string.format("%.17g", tat), "EX", math.ceil(tat - now))
else
  redis.call("DEL", KEYS[1])
end
return string.format("%.17g", tat - now)
`
)

var (
	// refundScript gives back: ARGV[1] is the time in which it would refill.
	// AllowN with a negative n would lose a refund that fills the bucket.
	refundScript = redis.NewScript(clock + `
local tat = math.max(tonumber(redis.call("GET", KEYS[1]) or now) - ARGV[1], now)
` + store)

	// tellScript says what a bucket lacked by the store's own last word to a
	// replica (ARGV[1]), and what was spent since (ARGV[2]), both as the time in
	// which it refills. Of the replicas' last words the highest counts, and what
	// they spent adds up, whoever tells first: KEYS[2] has the highest so far,
	// for the three seconds in which all tell.
	tellScript = redis.NewScript(clock + `
local tat = math.max(tonumber(redis.call("GET", KEYS[1]) or now), now)
local before = math.max(tonumber(redis.call("GET", KEYS[2]) or tat), now)
local told = math.max(before, now + ARGV[1])
tat = tat + (told - before) + ARGV[2]
redis.call("SET", KEYS[2], string.format("%.17g", told), "EX", 3)
` + store)

	// adoptScript goes over to another limit and keeps the used share: what is
	// left of the time until the bucket is full is multiplied by ARGV[2] /
	// ARGV[1], the times that a whole filling takes now and took. KEYS[2] says
	// which limit the bucket is under, so that of many replicas one converts it.
	adoptScript = redis.NewScript(clock + `
local from = tonumber(redis.call("GET", KEYS[2]) or ARGV[1])
local to = tonumber(ARGV[2])
local tat = math.max(tonumber(redis.call("GET", KEYS[1]) or now), now)
tat = now + (tat - now) * to / from
redis.call("SET", KEYS[2], ARGV[2], "EX", math.ceil(3600 + math.max(from, to)))
` + store)

	// beatScript notes that a replica (ARGV[1]) lives, drops those that have not
	// been heard of for ARGV[2] seconds, and counts the rest. Its second answer
	// is 0 where the replica was not known.
	beatScript = redis.NewScript(clock + `
local known = redis.call("ZSCORE", KEYS[1], ARGV[1])
redis.call("ZADD", KEYS[1], string.format("%.17g", now), ARGV[1])
redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", string.format("%.17g", now - ARGV[2]))
redis.call("EXPIRE", KEYS[1], 60)
return {redis.call("ZCARD", KEYS[1]), known and 1 or 0}
`)
)
