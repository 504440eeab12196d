package classify

import (
	"cmp"
	"maps"
	"net/http"
	"time"
)

// rates are what one operation costs, in seconds per unit of each input.
type rates struct{ base, feature, vertex, cell, byte float64 }

// The bounds of an estimate, in seconds.
const (
	minSeconds = 1e-3
	maxSeconds = 3600
)

// perByte is the rate of bytes sent from a file: 100 MB/s.
const perByte = 1e-8

// fitted are the rates of each operation. Those of items, filter, nearest,
// count, tile, the buffers, dissolves, overlay and zonal were fitted by
// non-negative least squares to 2,098 requests on PostGIS 3.3; the rest are set
// by the nearest of them. They are the starting point of what is learned later:
// the rates of another PostGIS are a better guess than round ones.
var fitted = map[string]rates{
	"items":         {3.8e-4, 1.9e-6, 2.2e-7, 0, perByte},
	"filter":        {6.2e-4, 4.3e-6, 3.8e-7, 0, perByte},
	"nearest":       {5.3e-4, 3.1e-6, 2.9e-7, 0, perByte},
	"count":         {3.1e-4, 5.0e-7, 7.0e-9, 0, perByte},
	"tile":          {3.7e-4, 2.0e-6, 2.2e-7, 6.1e-8, perByte},
	"buffer":        {2.2e-4, 2.1e-5, 4.8e-6, 0, perByte},
	"buffer_body":   {4.3e-4, 3.7e-5, 2.7e-6, 0, perByte},
	"dissolve":      {0, 8.6e-5, 3.8e-6, 0, perByte},
	"dissolve_body": {2.1e-4, 2.0e-4, 1.2e-6, 0, perByte},
	"overlay":       {3.1e-4, 0, 2.8e-6, 0, perByte},
	"zonal":         {4.0e-4, 0, 2.8e-6, 6.1e-8, perByte},

	"item":      {3.8e-4, 1.9e-6, 2.2e-7, 0, perByte},
	"transform": {2.2e-4, 2.1e-5, 4.8e-6, 0, perByte},
	// A function of the database may do anything: the base of what is not
	// recognised, and the dearest rates of those measured.
	"function": {0.1, 2.0e-4, 4.8e-6, 0, perByte},
	// An index is kept, constraints and triggers run, a commit is waited for.
	"write":  {5.0e-3, 2.0e-4, 1.2e-6, 0, perByte},
	"static": {1.0e-2, 2.0e-6, 2.2e-7, 6.1e-8, perByte},
	"range":  {1.0e-3, 0, 0, 0, perByte},

	// A map reads rows as a tile does (its rates of rows and vertices) and draws
	// and encodes pixels as zonal reads cells. A map server's answer takes a few
	// milliseconds whatever is in it: it opens its configuration and a connection.
	"getmap":           {3.0e-3, 2.0e-6, 2.2e-7, 6.1e-8, perByte},
	"getlegendgraphic": {2.0e-3, 2.0e-6, 2.2e-7, 6.1e-8, perByte},
	// A few features at a point: nearest.
	"getfeatureinfo": {3.0e-3, 3.1e-6, 2.9e-7, 0, perByte},
	// Features as OGC API has them (items); GML takes no longer than GeoJSON.
	"getfeature":       {2.0e-3, 1.9e-6, 2.2e-7, 0, perByte},
	"getpropertyvalue": {2.0e-3, 1.9e-6, 2.2e-7, 0, perByte},
	"getgmlobject":     {2.0e-3, 1.9e-6, 2.2e-7, 0, perByte},
	// Cells that are read, and encoded: zonal.
	"getcoverage": {2.0e-3, 0, 0, 6.1e-8, perByte},
	// Writes, and locks, which are rows that are written.
	"transaction":        {5.0e-3, 2.0e-4, 1.2e-6, 0, perByte},
	"lockfeature":        {5.0e-3, 2.0e-4, 1.2e-6, 0, perByte},
	"getfeaturewithlock": {5.0e-3, 2.0e-4, 1.2e-6, 0, perByte},
	"createstoredquery":  {5.0e-3, 2.0e-4, 1.2e-6, 0, perByte},
	"dropstoredquery":    {5.0e-3, 2.0e-4, 1.2e-6, 0, perByte},
	"wcs-transaction":    {5.0e-3, 2.0e-4, 1.2e-6, 6.1e-8, perByte},
	"putstyles":          {5.0e-3, 2.0e-4, 1.2e-6, 0, perByte},

	// An image in a store is opened over the network, two reads of 10 ms; its
	// cells are read, warped and encoded as zonal reads them.
	"point":      {2.0e-2, 0, 0, 6.1e-8, perByte},
	"preview":    {2.0e-2, 0, 0, 6.1e-8, perByte},
	"crop":       {2.0e-2, 0, 2.8e-6, 6.1e-8, perByte},
	"statistics": {2.0e-2, 0, 2.8e-6, 6.1e-8, perByte},
	"info":       {base: 2.0e-2},

	// A search over prepared roads takes some milliseconds; a matrix shares its
	// searches among the pairs, a trace goes only from one road to the next, and
	// an isochrone visits all roads in reach: those of ten minutes (the unit of its
	// searches) are about what five routes visit.
	"route":        {1.0e-3, 1.0e-2, 2.8e-6, 0, perByte},
	"matrix":       {1.0e-3, 2.0e-4, 2.8e-6, 0, perByte},
	"isochrone":    {1.0e-2, 5.0e-2, 2.8e-6, 0, perByte},
	"match":        {1.0e-3, 1.0e-3, 2.8e-6, 0, perByte},
	"trip":         {1.0e-3, 2.0e-4, 2.8e-6, 0, perByte},
	"optimization": {1.0e-2, 2.0e-4, 2.8e-6, 0, perByte},
	"graph":        {1.0e-2, 2.0e-4, 2.8e-6, 0, perByte},
	"snap":         {1.0e-3, 1.0e-3, 2.8e-6, 0, perByte},
	"height":       {1.0e-3, 1.0e-5, 2.8e-6, 0, perByte}, // a cell read for each
	"status":       {base: minSeconds},

	// A search by words costs at least what is not recognised does (see
	// nominatim.go), and a place more than a row, for it has addresses in many
	// tables. A position is looked up as nearest looks it up.
	"geocode":      {0.1, 5.0e-3, 2.2e-7, 0, perByte},
	"autocomplete": {2.0e-2, 1.0e-3, 2.2e-7, 0, perByte},
	"reverse":      {1.0e-2, 1.0e-5, 2.2e-7, 0, perByte},
	"lookup":       {2.0e-3, 1.0e-3, 2.2e-7, 0, perByte},
	"batch":        {1.0e-2, 0.1, 2.2e-7, 0, perByte},
	// Items of a catalogue are filtered as rows are, but each that is sent is a
	// document of kilobytes, ten times the work of a feature's vertices.
	"search":    {5.0e-3, 4.3e-6, 3.8e-6, 0, perByte},
	"aggregate": {5.0e-3, 4.3e-6, 3.8e-7, 0, perByte},

	// Entities are rows that are joined: filter.
	"entities": {2.0e-3, 4.3e-6, 3.8e-7, 0, perByte},
	"rpc":      {0.1, 2.0e-4, 4.8e-6, 0, perByte}, // as function
	// A search through the tags of objects, on disk in the order of their places.
	"overpass": {1.0e-2, 4.3e-6, 3.8e-7, 0, perByte},
	// ArcGIS: a layer's rows as items, a map as getmap, an image as getcoverage.
	// Summing rows up costs what filtering them does; a task may do anything.
	"query":       {2.0e-3, 1.9e-6, 2.2e-7, 0, perByte},
	"summarize":   {2.0e-3, 4.3e-6, 3.8e-7, 0, perByte},
	"identify":    {3.0e-3, 3.1e-6, 2.9e-7, 0, perByte},
	"find":        {3.0e-3, 4.3e-6, 3.8e-7, 0, perByte},
	"export":      {3.0e-3, 2.0e-6, 2.2e-7, 6.1e-8, perByte},
	"exportimage": {2.0e-3, 0, 2.2e-7, 6.1e-8, perByte},
	"gp":          {0.1, 2.0e-4, 4.8e-6, 0, perByte},
	"service":     {base: 2e-3},

	"getcapabilities":       {base: 5e-3}, // as collections
	"describelayer":         {base: 2e-3},
	"getstyles":             {base: 2e-3},
	"getschemaextension":    {base: 2e-3},
	"describefeaturetype":   {base: 2e-3},
	"liststoredqueries":     {base: 2e-3},
	"describestoredqueries": {base: 2e-3},
	"describecoverage":      {base: 2e-3},
	"describeeocoverageset": {base: 5e-3},

	"landing":     {base: minSeconds},
	"conformance": {base: minSeconds},
	"api":         {base: 2e-3},
	"collections": {base: 5e-3}, // one with thousands of layers is not free
	"collection":  {base: minSeconds},
	"schema":      {base: minSeconds},
	"functions":   {base: 5e-3},
	"tileset":     {base: minSeconds},
	"tilejson":    {base: minSeconds},
	"style":       {base: minSeconds},
	"sprite":      {base: minSeconds},
	"glyphs":      {base: minSeconds},
}

