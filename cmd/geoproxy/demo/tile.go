package demo

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// maxZoom is the last zoom that has tiles; the data has nothing finer.
const maxZoom = 10

// worldLayers are those of the tile set "world", in the order in which they are
// drawn.
var worldLayers = []string{"countries", "states", "lakes", "rivers", "cities"}

// tile answers /tiles/{layer}/{z}/{x}/{y}.mvt or .png.
func tile(r *http.Request) (query, error) {
	names, err := layersOf(r.PathValue("layer"))
	if err != nil {
		return nil, err
	}
	row, form, _ := strings.Cut(r.PathValue("y"), ".")
	t := grid{size: mvtExtent, margin: 64}
	switch form {
	case "mvt":
	case "png":
		t.size, t.margin = tilePixels, 4
	default:
		return nil, notFound("tiles are .mvt or .png")
	}
	for i, text := range []string{r.PathValue("z"), r.PathValue("x"), row} {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, badRequest(fmt.Sprintf("%q is no tile number", text))
		}
		*[]*int{&t.z, &t.x, &t.y}[i] = n
	}
	if t.z < 0 || t.z > maxZoom || t.x < 0 || t.x >= 1<<t.z || t.y < 0 || t.y >= 1<<t.z {
		return nil, notFound("no such tile")
	}

	return func(ctx context.Context) (answer, error) {
		layers, read, err := t.read(names)
		if err != nil {
			return answer{}, err
		}
		a := answer{contentType: "application/vnd.mapbox-vector-tile"}
		if form == "mvt" {
			a.body = encodeMVT(layers)
		} else {
			a.contentType = "image/png"
			if a.body, err = drawPNG(layers); err != nil {
				return answer{}, err
			}
		}
		return a, pause(ctx, tilePace.of(read))
	}, nil
}

// read brings the features of the layers into the tile.
func (t grid) read(names []string) (layers []layerShapes, read work, err error) {
	for _, name := range names {
		c, err := lookup(name)
		if err != nil {
			return nil, read, err
		}
		l := layerShapes{name: name}
		for _, i := range c.inBox(t.bounds()) {
			f := &c.features[i]
			read.rows++
			read.vertices += f.vertices
			if s := t.clip(f.geometry); len(s.paths) > 0 {
				l.shapes, l.rows = append(l.shapes, s), append(l.rows, f)
			}
		}
		layers = append(layers, l)
	}
	return layers, read, nil
}

func layersOf(tileset string) ([]string, error) {
	if tileset == "world" {
		return worldLayers, nil
	}
	if !slices.Contains(worldLayers, tileset) {
		return nil, notFound(fmt.Sprintf("no tile set %q", tileset))
	}
	return []string{tileset}, nil
}

// tileJSON answers /tiles/{tileset}.json (TileJSON 3.0.0).
func tileJSON(r *http.Request) (answer, error) {
	tileset, ok := strings.CutSuffix(r.PathValue("file"), ".json")
	names, err := layersOf(tileset)
	if err == nil && !ok {
		err = notFound("a tile set's description ends in .json")
	}
	if err != nil {
		return answer{}, err
	}
	layers := make([]any, len(names))
	for i, name := range names {
		layers[i] = map[string]any{"id": name, "fields": map[string]string{}}
	}
	return jsonAnswer(map[string]any{
		"tilejson": "3.0.0", "name": tileset, "scheme": "xyz", "minzoom": 0, "maxzoom": maxZoom,
		"tiles":         []string{base(r) + "/tiles/" + tileset + "/{z}/{x}/{y}.mvt"},
		"bounds":        []float64{-180, -maxLatitude, 180, maxLatitude},
		"vector_layers": layers, "attribution": "Natural Earth",
	})
}

// style is a MapLibre style of the tile set "world".
func style(r *http.Request) (answer, error) {
	colour := func(name string, stroke bool) string {
		c := paints[name].fill
		if stroke {
			c = paints[name].stroke
		}
		return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)
	}
	layers := []any{map[string]any{
		"id": "sea", "type": "background", "paint": map[string]any{"background-color": fmt.Sprintf("#%02x%02x%02x", sea.R, sea.G, sea.B)},
	}}
	layer := func(id, kind, source string, paint map[string]any) {
		layers = append(layers, map[string]any{"id": id, "type": kind, "source": "world", "source-layer": source, "paint": paint})
	}
	layer("countries", "fill", "countries", map[string]any{"fill-color": colour("countries", false)})
	layer("borders", "line", "countries", map[string]any{"line-color": colour("countries", true), "line-width": 0.8})
	layer("states", "line", "states", map[string]any{"line-color": colour("states", true), "line-width": 0.6})
	layer("lakes", "fill", "lakes", map[string]any{"fill-color": colour("lakes", false)})
	layer("rivers", "line", "rivers", map[string]any{"line-color": colour("rivers", true), "line-width": 0.8})
	layer("cities", "circle", "cities", map[string]any{"circle-color": colour("cities", false), "circle-radius": 2})
	return jsonAnswer(map[string]any{
		"version": 8, "name": "Natural Earth",
		"sources": map[string]any{"world": map[string]any{"type": "vector", "url": base(r) + "/tiles/world.json"}},
		"layers":  layers,
	})
}
