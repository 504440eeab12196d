package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestURLsWithoutSecretsStayAsTheyAre(t *testing.T) {
	for _, raw := range []string{
		"", "/", "/collections/parcels/items?limit=10&bbox=1,2,3,4&f=json",
		"/wms?SERVICE=WMS&REQUEST=GetMap&LAYERS=a,b&CRS=EPSG:3857&FILTER=%3CFilter%3E&STYLES=",
		"/tiles/12/2200/1343@2x.png", "/WebMercatorQuad/3/4/5.mvt?style=bright;dark",
		"https://example.org:8443/a%2Fb?x=%zz&y#top", "http://[::1]:8080/a",
		"/wps?DataInputs=a=1;b=2", "postgres://host/db?sslmode=require",
	} {
		if got := redactURL(raw); got != raw {
			t.Errorf("%s became %s", raw, got)
		}
	}
}

func TestURLsAreRedacted(t *testing.T) {
	for raw, want := range map[string]string{
		"/items?apikey=SECRET&limit=1":               "/items?apikey=REDACTED&limit=1",
		"/items?API-Key=SECRET":                      "/items?API-Key=REDACTED",
		"/items?api%5Fkey=SECRET":                    "/items?api%5Fkey=REDACTED",
		"/items?api%255Fkey=SECRET":                  "/items?api%255Fkey=REDACTED",
		"/items?limit=1;token=SECRET;x&f=json":       "/items?limit=1;token=REDACTED&f=json",
		"/items?token=SEC;RET&f=json":                "/items?token=REDACTED&f=json",
		"/items?x=1?token=SECRET":                    "/items?x=REDACTED",
		"/items?token%3DSECRET":                      "/items?REDACTED",
		"/items#access_token=SECRET&x=1":             "/items#access_token=REDACTED&x=1",
		"https://user:SECRET@example.org/a@2x?b":     "https://REDACTED@example.org/a@2x?b",
		"redis://:SEC/RET@10.0.0.1:6379/0":           "redis://REDACTED@10.0.0.1:6379/0",
		"postgres://gis:SECRET@db/gis?password=MORE": "postgres://REDACTED@db/gis?password=REDACTED",
		"//user:SECRET@example.org/":                 "//REDACTED@example.org/",
		"/a;jsessionid=SECRET/b":                     "/REDACTED/b",
		// Azure SAS, AWS, Google Cloud Storage, CloudFront, Mapbox, ArcGIS.
		"https://a.blob.core.windows.net/c/x.tif?sv=2024-01-01&sp=r&sig=SECRET": "https://a.blob.core.windows.net/c/x.tif?sv=2024-01-01&sp=r&sig=REDACTED",
		"/x.tif?X-Amz-Credential=SECRET&X-Amz-Date=1&X-Amz-Signature=MORE":      "/x.tif?X-Amz-Credential=REDACTED&X-Amz-Date=REDACTED&X-Amz-Signature=REDACTED",
		"/x?GoogleAccessId=SECRET&Expires=1&Signature=MORE":                     "/x?GoogleAccessId=REDACTED&Expires=1&Signature=REDACTED",
		"/x?X-Goog-Signature=SECRET":                                            "/x?X-Goog-Signature=REDACTED",
		"/x?Policy=SECRET&Key-Pair-Id=MORE":                                     "/x?Policy=REDACTED&Key-Pair-Id=REDACTED",
		"/styles/v1/x?access_token=SECRET":                                      "/styles/v1/x?access_token=REDACTED",
		// URLs and documents within parameters.
		"/cog/tiles/1/2/3?url=https%3A%2F%2Fb.example%2Fx.tif%3Fsig%3DSECRET": "/cog/tiles/1/2/3?url=REDACTED",
		"/cog?url=https%253A%252F%252Fu%253ASECRET%2540b.example%252F":        "/cog?url=REDACTED",
		"/mcp?arguments=%7B%22api_key%22%3A%22SECRET%22%7D":                   "/mcp?arguments=REDACTED",
		"/items?doc={%22api_k\\u0065y%22:%22SECRET%22}":                       "/items?doc=REDACTED",
		"/items?key[0]=SECRET&user[key]=MORE":                                 "/items?key[0]=REDACTED&user[key]=REDACTED",
		"/proxy/https%3A%2F%2Fb%2Fx%3Ftoken%3DSECRET/more":                    "/proxy/REDACTED/more",
		// What people typed.
		"/search?q=10+Downing+Street&format=json":                "/search?q=REDACTED&format=json",
		"/reverse?lat=51.5&lon=-0.1&zoom=18":                     "/reverse?lat=REDACTED&lon=REDACTED&zoom=18",
		"/v1/autocomplete?text=downing&focus.point.lat=51.5":     "/v1/autocomplete?text=REDACTED&focus.point.lat=REDACTED",
		"/route/v1/driving/13.388860,52.517037;13.39,52.52?x=1":  "/route/v1/driving/REDACTED?x=1",
		"/route/v1/driving/polyline(abc)":                        "/route/v1/driving/REDACTED",
		"/route/v1/driving/13.38%2C52.51%3B13.39%2C52.52":        "/route/v1/driving/REDACTED",
		"/geocoding/v5/mapbox.places/10%20Downing%20Street.json": "/geocoding/v5/mapbox.places/REDACTED",
		"/route?point=51.5,-0.1&point=51.6,-0.1&profile=car":     "/route?point=REDACTED&point=REDACTED&profile=car",
		"/geocode/search?text=downing":                           "/geocode/search?text=REDACTED",
	} {
		if got := redactURL(raw); got != want {
			t.Errorf("%s\n  became %s\n  want   %s", raw, got, want)
		}
	}
}

