package classify

import "net/http"

func init() {
	// Before the geocoders, which have a "search" too.
	register(family{name: "stac", rank: rankPath + 50, recognise: recogniseSTAC})
}

// stacAsk is what a search asks for, in its dearest reading.
type stacAsk struct {
	limit    float64 // -1 where nobody says
	ids      float64 // at most, where the search is for them; 0 for any
	anyID    bool    // another reading asks for more than ids
	share    float64 // of the world; -1 where nobody says
	geometry Geometry
	scanned  bool // items are read that are not answered
	named    bool // something was asked for that only STAC has
	words    bool // places are searched by words, or items
	later    bool
	doc      document
}

// recogniseSTAC reads the item search of STAC API, by GET and by POST, which only
// reads, and its aggregation. Collections and items are OGC API's; what changes
// them is a write there as well.
func recogniseSTAC(v *view) (answer, bool) {
	action := v.last(0)
	post := v.Method == http.MethodPost
	if action != "search" && action != "aggregate" || !v.read() && !post {
		if v.forced {
			return stacOGC(v)
		}
		return answer{}, false
	}
	q := stacAsk{limit: -1, share: -1}
	q.readQuery(v)
	if post {
		q.doc = v.readJSON(q.member)
	}
	if !v.forced && (!q.named || q.words && !post) {
		return answer{}, false // see nominatim: by words it is as dear
	}
	a := answer{Call: Call{Op: "search", Class: Read, Replayable: true, LaterPage: q.later}, body: post}
	asked := q.limit
	if asked < 0 {
		asked = float64(v.assume.Limit)
	}
	limit := min(asked, float64(v.assume.MaxLimit))
	if !q.doc.whole() {
		limit = float64(v.assume.MaxLimit)
	}
	var b basis
	if q.ids > 0 && !q.anyID && q.ids < limit && q.doc.whole() {
		limit = q.ids
		b.count(q.ids, "id")
	} else {
		b.text("limit=").number(limit)
		if asked > limit {
			b.text(" (the most)")
		}
		if q.limit < 0 {
			b.text(" (default)")
			if !v.sure.limit {
				a.guess.Features = limit
			}
		}
	}
	if asked > downloadFeatures || q.later {
		a.Class = Download
	}
	a.Features = limit
	v.addVertices(&a, a.Features)
	v.timesVertices(&b)
	if rows := v.rows(q.share); (q.scanned || action == "aggregate") && rows > a.Features {
		if !v.sure.features {
			a.guess.Features += rows - a.Features
		}
		a.Features = rows
		b.text(", ").number(rows).text(" items scanned").assumed(!v.sure.features)
	}
	if action == "aggregate" {
		a.Op, a.Class, a.LaterPage = "aggregate", Compute, false
	}
	vertices := q.doc.count(q.geometry.Vertices, minVertexBytes)
	if a.Vertices += vertices; vertices > 0 {
		b.text(", geometry of ").count(vertices, "vertex")
	}
	if !q.doc.whole() {
		a.guess = a.Inputs
		b.text(", body not read whole")
	}
	a.Basis = b.String()
	return a, true
}

// stacOGC reads what is not a search as OGC API does; what is neither and does
// not only read changes a collection or items.
func stacOGC(v *view) (answer, bool) {
	if a, ok := recogniseOGCAPI(v); ok {
		return a, true
	}
	if v.read() {
		return answer{}, false
	}
	g := v.count()
	a := answer{Call: Call{Op: "write", Class: Write}, body: true}
	a.Features, a.Vertices = max(1, g.Features), g.Vertices
	var b basis
	a.Basis = b.text("write of ").count(a.Features, "feature").String()
	return a, true
}

func (q *stacAsk) readQuery(v *view) {
	for p := readQuery(v.Query); p.next(); {
		switch key, value := p.key, p.value; {
		case value == "":
		case key.is("limit"):
			q.limit = max(q.limit, value.amount())
		case key.is("ids"):
			q.named = true
			q.ids = max(q.ids, value.items())
		case key.is("collections"), key.is("datetime"):
			q.named = true
		case key.is("bbox"):
			q.named = true
			share, ok := value.worldShare()
			if !ok {
				share = 1
			}
			q.share = max(q.share, share)
		case key.is("intersects"):
			q.named = true
			q.add(value.appendText(make([]byte, 0, len(value))))
		case key.is("filter"):
			g := countFilter(value)
			q.geometry = q.geometry.add(g)
			q.scanned = q.scanned || g.Vertices == 0
		case key.is("sortby"), key.is("query"):
			q.scanned = true
		case key.is("q"), key.is("street"), key.is("city"):
			q.scanned, q.words = true, true
		case key.is("token"), key.is("page"), key.is("next"):
			q.later = q.later || !value.is("1")
		}
	}
}

// member takes in a member of a body.
func (q *stacAsk) member(m jsonValue) {
	switch {
	case string(m.text) == "null":
	case m.is("limit"):
		q.limit = max(q.limit, m.amount())
	case m.is("ids"):
		q.named = true
		if n := countJSON(m.text); n > 0 {
			q.ids = max(q.ids, n)
		} else {
			q.anyID = true
		}
	case m.is("collections"), m.is("datetime"):
		q.named = true
	case m.is("bbox"):
		q.named = true
		share := 1.0
		if len(m.text) > 2 && m.text[0] == '[' {
			if s, ok := escaped(m.text[1 : len(m.text)-1]).worldShare(); ok {
				share = s
			}
		}
		q.share = max(q.share, share)
	case m.is("intersects"):
		q.named = true
		q.add(m.text)
	case m.is("filter"):
		before := q.geometry.Vertices
		q.add(m.text)
		q.scanned = q.scanned || q.geometry.Vertices == before
	case m.is("sortby"):
		q.scanned = q.scanned || countJSON(m.text) > 0
	case m.is("query"), m.is("q"):
		q.scanned = true
	case m.is("token"), m.is("page"), m.is("next"):
		q.later = true
	}
}

// add counts a geometry, or a filter with some.
func (q *stacAsk) add(text []byte) {
	g, how := scanGeoJSON(text, nil)
	if how != complete {
		g = g.atBound(float64(len(text)))
	}
	q.geometry = q.geometry.add(g)
}
