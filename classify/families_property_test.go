package classify_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/geoproxy/geoproxy/classify"
)

// post is a request with a whole body.
func post(target, contentType, body string) *classify.Request {
	r := get(target)
	r.Method = "POST"
	r.Header = map[string][]string{"Content-Type": {contentType}}
	r.Body = classify.Body{Prefix: []byte(body), Length: int64(len(body)), Whole: true}
	return r
}

func TestLargerImage(t *testing.T) {
	for _, key := range []string{"max_size", "width", "height", "cover_scale"} {
		grows(t, rapid.IntRange(1, 1e9), func(t *rapid.T) func(int) *classify.Request {
			path := rapid.SampledFrom([]string{"/cog/preview.png", "/cog/statistics"}).Draw(t, "path")
			with := rapid.SampledFrom([]string{"", "&bidx=1,2", "&height=20", "&max_size=99"}).Draw(t, "with")
			return func(n int) *classify.Request { return get(fmt.Sprintf("%s?url=x&%s=%d%s", path, key, n, with)) }
		})
	}
	grows(t, rapid.IntRange(1, 1e9), func(t *rapid.T) func(int) *classify.Request {
		return func(n int) *classify.Request { return get(fmt.Sprintf("/cog/bbox/1,2,3,4/%dx%[1]d.png?url=x", n)) }
	})
	grows(t, rapid.Float64Range(0, 1), func(t *rapid.T) func(float64) *classify.Request {
		form := rapid.SampledFrom([]string{"feature", "statistics", "bbox"}).Draw(t, "form")
		return func(size float64) *classify.Request {
			x, y := 180*size, 90*size
			if form == "bbox" {
				return get(fmt.Sprintf("/cog/bbox/%f,%f,%f,%f.tif?url=x", -x, -y, x, y))
			}
			return post("/cog/"+form+"?url=x", "application/json", fmt.Sprintf(
				`{"type":"Feature","geometry":{"type":"Polygon","coordinates":[[[%f,%f],[%f,%f],[%f,%f],[%[1]f,%[2]f]]]}}`, -x, -y, x, -y, x, y))
		}
	})
}
