package classify

import "bytes"

// xmlRoots are the roots of the requests that the families read, by service.
// A root of a name that several services have says which by its attributes.
var xmlRoots = map[string]services{
	"GetMap":           serviceWMS,
	"GetFeatureInfo":   serviceWMS,
	"GetLegendGraphic": serviceWMS,
	"DescribeLayer":    serviceWMS,

	"GetTile": serviceWMTS,

	"GetFeature":            serviceWFS,
	"GetFeatureWithLock":    serviceWFS,
	"GetPropertyValue":      serviceWFS,
	"GetGmlObject":          serviceWFS,
	"DescribeFeatureType":   serviceWFS,
	"LockFeature":           serviceWFS,
	"Transaction":           serviceWFS,
	"ListStoredQueries":     serviceWFS,
	"DescribeStoredQueries": serviceWFS,
	"CreateStoredQuery":     serviceWFS,
	"DropStoredQuery":       serviceWFS,

	"GetCoverage":              serviceWCS,
	"DescribeCoverage":         serviceWCS,
	"DescribeEOCoverageSet":    serviceWCS,
	"ProcessCoverages":         serviceWCS,
	"ExecuteProcessingRequest": serviceWCS,
}

// xmlRequest is the element that an XML body asks with: its root, or what stands
// in the body of a SOAP envelope.
type xmlRequest struct {
	name string
	// services that it is of; 0 where it is of none that a family reads.
	services services
	dtd      bool
}

// readRoot finds the request in an XML body.
func readRoot(text []byte) (r xmlRequest) {
	var x xmlScan
	x.reset(text)
	for inBody := false; ; {
		switch x.next() {
		case xmlDone:
			if r.dtd = x.dtd; r.dtd {
				r.services = servicesIn(text)
			}
			return r
		case xmlStart:
			if x.depth == 1 && string(x.name) == "Envelope" {
				continue
			}
			if x.depth == 2 && !inBody {
				inBody = string(x.name) == "Body"
				continue
			}
			if x.depth > 1 && !inBody {
				continue
			}
			r.name = string(x.name[:min(len(x.name), maxRootName)])
			r.services = servicesOfRoot(&x, r.name)
			return r
		case xmlEnd, xmlText:
		}
	}
}

// maxRootName is longer than any root's name that is known.
const maxRootName = 32

func servicesOfRoot(x *xmlScan, name string) services {
	if value, ok := x.attr("service"); ok {
		if s := serviceOf(escaped(value)); s != serviceOther {
			return s
		}
		return 0
	}
	if s := xmlRoots[name]; s != 0 || name != "GetCapabilities" {
		return s
	}
	for i := range x.n { // GetCapabilities, by its namespace
		switch value := x.attrs[i].value; {
		case bytes.Contains(value, []byte("/wmts")):
			return serviceWMTS
		case bytes.Contains(value, []byte("/wms")):
			return serviceWMS
		case bytes.Contains(value, []byte("/wfs")):
			return serviceWFS
		case bytes.Contains(value, []byte("/wcs")):
			return serviceWCS
		}
	}
	return 0
}

// servicesIn gives every service that one of the roots in a text is of. It is
// for documents that are not read because of what stands before their root.
func servicesIn(text []byte) (s services) {
	for name, of := range xmlRoots {
		if s&of == 0 && bytes.Contains(text, []byte(name)) {
			s |= of
		}
	}
	if s == 0 && bytes.Contains(text, []byte("GetCapabilities")) {
		s = serviceWMS | serviceWMTS | serviceWFS | serviceWCS
	}
	return s
}

// narrow undoes an encoding of two or four bytes to a character, of ASCII. It
// gives nothing where the text has none.
func narrow(text []byte) []byte {
	if bytes.IndexByte(text, 0) < 0 {
		return nil
	}
	out := make([]byte, 0, len(text)/2+1)
	for _, c := range text {
		if c != 0 {
			out = append(out, c)
		}
	}
	return out
}

// hasDTD reports whether a text has a declaration of what parsers expand.
func hasDTD(text []byte) bool {
	return bytes.Contains(text, []byte("<!DOCTYPE")) || bytes.Contains(text, []byte("<!ENTITY"))
}
