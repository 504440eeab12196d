package classify_test

import (
	"fmt"
	"strings"
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

// listOf repeats an item so often, with a separator between.
func listOf(item, separator string, n int) string {
	return strings.TrimSuffix(strings.Repeat(item+separator, n), separator)
}

// More points of a way, of a trace, or on one side of a matrix.
func TestMorePoints(t *testing.T) {
	const pair, place = "[4.9,52.3]", `{"lat":52.3,"lon":4.9}`
	for name, build := range map[string]func(n int) *classify.Request{
		"osrm route": func(n int) *classify.Request { return get("/route/v1/car/" + listOf("4.9,52.3", ";", n)) },
		"osrm table": func(n int) *classify.Request { return get("/table/v1/car/" + listOf("4.9,52.3", ";", n)) },
		"osrm sources": func(n int) *classify.Request {
			return get("/table/v1/car/1,2;3,4?destinations=0&sources=" + listOf("1", ";", n))
		},
		"osrm line": func(n int) *classify.Request {
			return get("/match/v1/car/polyline(" + strings.Repeat("_p~iF~ps%7CU", n) + ")")
		},
		"osrm trip": func(n int) *classify.Request { return get("/trip/v1/car/" + listOf("4.9,52.3", ";", n)) },
		"osrm body": func(n int) *classify.Request {
			return post("/table/v1/car", "application/json", `{"coordinates":[`+listOf(pair, ",", n)+`]}`)
		},
		"valhalla targets": func(n int) *classify.Request {
			return post("/sources_to_targets", "application/json", `{"sources":[`+place+`],"targets":[`+listOf(place, ",", n)+`]}`)
		},
		"valhalla line": func(n int) *classify.Request {
			return post("/trace_route", "application/json", `{"encoded_polyline":"`+strings.Repeat("_p~iF~ps|U", n)+`"}`)
		},
		"valhalla contours": func(n int) *classify.Request {
			return post("/isochrone", "application/json", `{"costing":"auto","locations":[`+place+`],"contours":[`+listOf(`{"time":5}`, ",", n)+`]}`)
		},
		"ors matrix": func(n int) *classify.Request {
			return post("/v2/matrix/driving-car", "application/json", `{"locations":[`+listOf(pair, ",", n)+`]}`)
		},
		"ors jobs": func(n int) *classify.Request {
			return post("/optimization", "application/json", `{"vehicles":[{}],"jobs":[`+listOf("{}", ",", n)+`]}`)
		},
		"graphhopper route": func(n int) *classify.Request { return get("/route?profile=car" + strings.Repeat("&point=52.3,4.9", n)) },
		"graphhopper matrix": func(n int) *classify.Request {
			return post("/matrix", "application/json", `{"profile":"car","from_points":[`+pair+`],"to_points":[`+listOf(pair, ",", n)+`]}`)
		},
		"graphhopper trace": func(n int) *classify.Request {
			return post("/match", "application/gpx+xml", `<gpx>`+strings.Repeat(`<trkpt lat="1" lon="2"/>`, n)+`</gpx>`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			grows(t, rapid.IntRange(1, 300), func(t *rapid.T) func(int) *classify.Request {
				read := rapid.SampledFrom([]int{0, 0, 40, 200, 1000}).Draw(t, "read")
				return func(n int) *classify.Request {
					r := build(n)
					if len(r.Body.Prefix) > read && read > 0 { // what was read of it
						r.Body.Prefix, r.Body.Whole = r.Body.Prefix[:read], false
					}
					return r
				}
			})
		})
	}
}

// A longer reach, and more of anything that a number says.
func TestLargerReach(t *testing.T) {
	for _, form := range []string{
		`/isochrone|{"costing":"auto","locations":[{"lat":1,"lon":2}],"contours":[{"time":%d}]}`,
		`/isochrone|{"costing":"auto","locations":[{"lat":1,"lon":2}],"contours":[{"distance":%d},{"time":3}]}`,
		`/v2/isochrones/driving-car|{"locations":[[1,2]],"range":[%d]}`,
		`/v2/isochrones/driving-car|{"locations":[[1,2]],"range":[%d],"interval":60}`,
		`/v2/isochrones/driving-car|{"locations":[[1,2]],"range":[60,%d],"range_type":"distance"}`,
		`/v2/directions/driving-car|{"coordinates":[[1,2],[3,4]],"alternative_routes":{"target_count":%d}}`,
		`/isochrone?profile=car&point=1,2&time_limit=%d|`,
		`/isochrone?profile=car&point=1,2&distance_limit=%d|`,
		`/isochrone?profile=car&point=1,2&buckets=%d|`,
		`/route/v1/car/1,2;3,4?alternatives=%d|`,
		`/nearest/v1/car/1,2?number=%d|`,
	} {
		grows(t, rapid.IntRange(1, 1e9), func(*rapid.T) func(int) *classify.Request {
			return func(n int) *classify.Request {
				target, body, _ := strings.Cut(fmt.Sprintf(form, n), "|")
				if body == "" {
					return get(target)
				}
				return post(target, "application/json", body)
			}
		})
	}
}

func TestMorePlaces(t *testing.T) {
	for _, form := range []string{
		"/search?q=a&limit=%d", "/search?q=a&polygon_svg=1&limit=%d", "/search?ids=a&q=a&limit=%d", "/v1/search?text=a&size=%d", "/v1/autocomplete?text=a&size=%d",
		"/v1/reverse?point.lat=1&point.lon=2&size=%d", "/v1/reverse?point.lat=1&point.lon=2&boundary.circle.radius=%d",
		"/api?q=a&layer=b&limit=%d", "/reverse?lat=1&lon=2&limit=%d", "/reverse?lat=1&lon=2&radius=%d",
		"/search?collections=a&limit=%d", "/search?collections=a&sortby=b&limit=%d", "/aggregate?collections=a&limit=%d",
	} {
		grows(t, rapid.IntRange(1, 1e9), func(*rapid.T) func(int) *classify.Request {
			return func(n int) *classify.Request { return get(fmt.Sprintf(form, n)) }
		})
	}
	for _, form := range []string{"/lookup?osm_ids=%s", "/v1/place?ids=%s", "/search?ids=%s"} {
		grows(t, rapid.IntRange(1, 200), func(*rapid.T) func(int) *classify.Request {
			return func(n int) *classify.Request { return get(fmt.Sprintf(form, listOf("N1", ",", n))) }
		})
	}
	grows(t, rapid.IntRange(1, 300), func(t *rapid.T) func(int) *classify.Request {
		key := rapid.SampledFrom([]string{"intersects", "filter"}).Draw(t, "key")
		read := rapid.SampledFrom([]int{0, 60, 500}).Draw(t, "read")
		return func(n int) *classify.Request {
			r := post("/search", "application/json", `{"collections":["a"],"`+key+`":{"type":"LineString","coordinates":[`+listOf("[1,2]", ",", n)+`]}}`)
			if len(r.Body.Prefix) > read && read > 0 {
				r.Body.Prefix, r.Body.Whole = r.Body.Prefix[:read], false
			}
			return r
		}
	})
	grows(t, rapid.Float64Range(0, 1), func(t *rapid.T) func(float64) *classify.Request {
		body := rapid.Bool().Draw(t, "body")
		return func(size float64) *classify.Request {
			box := fmt.Sprintf("%f,%f,%f,%f", -180*size, -90*size, 180*size, 90*size)
			if body {
				return post("/search", "application/json", `{"sortby":[{}],"bbox":[`+box+`]}`)
			}
			return get("/search?sortby=a&bbox=" + box)
		}
	})
}

func TestMoreOfArcGIS(t *testing.T) {
	const service, form = "/arcgis/rest/services/A/", "application/x-www-form-urlencoded"
	for _, query := range []string{
		"FeatureServer/0/query?where=1%%3D1&resultRecordCount=%d", "FeatureServer/0/query?where=a%%3Db&resultRecordCount=%d",
		"FeatureServer/0/query?resultRecordCount=5&resultOffset=%d", "MapServer/export?bbox=1,2,3,4&size=%d,300",
		"ImageServer/exportImage?bbox=1,2,3,4&size=300,%d", "ImageServer/getSamples?geometry=1,2&sampleCount=%d",
		"GeocodeServer/findAddressCandidates?singleLine=a&maxLocations=%d",
	} {
		grows(t, rapid.IntRange(1, 1e9), func(*rapid.T) func(int) *classify.Request {
			return func(n int) *classify.Request { return get(service + fmt.Sprintf(query, n)) }
		})
	}
	for _, body := range []string{
		`FeatureServer/0/query|geometry={"rings":[[%s]]}|[1,2]|,`, `GeometryServer/buffer|geometries={"geometries":[%s]}|{"x":1,"y":2}|,`,
		`GeometryServer/project|geometries=%s|1,2|,`, `GPServer/T/execute|in={"features":[%s]}|{"geometry":{"x":1,"y":2}}|,`,
		`FeatureServer/0/applyEdits|adds=[%s]|{"geometry":{"x":1,"y":2}}|,`, `GeocodeServer/geocodeAddresses|addresses={"records":[%s]}|{"attributes":{}}|,`,
		`NAServer/R/solve|stops=%s|1,2|;`, `FeatureServer/0/query|objectIds=%s|1|,`, `MapServer/export|bbox=1,2,3,4&layers=show:%s|1|,`,
	} {
		part := strings.Split(body, "|")
		grows(t, rapid.IntRange(1, 300), func(*rapid.T) func(int) *classify.Request {
			return func(n int) *classify.Request {
				return post(service+part[0], form, fmt.Sprintf(part[1], listOf(part[2], part[3], n)))
			}
		})
	}
}

func TestMoreOfOverpass(t *testing.T) {
	query := func(text string) *classify.Request {
		return post("/api/interpreter", "text/plain", text)
	}
	grows(t, rapid.Float64Range(0, 1), func(t *rapid.T) func(float64) *classify.Request {
		form := rapid.SampledFrom([]string{"[timeout:3600];node[a=b](%s);out;", "[bbox:%s];way[a];>;out;", "[timeout:3600];way(%s);(._;>;);out geom;"}).Draw(t, "form")
		return func(size float64) *classify.Request {
			return query(fmt.Sprintf(form, fmt.Sprintf("%f,%f,%f,%f", -90*size, -180*size, 90*size, 180*size)))
		}
	})
	for _, form := range []string{"[timeout:%d];way;out;", "node(around:%d,1,2);out;", "<osm-script timeout=\"%d\"><query type=\"way\"></query></osm-script>"} {
		grows(t, rapid.IntRange(1, 1e9), func(*rapid.T) func(int) *classify.Request {
			return func(n int) *classify.Request { return query(fmt.Sprintf(form, n)) }
		})
	}
	for _, part := range []string{"node(1);", "node[a](1,2,3,4);", "way(1);>;", "node(id:1,2);<;", "foreach(>;);"} {
		grows(t, rapid.IntRange(1, 50), func(*rapid.T) func(int) *classify.Request {
			return func(n int) *classify.Request { return query("way(7);" + strings.Repeat(part, n) + "out;") }
		})
	}
}

func TestMoreOfPostgREST(t *testing.T) {
	for _, form := range []string{"/rpc/a?k=%d", "/rpc/a?limit=%d", "/rpc/a?limit=5&offset=%d"} {
		grows(t, rapid.IntRange(1, 1e9), func(*rapid.T) func(int) *classify.Request {
			return func(n int) *classify.Request { return get(fmt.Sprintf(form, n)) }
		})
	}
	named := classifier(t, classify.Config{Family: "postgrest"})
	rapid.Check(t, func(t *rapid.T) {
		form := rapid.SampledFrom([]string{"/a?limit=%d", "/a?b=eq.1&limit=%d", "/a?limit=5&offset=%d", "/a?order=b&select=*,c(*)&limit=%d"}).Draw(t, "form")
		a, b := rapid.IntRange(1, 1e9).Draw(t, "a"), rapid.IntRange(1, 1e9).Draw(t, "b")
		less, more := named.Estimate(get(fmt.Sprintf(form, min(a, b)))), named.Estimate(get(fmt.Sprintf(form, max(a, b))))
		if less.Seconds > more.Seconds {
			t.Fatalf("%s: %d costs %v s, %d costs %v s", form, min(a, b), less.Seconds, max(a, b), more.Seconds)
		}
	})
	rows := func(n int) *classify.Request { return post("/a", "application/json", "["+listOf("{}", ",", n)+"]") }
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.IntRange(1, 300).Draw(t, "a"), rapid.IntRange(1, 300).Draw(t, "b")
		if named.Estimate(rows(min(a, b))).Seconds > named.Estimate(rows(max(a, b))).Seconds {
			t.Fatalf("%d rows cost less than %d", max(a, b), min(a, b))
		}
	})
}

