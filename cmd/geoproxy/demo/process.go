package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/peterstace/simplefeatures/geom"
)

// maxBody is the largest request body that a process reads, in bytes.
const maxBody = 8 << 20

// process computes one result from its inputs.
type process struct {
	id, title string
	pace      pace
	run       func(context.Context, inputs) ([]geom.GeoJSONFeature, error)
}

var processes = []process{
	{"buffer", "Everything within a distance of the features, merged; in degrees", bufferPace, runBuffer},
	{"union", "The features merged, by a property where one is named", unionPace, runUnion},
	{"overlay", "The parts of the features inside an area", overlayPace, runOverlay},
}

// inputs are a process's. Features come in the body, as GeoJSON or as a
// reference to rows of a collection.
type inputs struct {
	features []geom.GeoJSONFeature
	distance float64
	by       string
	area     geom.Geometry
}

func listProcesses(r *http.Request) (answer, error) {
	docs := make([]any, len(processes))
	for i, p := range processes {
		docs[i] = p.document(base(r))
	}
	return jsonAnswer(map[string]any{"processes": docs, "links": []link{{base(r) + "/processes", "self", "application/json", ""}}})
}

func describeProcess(r *http.Request) (answer, error) {
	p, err := processOf(r)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(p.document(base(r)))
}

func (p process) document(base string) map[string]any {
	return map[string]any{
		"id": p.id, "title": p.title, "version": "1.0.0", "jobControlOptions": []string{"sync-execute"},
		"links": []link{{
			base + "/processes/" + p.id + "/execution", "http://www.opengis.net/def/rel/ogc/1.0/execute", "application/json", p.title,
		}},
	}
}

func processOf(r *http.Request) (process, error) {
	i := slices.IndexFunc(processes, func(p process) bool { return p.id == r.PathValue("process") })
	if i < 0 {
		return process{}, notFound(fmt.Sprintf("no process %q", r.PathValue("process")))
	}
	return processes[i], nil
}

// execute runs a process and answers with its result itself, as OGC API
// Processes has it for one output asked for as a raw value.
func execute(r *http.Request) (query, error) {
	p, err := processOf(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, badRequest(err.Error())
	case len(body) > maxBody:
		return nil, failure{http.StatusRequestEntityTooLarge, "the body is above 8 MiB"}
	}
	in, err := readInputs(body, r.URL.Query())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (answer, error) {
		var read work
		for _, f := range in.features {
			read.rows++
			read.vertices += f.Geometry.DumpCoordinates().Length()
		}
		result, err := p.run(ctx, in)
		if err != nil {
			return answer{}, err
		}
		if err := pause(ctx, p.pace.of(read)); err != nil {
			return answer{}, err
		}
		return typedAnswer("application/geo+json", geom.GeoJSONFeatureCollection(result))
	}, nil
}

