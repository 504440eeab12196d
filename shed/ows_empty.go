package shed

import (
	"strings"

	"github.com/geoproxy/geoproxy/classify"
)

// emptyOWS gives the answer of an OGC web service that holds nothing: a
// transparent picture or tile, or a collection without features. Counts,
// documents and coverages have none.
func (r *Refusal) emptyOWS() (Body, bool) {
	d := &r.Dialect
	if d.Width > 0 && d.Height > 0 {
		return newSheet(d.Width, d.Height).encode(r.Format, true), true
	}
	if d.Service == "WMTS" && r.Class == classify.Tile {
		return Body{ContentType: "image/png", Bytes: emptyPNG}, true
	}
	if d.Service != "WFS" || r.Op != "getfeature" && r.Op != "filter" {
		return Body{}, false
	}
	switch format := strings.ToLower(r.Format); {
	case strings.Contains(format, "json"):
		return Body{ContentType: "application/geo+json", Bytes: emptyCollection}, true
	case format != "" && !strings.Contains(format, "gml") && !strings.Contains(format, "xml"):
		return Body{}, false
	}
	switch d.Version {
	case "1.0.0":
		return Body{ContentType: textXML, Bytes: emptyGML2}, true
	case "1.1.0":
		return Body{ContentType: "text/xml; subtype=gml/3.1.1; charset=UTF-8", Bytes: emptyGML31}, true
	}
	return Body{ContentType: "application/gml+xml; version=3.2", Bytes: emptyGML32}, true
}

// The collections. Their schemas want a time, and the same refusal has the
// same bytes, so it is the oldest there is.
var (
	emptyGML2 = []byte(xmlHead + `<wfs:FeatureCollection xmlns:wfs="http://www.opengis.net/wfs" xmlns:gml="http://www.opengis.net/gml">` +
		`<gml:boundedBy><gml:null>unknown</gml:null></gml:boundedBy></wfs:FeatureCollection>` + "\n")
	emptyGML31 = []byte(xmlHead + `<wfs:FeatureCollection xmlns:wfs="http://www.opengis.net/wfs" xmlns:gml="http://www.opengis.net/gml"` +
		` numberOfFeatures="0" timeStamp="1970-01-01T00:00:00Z"/>` + "\n")
	emptyGML32 = []byte(xmlHead + `<wfs:FeatureCollection xmlns:wfs="http://www.opengis.net/wfs/2.0" numberMatched="0" numberReturned="0"` +
		` timeStamp="1970-01-01T00:00:00Z"/>` + "\n")
)