func TestWhatPeopleTypedIsShownWhenAskedTo(t *testing.T) {
	r := newRedactor(TenantConfig{}, true)
	for raw, want := range map[string]string{
		"/search?q=downing&apikey=SECRET":          "/search?q=downing&apikey=REDACTED",
		"/route/v1/driving/13.38,52.51;13.39,52.5": "/route/v1/driving/13.38,52.51;13.39,52.5",
	} {
		if got := r.url(raw); got != want {
			t.Errorf("%s became %s, want %s", raw, got, want)
		}
	}
}

func TestNamesOfTenantsAreRedacted(t *testing.T) {
	r := newRedactor(TenantConfig{From: []string{"query:member", "header:X-Member", "address"}}, false)
	if got := r.url("/items?Member=SECRET&limit=1"); got != "/items?Member=REDACTED&limit=1" {
		t.Error(got)
	}
	if got := r.header("x-member", "SECRET"); got != redacted {
		t.Error(got)
	}
	if got := redactURL("/items?member=ada"); got != "/items?member=ada" {
		t.Error(got)
	}
}

func TestHeadersAreRedacted(t *testing.T) {
	got := usualRedactor.headers(http.Header{
		"Authorization": {"Bearer SECRET"}, "Cookie": {"a=SECRET"}, "X-Api-Key": {"SECRET"}, "X-Amz-Security-Token": {"SECRET"},
		"Referer":            {"https://maps.example/?token=SECRET"},
		"X-Original-Url":     {"/items?apikey=SECRET"},
		"X-Debug":            {`{"password": "SECRET"}`},
		"Link":               {`<https://a.example/items?key=SECRET>; rel="next"`},
		"Accept":             {"text/html, */*"},
		"Content-Type":       {"application/json; charset=utf-8"},
		"Proxy-Authenticate": {"Basic realm=x"},
	})
	for name, values := range got {
		if strings.Contains(strings.Join(values, " "), "SECRET") {
			t.Errorf("%s: %s", name, values)
		}
	}
	if got.Get("Accept") != "text/html, */*" || got.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Errorf("too much: %v", got)
	}
	if got.Get("Referer") != "https://maps.example/?token=REDACTED" {
		t.Error(got.Get("Referer"))
	}
}

func TestErrorsAreRedacted(t *testing.T) {
	err := &url.Error{Op: "Get", URL: "https://u:SECRET@example.org/jwks?key=SECRET", Err: http.ErrHandlerTimeout}
	if got := redactError(err); strings.Contains(got, "SECRET") || !strings.Contains(got, "example.org/jwks") {
		t.Error(got)
	}
	if redactError(nil) != "" {
		t.Error("no error has a text")
	}
}

// However a secret's name and the secret are written, and wherever they stand,
// no reading of the output holds the secret.
func FuzzRedact(f *testing.F) {
	f.Add("/items?", uint8(0), uint8(0), uint16(0), "&f=json", uint8(0))
	f.Add("https://host/a%2?x=1;", uint8(3), uint8(2), uint16(0xffff), ";b", uint8(1))
	f.Add("/cog?url=https%3A%2F%2Fb%3F", uint8(9), uint8(1), uint16(3), "", uint8(2))
	f.Add("#", uint8(9), uint8(1), uint16(3), "%", uint8(3))
	names := []string{"apikey", "api_key", "key", "token", "access_token", "sig", "Signature", "X-Amz-Signature", "password", "X-Goog-Credential"}
	const secret = "hunter2zq"
	f.Fuzz(func(t *testing.T, before string, name, layers uint8, mask uint16, after string, form uint8) {
		if strings.Contains(unescapedAll(before)+"|"+unescapedAll(after), secret) {
			return
		}
		value := masked(secret, mask)
		written := masked(names[int(name)%len(names)], mask>>3)
		var core string
		switch form % 4 {
		case 0:
			core = written + "=" + value
		case 1:
			core = written + "=x;" + value
		case 2:
			core = "doc={\"" + written + "\": \"" + value + "\"}"
		case 3:
			core = "url=https://user:" + value + "@example.org/"
		}
		core = strings.NewReplacer("&", "").Replace(core)
		for range layers % 4 {
			core = url.QueryEscape(core)
		}
		// The name begins where a parameter does.
		raw := before + "&" + core + "&" + after
		if !strings.Contains(before, "?") && !strings.Contains(before, "#") {
			raw = before + "?" + core + "&" + after
		}
		got := redactURL(raw)
		if strings.Contains(unescapedAll(got), secret) {
			t.Errorf("%q became %q", raw, got)
		}
	})
}

// masked escapes the letters of a text that a mask names.
func masked(text string, mask uint16) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		if mask>>(i%16)&1 == 1 {
			b.WriteString("%" + string(hex[text[i]>>4]) + string(hex[text[i]&15]))
		} else {
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

func unescapedAll(text string) string {
	for range 12 {
		text = unescapedOnce(text)
	}
	return text
}
