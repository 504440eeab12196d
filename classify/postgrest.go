package classify

import (
	"bytes"
	"math"
	"net/http"
	"strings"
)

func init() {
	register(family{name: "postgrest", rank: rankPath + 75, recognise: recognisePostgREST})
}

// postgrestEmbedded is how many rows of another table are assumed to belong to
// one, where a select asks for them.
const postgrestEmbedded = 10

// recognisePostgREST reads PostgREST: rpc/{function} and the tables.
//
// A function that is called by GET runs in a transaction that only reads; by POST
// it may write. Where the config does not name the family, only the first is
// recognised: a POST to such a path may be anything.
func recognisePostgREST(v *view) (answer, bool) {
	rpc := v.n >= 2 && v.last(1) == "rpc"
	switch {
	case !v.forced && (!rpc || !v.read()):
		return answer{}, false
	case rpc && (v.read() || v.Method == http.MethodPost):
		return postgrestCall(v), true
	case v.n < 1:
		return answer{Call: Call{Op: "api", Class: Metadata, Replayable: true, Basis: "api", Inputs: Inputs{Features: 1}}}, v.read()
	case !v.read():
		return postgrestWrite(v), true
	}
	return postgrestRead(v), true
}

// postgrestAsk is what a query and the header say, in their dearest reading.
type postgrestAsk struct {
	limit, offset float64 // limit is -1 where nobody says
	embedded      float64 // rows for each
	chosen        bool    // rows are read that are not answered
	geometry      Geometry
}

func postgrestQuery(v *view, rpc bool) postgrestAsk {
	q := postgrestAsk{limit: -1, embedded: 1}
	for p := readQuery(v.Query); p.next(); {
		switch key, value := p.key, p.value; {
		case value == "":
		case key.is("limit"):
			q.limit = max(q.limit, value.amount())
		case rpc && isPostgrestLimit(string(key)):
			q.limit = max(q.limit, value.amount())
		case key.is("offset"):
			if x, ok := value.number(); !ok || x > 0 {
				q.offset = max(q.offset, value.amount())
			}
		case key.is("select"):
			for i := 0; i < len(value); {
				var c byte
				if c, i = value.at(i); c == '(' {
					q.embedded = min(q.embedded*postgrestEmbedded, maxInput)
				}
			}
		case key.is("columns"), key.is("on_conflict"):
		default: // order, a filter, an argument
			q.chosen = true
			if len(value) >= minText {
				q.geometry = q.geometry.add(countFilter(value))
			}
		}
	}
	// RFC 9110 14.2 has the range of a unit that is not bytes to the server.
	if r := v.Header.Get("Range"); r != "" && q.limit < 0 {
		from, to, _ := strings.Cut(strings.TrimPrefix(r, "items="), "-")
		first, okFirst := parseNumber(from)
		last, okLast := parseNumber(to)
		if okFirst && okLast && last >= first && first >= 0 {
			q.limit, q.offset = last-first+1, max(q.offset, first)
		}
	}
	for _, prefer := range v.Header["Prefer"] {
		q.chosen = q.chosen || strings.Contains(prefer, "count=exact")
	}
	return q
}

// isPostgrestLimit reports whether an argument of a function is, by its name, how
// many rows are wanted.
func isPostgrestLimit(name string) bool {
	switch name {
	case "limit", "max_rows", "max_features", "row_limit", "lim", "k", "n":
		return true
	}
	return false
}

// postgrestRead prices a read of a table: all of it where there is no limit.
func postgrestRead(v *view) answer {
	q := postgrestQuery(v, false)
	a := answer{Call: Call{Op: "items", Class: Read, Replayable: true, Collection: decodePath(v.last(0))}}
	rows := v.layerRows(-1)
	var b basis
	limit := q.limit
	if limit < 0 {
		limit = rows
		a.Class = Download
		if !v.sure.features {
			a.guess.Features = rows
		}
		b.text("all of ").number(rows).text(" rows").assumed(!v.sure.features)
	} else {
		b.text("limit=").number(limit)
	}
	if q.offset > 0 {
		b.text(" + offset=").number(q.offset)
		a.LaterPage = true
	}
	a.Features = min((q.offset+limit)*q.embedded, maxInput)
	if q.embedded > 1 {
		a.guess.Features = a.Features
		b.text(" x ").number(q.embedded).text(" embedded").assumed(true)
	}
	v.addVertices(&a, a.Features)
	v.timesVertices(&b)
	if q.chosen && rows > a.Features {
		a.Op = "filter"
		if !v.sure.features {
			a.guess.Features += rows - a.Features
		}
		a.Features = rows
		b.text(", ").number(rows).text(" rows scanned").assumed(!v.sure.features)
	}
	a.Vertices += q.geometry.Vertices
	if a.LaterPage || limit > downloadFeatures {
		a.Class = Download
	}
	a.Basis = b.String()
	return a
}

// postgrestCall prices a function: whatever it does, on the geometry it is given.
func postgrestCall(v *view) answer {
	q := postgrestQuery(v, true)
	a := answer{Call: Call{Op: "rpc", Class: Compute, Replayable: v.read(), Collection: decodePath(v.last(0))}, unsure: true, body: !v.read()}
	g := q.geometry
	if !v.read() {
		g = g.add(v.count())
		if b := bytes.TrimLeft(v.Body.Prefix, " \t\r\n"); len(b) > 0 && b[0] == '{' {
			d := v.readJSON(func(m jsonValue) {
				if isPostgrestLimit(string(m.name)) {
					q.limit = max(q.limit, m.amount())
				}
			})
			if !d.whole() {
				q.limit = max(q.limit, float64(v.assume.MaxLimit))
			}
		}
	}
	limit := q.limit
	if limit < 0 {
		limit = float64(v.assume.Features)
		a.guess.Features = limit
	}
	a.Features = min(math.Ceil(q.offset+limit)*q.embedded+g.Features, maxInput)
	a.Vertices = g.Vertices
	v.addVertices(&a, limit)
	var b basis
	b.text("function, ").count(limit, "row").assumed(q.limit < 0)
	if g.Vertices > 0 {
		b.text(", arguments of ").count(g.Vertices, "vertex")
	}
	a.Basis = b.String()
	return a
}

// postgrestWrite prices a change of a table by what is in its body; without a
// limit a PATCH or DELETE is of every row that its filter lets through.
func postgrestWrite(v *view) answer {
	q := postgrestQuery(v, false)
	g := v.count()
	a := answer{Call: Call{Op: "write", Class: Write, Collection: decodePath(v.last(0))}, body: true}
	a.Features, a.Vertices = max(1, g.Features), g.Vertices
	if v.Method == http.MethodPost {
		if first := bytes.TrimLeft(v.Body.Prefix, " \t\r\n"); len(first) > 0 && first[0] == '[' {
			rows := 0.0
			d := v.readJSON(func(jsonValue) { rows++ })
			a.Features = max(a.Features, d.count(rows, minFeatureBytes))
		}
	} else if q.limit < 0 {
		a.Features = max(a.Features, v.layerRows(-1))
		a.guess.Features = a.Features
	} else {
		a.Features = max(a.Features, q.limit)
	}
	var b basis
	a.Basis = b.text("write of ").count(a.Features, "row").text(", ").count(a.Vertices, "vertex").String()
	return a
}
