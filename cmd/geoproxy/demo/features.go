package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/peterstace/simplefeatures/rtree"
)

const (
	defaultLimit = 10
	maxLimit     = 1000 // a larger one is clamped, as OGC API Features allows
)

type link struct {
	Href  string `json:"href"`
	Rel   string `json:"rel"`
	Type  string `json:"type,omitempty"`
	Title string `json:"title,omitempty"`
}

func landing(r *http.Request) (answer, error) {
	b := base(r)
	return jsonAnswer(map[string]any{
		"title":       "Natural Earth",
		"description": "Countries, states, lakes, rivers and cities of Natural Earth (public domain), with three processes.",
		"links": []link{
			{b + "/", "self", "application/json", "this document"},
			{b + "/conformance", "conformance", "application/json", "what is implemented"},
			{b + "/collections", "data", "application/json", "the collections"},
			{b + "/processes", "http://www.opengis.net/def/rel/ogc/1.0/processes", "application/json", "the processes"},
			{b + "/style.json", "style", "application/vnd.mapbox.style+json", "a map style"},
			{b + "/map", "alternate", "text/html", "a map"},
		},
	})
}

func conformance(*http.Request) (answer, error) {
	return jsonAnswer(map[string]any{"conformsTo": []string{
		"http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/core",
		"http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/geojson",
		"http://www.opengis.net/spec/ogcapi-features-3/1.0/conf/filter",
		"http://www.opengis.net/spec/ogcapi-processes-1/1.0/conf/core",
	}})
}

func listCollections(r *http.Request) (query, error) {
	b := base(r)
	return func(ctx context.Context) (answer, error) {
		docs := []any{}
		for _, entry := range collections {
			c, err := entry.load()
			if err != nil {
				return answer{}, err
			}
			docs = append(docs, c.document(b))
		}
		if err := pause(ctx, itemsPace.query); err != nil {
			return answer{}, err
		}
		return jsonAnswer(map[string]any{"collections": docs, "links": []link{{b + "/collections", "self", "application/json", ""}}})
	}, nil
}

func describeCollection(r *http.Request) (query, error) {
	c, err := collectionOf(r)
	if err != nil {
		return nil, err
	}
	b := base(r)
	return func(ctx context.Context) (answer, error) {
		if err := pause(ctx, itemsPace.query); err != nil {
			return answer{}, err
		}
		return jsonAnswer(c.document(b))
	}, nil
}

func (c *collection) document(base string) map[string]any {
	extent, _ := c.index.Extent()
	href := base + "/collections/" + c.name
	return map[string]any{
		"id": c.name, "title": c.title, "itemType": "feature",
		"extent": map[string]any{"spatial": map[string]any{
			"bbox": [][4]float64{{extent.MinX, extent.MinY, extent.MaxX, extent.MaxY}},
		}},
		"links": []link{
			{href, "self", "application/json", ""},
			{href + "/items", "items", "application/geo+json", c.title},
		},
	}
}

func collectionOf(r *http.Request) (*collection, error) {
	name := r.PathValue("collection")
	c, err := lookup(name)
	if err == nil && c == nil {
		err = notFound(fmt.Sprintf("no collection %q", name))
	}
	return c, err
}

func item(r *http.Request) (query, error) {
	c, err := collectionOf(r)
	if err != nil {
		return nil, err
	}
	i, ok := c.byID[r.PathValue("id")]
	if !ok {
		return nil, notFound(fmt.Sprintf("no item %q in %s", r.PathValue("id"), c.name))
	}
	f := &c.features[i]
	return func(ctx context.Context) (answer, error) {
		if err := pause(ctx, itemsPace.of(work{1, f.vertices})); err != nil {
			return answer{}, err
		}
		return answer{"application/geo+json", f.geojson}, nil
	}, nil
}

// items gives a page of a collection's features: those that a bbox, a filter
// and equal properties select.
func items(r *http.Request) (query, error) {
	c, err := collectionOf(r)
	if err != nil {
		return nil, err
	}
	params, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest(err.Error())
	}
	limit, err := count(params, "limit", defaultLimit, 1)
	if err != nil {
		return nil, err
	}
	limit = min(limit, maxLimit)
	offset, err := count(params, "offset", 0, 0)
	if err != nil {
		return nil, err
	}
	where, err := readSelection(params)
	if err != nil {
		return nil, err
	}
	self := base(r) + r.URL.Path

	return func(ctx context.Context) (answer, error) {
		matched, read := c.find(where)
		page := matched[min(offset, len(matched)):min(offset+limit, len(matched))]
		body := pageBody(c, page, len(matched), pageLinks(self, params, offset, limit, len(matched)))
		read.rows += min(offset, len(matched)) + len(page) // an offset reads what it drops
		for _, i := range page {
			read.vertices += c.features[i].vertices
		}
		if err := pause(ctx, itemsPace.of(read)); err != nil {
			return answer{}, err
		}
		return typedAnswer("application/geo+json", body)
	}, nil
}

func count(params url.Values, name string, missing, least int) (int, error) {
	text := params.Get(name)
	if text == "" {
		return missing, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		return 0, badRequest(fmt.Sprintf("%s must be a whole number from %d", name, least))
	}
	return n, nil
}

func pageLinks(self string, params url.Values, offset, limit, matched int) []link {
	at := func(offset int) string {
		p := maps.Clone(params)
		p.Set("limit", strconv.Itoa(limit))
		p.Set("offset", strconv.Itoa(offset))
		return self + "?" + p.Encode()
	}
	links := []link{{at(offset), "self", "application/geo+json", ""}}
	if offset+limit < matched {
		links = append(links, link{at(offset + limit), "next", "application/geo+json", ""})
	}
	if offset > 0 {
		links = append(links, link{at(max(0, offset-limit)), "prev", "application/geo+json", ""})
	}
	return links
}

func pageBody(c *collection, page []int, matched int, links []link) map[string]any {
	features := make([]json.RawMessage, len(page))
	for n, i := range page {
		features[n] = c.features[i].geojson
	}
	return map[string]any{
		"type": "FeatureCollection", "features": features,
		"numberMatched": matched, "numberReturned": len(page), "links": links,
	}
}

// inBox lists the features whose bounds meet the box, in their order.
func (c *collection) inBox(box rtree.Box) []int {
	var found []int
	_ = c.index.RangeSearch(box, func(i int) error { // the callback returns no error
		found = append(found, i)
		return nil
	})
	return found
}
