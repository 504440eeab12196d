package demo

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/peterstace/simplefeatures/geom"
)

// selection is a query's WHERE: each geometry must be met, each property equal.
// The zero value selects everything.
type selection struct {
	meets      []geom.Geometry
	properties map[string]string
}

// notProperties are the query parameters that name no property.
var notProperties = []string{"limit", "offset", "bbox", "filter", "filter-lang", "f", "crs", "bbox-crs", "apikey"}

// readSelection reads bbox, filter and name=value.
func readSelection(params url.Values) (selection, error) {
	var s selection
	if text := params.Get("bbox"); text != "" {
		g, err := parseBBox(text)
		if err != nil {
			return s, err
		}
		s.meets = append(s.meets, g)
	}
	if lang := params.Get("filter-lang"); lang != "" && lang != "cql2-text" {
		return s, badRequest("filter-lang must be cql2-text")
	}
	if text := params.Get("filter"); text != "" {
		g, err := parseFilter(text)
		if err != nil {
			return s, err
		}
		s.meets = append(s.meets, g)
	}
	for name, values := range params {
		if !slices.Contains(notProperties, name) {
			if s.properties == nil {
				s.properties = make(map[string]string)
			}
			s.properties[name] = values[0]
		}
	}
	return s, nil
}

// parseBBox reads minx,miny,maxx,maxy in degrees. A box whose west is east of
// its east crosses the antimeridian and is two.
func parseBBox(text string) (geom.Geometry, error) {
	var v [4]float64
	parts := strings.Split(text, ",")
	if len(parts) != len(v) {
		return geom.Geometry{}, badRequest("bbox must have four numbers")
	}
	for i, part := range parts {
		var err error
		if v[i], err = strconv.ParseFloat(strings.TrimSpace(part), 64); err != nil || math.IsNaN(v[i]) || math.IsInf(v[i], 0) {
			return geom.Geometry{}, badRequest(fmt.Sprintf("bbox: %q is no number", part))
		}
	}
	if v[1] > v[3] {
		return geom.Geometry{}, badRequest("bbox: its south is north of its north")
	}
	box := func(west, east float64) geom.Geometry {
		return geom.NewEnvelope(geom.XY{X: west, Y: v[1]}, geom.XY{X: east, Y: v[3]}).AsGeometry()
	}
	if v[0] <= v[2] {
		return box(v[0], v[2]), nil
	}
	return geom.NewGeometryCollection([]geom.Geometry{box(v[0], 180), box(-180, v[2])}).AsGeometry(), nil
}

// filterForm is the part of CQL2 text that the service knows.
var filterForm = regexp.MustCompile(`(?is)^\s*S_INTERSECTS\s*\(\s*(?:geometry|geom)\s*,\s*(.+)\)\s*$`)

func parseFilter(text string) (geom.Geometry, error) {
	m := filterForm.FindStringSubmatch(text)
	if m == nil {
		return geom.Geometry{}, badRequest("filter must be S_INTERSECTS(geometry, <WKT>)")
	}
	g, err := geom.UnmarshalWKT(m[1])
	if err != nil {
		return g, badRequest("filter: " + err.Error())
	}
	return g, nil
}

// find lists the features that are selected, in their order, and how much had
// to be read to find them.
func (c *collection) find(where selection) (found []int, read work) {
	candidates := make([]int, len(c.features))
	for i := range candidates {
		candidates[i] = i
	}
	for _, g := range where.meets {
		var inside []int
		for _, part := range g.Dump() {
			inside = append(inside, c.inBox(boxOf(part))...)
		}
		candidates = slices.DeleteFunc(candidates, func(i int) bool { return !slices.Contains(inside, i) })
	}
	for _, i := range candidates {
		if f := &c.features[i]; f.selected(where, &read) {
			found = append(found, i)
		}
	}
	return found, read
}

func (f *feature) selected(where selection, read *work) bool {
	for name, value := range where.properties {
		if !f.matches(name, value) {
			return false
		}
	}
	for _, g := range where.meets {
		read.vertices += f.vertices
		if !geom.Intersects(f.geometry, g) {
			return false
		}
	}
	return true
}