func TestMoreEntities(t *testing.T) {
	for _, form := range []string{
		"/v1.1/Things?$top=%d", "/v1.1/FeaturesOfInterest?$top=%d", "/v1.1/Things?$top=5&$skip=%d", "/v1.1/Things?$expand=Locations&$top=%d",
		"/v1.1/Things?$filter=a+eq+1&$top=%d", "/v1.1/Things(1)?$expand=Datastreams($top=%d)",
	} {
		grows(t, rapid.IntRange(1, 1e9), func(*rapid.T) func(int) *classify.Request {
			return func(n int) *classify.Request { return get(fmt.Sprintf(form, n)) }
		})
	}
	for _, part := range []string{"Things?$expand=|A|,", "Things?$expand=|A|/", "FeaturesOfInterest?$filter=st_within(feature,geography'LINESTRING(|1+2|,))')"} {
		form := strings.Split(part, "|")
		grows(t, rapid.IntRange(1, 50), func(*rapid.T) func(int) *classify.Request {
			return func(n int) *classify.Request {
				separator, end := form[2][:1], form[2][1:]
				return get("/v1.1/" + form[0] + listOf(form[1], separator, n) + end)
			}
		})
	}
	grows(t, rapid.IntRange(1, 300), func(*rapid.T) func(int) *classify.Request {
		return func(n int) *classify.Request {
			return post("/v1.1/CreateObservations", "application/json", `[{"dataArray":[`+listOf("[1]", ",", n)+`]}]`)
		}
	})
}
