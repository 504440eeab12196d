package shed

import (
	"strings"

	"github.com/geoproxy/geoproxy/classify"
)

// emptyBody gives the answer that holds nothing, where the operation has one:
// a collection or a tile. A document (a landing page, one feature, a TileJSON)
// has none, and is refused in its native form.
func (r *Refusal) emptyBody() (Body, bool) {
	switch r.Native {
	case classify.NativeRasterTile:
		// Whatever format was asked for: browsers and GDAL go by the bytes,
		// and neither JPEG nor every WebP can be transparent.
		return Body{ContentType: "image/png", Bytes: emptyPNG}, true
	case classify.NativeVectorTile:
		// A tile without layers is no bytes at all (Mapbox Vector Tile 2.1, 4.1).
		return Body{ContentType: "application/vnd.mapbox-vector-tile"}, true
	case classify.NativeOWS:
		return r.emptyOWS()
	case classify.NativeProblem:
	}
	if r.Op == "items" && (r.Format == "" || strings.Contains(r.Format, "json")) {
		return Body{ContentType: "application/geo+json", Bytes: emptyCollection}, true
	}
	return Body{}, false
}

var emptyCollection = []byte(`{"type":"FeatureCollection","features":[],"numberReturned":0}`)

// emptyPNG is a transparent picture of 256 x 256: one bit a pixel, a palette of
// one colour without opacity.
var emptyPNG = []byte("" +
	"\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x01\x00\x00\x00\x01\x00" +
	"\x01\x03\x00\x00\x00\x66\xbc\x3a\x25\x00\x00\x00\x03\x50\x4c\x54\x45\x00\x00\x00\xa7\x7a\x3d\xda" +
	"\x00\x00\x00\x01\x74\x52\x4e\x53\x00\x40\xe6\xd8\x66\x00\x00\x00\x1f\x49\x44\x41\x54\x78\xda\xed" +
	"\xc1\x01\x0d\x00\x00\x00\xc2\xa0\xf7\x4f\x6d\x0e\x37\xa0\x00\x00\x00\x00\x00\x00\x00\x00\xbe\x0d" +
	"\x21\x00\x00\x01\x60\xe4\x9d\x97\x00\x00\x00\x00\x49\x45\x4e\x44\xae\x42\x60\x82")