// guide are the round rates of the profile "guide", the same for every operation.
var guide = rates{base: 1e-3, feature: 1e-3, vertex: 5e-6, cell: 1e-7, byte: perByte}

// byClass are the operations whose fitted rates hold for an operation that only
// a rule names.
var byClass = map[Class]string{
	Metadata: "collection", Tile: "tile", Map: "static", Typeahead: "items", Read: "items", Download: "items",
	Compute: "zonal", Async: "collection", Range: "range", MCP: "buffer_body", Write: "write",
}

// model turns inputs into seconds.
type model struct {
	ops     map[string]rates // every operation of a family or a rule
	unknown rates            // of what nothing recognises: its base is Config.DefaultCost
}

// newModel merges the profile's rates with those of the config. It takes a
// checked config.
func newModel(cfg Config) model {
	m := model{ops: make(map[string]rates, len(fitted)+len(cfg.Rules)), unknown: fitted["write"]}
	maps.Copy(m.ops, fitted)
	for i := range cfg.Rules {
		if _, known := m.ops[cfg.Rules[i].Op]; !known {
			m.ops[cfg.Rules[i].Op] = fitted[byClass[cfg.Rules[i].class(http.MethodGet)]].whole()
		}
	}
	if cfg.Profile == profileGuide {
		m.unknown = guide
		for op := range m.ops {
			m.ops[op] = guide
		}
	}
	m.unknown.base = cfg.defaultCost().Seconds()
	m.ops[opUnknown] = m.unknown
	for op, cost := range cfg.Costs {
		m.ops[op] = m.ops[op].with(cost)
	}
	return m
}