// readInputs reads an execute request, {"inputs": {...}}. A body that is
// GeoJSON itself stands for its features, with the other inputs in the query.
func readInputs(body []byte, params url.Values) (inputs, error) {
	var request struct {
		Type   string
		Inputs struct {
			Features json.RawMessage
			Distance float64
			By       string
			Area     json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return inputs{}, badRequest(err.Error())
	}
	raw := &request.Inputs
	if request.Type != "" {
		raw.Features, raw.By = body, params.Get("by")
		if text := params.Get("distance"); text != "" {
			var err error
			if raw.Distance, err = strconv.ParseFloat(text, 64); err != nil {
				return inputs{}, badRequest("distance must be a number")
			}
		}
	}

	in := inputs{distance: raw.Distance, by: raw.By}
	var err error
	if in.features, err = readFeatures(raw.Features); err != nil {
		return in, err
	}
	if len(raw.Area) > 0 {
		if in.area, err = geom.UnmarshalGeoJSON(raw.Area); err != nil {
			return in, badRequest("area: " + err.Error())
		}
	}
	return in, nil
}

// readFeatures reads a GeoJSON geometry, feature or collection of features, or
// {"collection": "countries", "where": "continent=Europe&bbox=..."}.
func readFeatures(raw json.RawMessage) ([]geom.GeoJSONFeature, error) {
	var head struct{ Type, Collection, Where string }
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, badRequest("features must be GeoJSON, or name a collection")
	}
	var err error
	switch {
	case head.Collection != "":
		return rowsOf(head.Collection, head.Where)
	case head.Type == "FeatureCollection":
		var fc geom.GeoJSONFeatureCollection
		if err = json.Unmarshal(raw, &fc); err == nil {
			return fc, nil
		}
	case head.Type == "Feature":
		var f geom.GeoJSONFeature
		if err = json.Unmarshal(raw, &f); err == nil {
			return []geom.GeoJSONFeature{f}, nil
		}
	default:
		var g geom.Geometry
		if g, err = geom.UnmarshalGeoJSON(raw); err == nil {
			return []geom.GeoJSONFeature{{Geometry: g}}, nil
		}
	}
	return nil, badRequest("features: " + err.Error())
}

func rowsOf(name, where string) ([]geom.GeoJSONFeature, error) {
	c, err := lookup(name)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, badRequest(fmt.Sprintf("no collection %q", name))
	}
	params, err := url.ParseQuery(where)
	if err != nil {
		return nil, badRequest("where: " + err.Error())
	}
	selected, err := readSelection(params)
	if err != nil {
		return nil, err
	}
	found, _ := c.find(selected)
	rows := make([]geom.GeoJSONFeature, 0, len(found))
	for _, i := range found {
		f := &c.features[i]
		rows = append(rows, geom.GeoJSONFeature{ID: f.id, Geometry: f.geometry, Properties: f.properties})
	}
	return rows, nil
}

func runBuffer(ctx context.Context, in inputs) ([]geom.GeoJSONFeature, error) {
	if !(in.distance > 0 && in.distance <= 90) {
		return nil, badRequest("distance must be above 0 and at most 90 degrees")
	}
	g, err := buffer(ctx, geometries(in.features), in.distance)
	return []geom.GeoJSONFeature{{Geometry: g}}, err
}

func runUnion(_ context.Context, in inputs) ([]geom.GeoJSONFeature, error) {
	groups := make(map[string][]geom.GeoJSONFeature)
	var names []string
	for _, f := range in.features {
		name := ""
		if v := f.Properties[in.by]; v != nil {
			name = fmt.Sprint(v)
		}
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], f)
	}
	slices.Sort(names)
	var result []geom.GeoJSONFeature
	for _, name := range names {
		g, err := geom.UnaryUnion(geometries(groups[name]))
		if err != nil {
			return nil, err
		}
		f := geom.GeoJSONFeature{Geometry: g, Properties: map[string]any{"members": len(groups[name])}}
		if in.by != "" {
			f.Properties[in.by] = name
		}
		result = append(result, f)
	}
	return result, nil
}

func runOverlay(ctx context.Context, in inputs) ([]geom.GeoJSONFeature, error) {
	if in.area.IsEmpty() {
		return nil, badRequest("area must be a GeoJSON geometry")
	}
	var result []geom.GeoJSONFeature
	for _, f := range in.features {
		if !f.Geometry.Envelope().Intersects(in.area.Envelope()) {
			continue
		}
		g, err := geom.Intersection(f.Geometry, in.area)
		if err != nil {
			return nil, err
		}
		if !g.IsEmpty() {
			result = append(result, geom.GeoJSONFeature{ID: f.ID, Geometry: g, Properties: f.Properties})
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return result, nil
}

func geometries(features []geom.GeoJSONFeature) geom.Geometry {
	all := make([]geom.Geometry, 0, len(features))
	for _, f := range features {
		all = append(all, f.Geometry)
	}
	return geom.NewGeometryCollection(all).AsGeometry()
}
