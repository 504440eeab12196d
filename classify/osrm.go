package classify

import (
	"net/http"
	"strings"
)

func init() {
	register(family{name: "osrm", rank: rankPath + 10, recognise: recogniseOSRM})
}

// recogniseOSRM reads the HTTP API of OSRM, version 1:
// {service}/v1/{profile}/{coordinates}, which other engines answer too, and the
// same in a JSON body that is posted to {service}/v1/{profile}.
func recogniseOSRM(v *view) (answer, bool) {
	service, coordinates := v.last(3), v.last(0)
	if v.last(1) == "v1" && isOSRM(v.last(2)) && v.Method == http.MethodPost {
		service, coordinates = v.last(2), ""
		if service == "tile" {
			return answer{}, false
		}
	} else if v.last(2) != "v1" || !isOSRM(service) || !v.read() {
		return answer{}, false
	}
	var q routing
	if coordinates != "" {
		if service == "tile" {
			return osrmTile(v, coordinates)
		}
		if !isWaypoints(coordinates) {
			return answer{}, false
		}
		q.points = pathPoints(coordinates)
	}
	for p := readQuery(v.Query); p.next(); {
		switch key, value := p.key, p.value; {
		case key.is("sources"):
			n, all := indices(value)
			q.sources, q.everySource = max(q.sources, n), q.everySource || all
		case key.is("destinations"):
			n, all := indices(value)
			q.targets, q.everyTarget = max(q.targets, n), q.everyTarget || all
		case key.is("alternatives"):
			if value != "" && value != "false" {
				n := 1.0
				if value != "true" {
					n = value.amount()
				}
				q.alternatives = max(q.alternatives, n)
			}
		case key.is("number"):
			q.number = max(q.number, value.amount())
		}
	}
	if !v.read() {
		q.body(v)
	}
	switch service {
	case "route":
		if v.read() && q.points < 2 && q.alternatives == 0 {
			// What is left of a path whose ';' was taken for the beginning of
			// parameters. It is the cheaper reading, and needs no words of its own.
			return answer{Call: Call{Op: "route", Class: Read, Replayable: true, Basis: "route of 1 point", Inputs: Inputs{Features: 1, Vertices: q.points}}}, true
		}
		return q.route(v), true
	case "table":
		return q.matrix(v), true
	case "match":
		return q.match(v), true
	case "trip":
		return q.trip(v), true
	}
	return q.nearest(v), true
}

func isOSRM(service string) bool {
	switch service {
	case "route", "nearest", "table", "match", "trip", "tile":
		return true
	}
	return false
}

// isWaypoints reports whether a segment begins as points do.
func isWaypoints(s string) bool {
	return s[0] == '-' || isDigit(s[0]) || s[0] == '.' || strings.HasPrefix(s, "polyline") || s[0] == '%'
}

// indices counts the indices of a list like "0;5;7". The word "all", and nothing
// at all, are every point.
func indices(value escaped) (n float64, all bool) {
	if value == "" || value.is("all") {
		return 0, true
	}
	n = 1
	for i := 0; i < len(value); {
		var c byte
		if c, i = value.at(i); c == ';' {
			n++
		}
	}
	return n, false
}

// osrmTile reads tile({x},{y},{zoom}).mvt: the roads of a tile, for debugging.
func osrmTile(v *view, segment string) (answer, bool) {
	inside, ok := strings.CutPrefix(decodePath(segment), "tile(")
	if !ok {
		return answer{}, false
	}
	inside, _, _ = strings.Cut(inside, ")")
	x, rest, _ := strings.Cut(inside, ",")
	y, zoom, _ := strings.Cut(rest, ",")
	t := tile{layers: 1, size: 256, format: "mvt"}
	var okX, okY, okZ bool
	t.x, okX = small(x)
	t.y, okY = small(y)
	t.zoom, okZ = small(zoom)
	if !okX || !okY || !okZ {
		return answer{}, false
	}
	return t.price(v, answer{Call: Call{Replayable: true}}), true
}