// whole gives an input that the operation does not have the rate of one that
// has it: a rule may name any.
func (r rates) whole() rates {
	items, zonal := fitted["items"], fitted["zonal"]
	return rates{
		base: r.base, byte: cmp.Or(r.byte, perByte), cell: cmp.Or(r.cell, zonal.cell),
		feature: cmp.Or(r.feature, items.feature), vertex: cmp.Or(r.vertex, items.vertex),
	}
}

func (r rates) with(c Cost) rates {
	set := func(rate *float64, d time.Duration) {
		if d > 0 {
			*rate = d.Seconds()
		}
	}
	set(&r.base, c.Base)
	set(&r.feature, c.PerFeature)
	set(&r.vertex, c.PerVertex)
	set(&r.cell, c.PerCell)
	set(&r.byte, c.PerByte)
	return r
}

// price makes an estimate of what a family read. It is low where the inputs
// that were only assumed make up more than half of the seconds.
func (m model) price(a answer) Estimate {
	r, known := m.ops[a.Op]
	if !known {
		r = m.unknown
	}
	a.Inputs, a.guess = a.clamp(), a.guess.clamp()
	a.Assumed = a.Assumed || a.guess != Inputs{}
	seconds := r.base + r.variable(a.Inputs)
	if a.Timeout > 0 { // when the upstream itself ends it
		seconds = min(seconds, a.Timeout.Seconds())
	}
	return Estimate{
		Call:    a.Call,
		Seconds: clampSeconds(seconds),
		Low:     a.unsure || 2*r.variable(a.guess) > max(seconds, minSeconds),
	}
}

// variable is what the inputs cost, without the base.
func (r rates) variable(in Inputs) float64 {
	return in.Features*r.feature + in.Vertices*r.vertex + in.Cells*r.cell + in.Bytes*r.byte
}

// clamp keeps the inputs in [0, 1e9].
func (in Inputs) clamp() Inputs {
	return Inputs{
		Features: clampInput(in.Features),
		Vertices: clampInput(in.Vertices),
		Cells:    clampInput(in.Cells),
		Bytes:    clampInput(in.Bytes),
	}
}

// clampInput is written so that NaN comes out as the dearest.
func clampInput(x float64) float64 {
	if x <= maxInput {
		return max(0, x)
	}
	return maxInput
}

func clampSeconds(s float64) float64 {
	if s <= maxSeconds {
		return max(minSeconds, s)
	}
	return maxSeconds
}
