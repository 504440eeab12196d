package demo

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/peterstace/simplefeatures/geom"
	"github.com/peterstace/simplefeatures/rtree"
)

//go:embed data/*.geojson.gz
var files embed.FS

// feature is one row, with what its queries want to know of it beforehand.
type feature struct {
	id         string
	geometry   geom.Geometry
	bounds     rtree.Box
	vertices   int
	properties map[string]any
	// geojson is the feature as it is sent.
	geojson json.RawMessage
}

// collection is a table of features with a spatial index.
type collection struct {
	name, title string
	features    []feature
	byID        map[string]int
	index       *rtree.RTree
	vertices    int
}

// collections holds every table, each read when it is first asked for, so that
// starting costs nothing.
var collections = []struct {
	name string
	load func() (*collection, error)
}{
	{"countries", lazily("countries", "Countries, 1:50m")},
	{"states", lazily("states", "States of Australia, Brazil, Canada and the USA, 1:50m")},
	{"lakes", lazily("lakes", "Lakes, 1:50m")},
	{"rivers", lazily("rivers", "Rivers, 1:50m")},
	{"cities", lazily("cities", "Cities, 1:110m")},
}

func lazily(name, title string) func() (*collection, error) {
	return sync.OnceValues(func() (*collection, error) { return load(name, title) })
}

// lookup finds a collection; it is nil where there is none of that name.
func lookup(name string) (*collection, error) {
	for _, c := range collections {
		if c.name == name {
			return c.load()
		}
	}
	return nil, nil //nolint:nilnil // no collection is no error
}

func load(name, title string) (*collection, error) {
	packed, err := files.ReadFile("data/" + name + ".geojson.gz")
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var rows struct{ Features []json.RawMessage }
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}

	c := &collection{name: name, title: title, byID: make(map[string]int, len(rows.Features))}
	boxes := make([]rtree.BulkItem, 0, len(rows.Features))
	for i, row := range rows.Features {
		f := feature{geojson: row}
		var parsed struct {
			ID         string
			Geometry   json.RawMessage
			Properties map[string]any
		}
		if err := json.Unmarshal(row, &parsed); err != nil {
			return nil, fmt.Errorf("%s %d: %w", name, i, err)
		}
		// The files hold valid geometries only; a test sees to that.
		if f.geometry, err = geom.UnmarshalGeoJSON(parsed.Geometry, geom.NoValidate{}); err != nil {
			return nil, fmt.Errorf("%s %s: %w", name, parsed.ID, err)
		}
		f.id, f.properties = parsed.ID, parsed.Properties
		f.bounds = boxOf(f.geometry)
		f.vertices = f.geometry.DumpCoordinates().Length()
		c.byID[f.id] = i
		c.vertices += f.vertices
		c.features = append(c.features, f)
		boxes = append(boxes, rtree.BulkItem{Box: f.bounds, RecordID: i})
	}
	c.index = rtree.BulkLoad(boxes)
	return c, nil
}

// matches reports whether the feature has the property with that value, as a
// query string writes it.
func (f *feature) matches(name, value string) bool {
	v, ok := f.properties[name]
	return ok && strings.EqualFold(fmt.Sprint(v), value)
}

func boxOf(g geom.Geometry) rtree.Box {
	lo, hi, _ := g.Envelope().MinMaxXYs()
	return rtree.Box{MinX: lo.X, MinY: lo.Y, MaxX: hi.X, MaxY: hi.Y}
}
