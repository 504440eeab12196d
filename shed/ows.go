package shed

import (
	"unicode/utf8"

	"github.com/geoproxy/geoproxy/classify"
)

// owsBody gives the refusal as an OGC web service would give an exception: as
// the report of the version that is spoken, or in the form asked for with
// EXCEPTIONS.
func (r *Refusal) owsBody() Body {
	switch r.Dialect.Exceptions {
	case classify.ExceptionsInImage, classify.ExceptionsBlank:
		if r.Dialect.Width > 0 && r.Dialect.Height > 0 {
			return r.picture()
		}
	case classify.ExceptionsJSON:
		return Body{ContentType: "application/json", Bytes: r.appendJSONExceptions(make([]byte, 0, problemSize))}
	case classify.ExceptionsXML:
	}
	report := reportOf(&r.Dialect)
	return Body{ContentType: report.contentType, Bytes: r.appendReport(make([]byte, 0, reportSize), report)}
}

// reportSize is that of nearly every report; a larger one grows it.
const reportSize = 896

// report is what one version of one service writes around an exception.
type report struct {
	contentType string
	head        string // up to the code
	middle      string // from after the attributes to the text
	foot        string // from after the text
	narrowing   string // the parameter to make smaller, where an exception may name one
}

const (
	xmlHead  = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	instance = ` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="`
	textXML  = "text/xml; charset=UTF-8"
	seXML    = "application/vnd.ogc.se_xml; charset=UTF-8"
)

// The reports by service and version: WMS 1.1.1 annex A.3 (its DTD is named,
// as every server does, and none is given), WMS 1.3.0 annex E.2, WFS 1.0.0 and
// WCS 1.0.0 (OGC-exception.xsd), and the ExceptionReport of OWS Common 1.0 (WFS
// 1.1), 1.1 (WFS 2.0, WCS 1.1, WMTS) and 2.0 (WCS 2.0).
var (
	reportWMS111 = report{
		contentType: seXML,
		head: xmlHead + `<!DOCTYPE ServiceExceptionReport SYSTEM "http://schemas.opengis.net/wms/1.1.1/exception_1_1_1.dtd">` +
			"\n" + `<ServiceExceptionReport version="1.1.1">` + "\n" + `<ServiceException code="`,
		middle: ">", foot: "</ServiceException>\n</ServiceExceptionReport>\n",
	}
	reportWMS130 = serviceException(textXML, "1.3.0", "wms/1.3.0/exceptions_1_3_0.xsd", "bbox")
	reportWFS100 = serviceException(textXML, "1.2.0", "wfs/1.0.0/OGC-exception.xsd", "maxfeatures")
	reportWFS110 = owsReport("http://www.opengis.net/ows", "1.0.0", "ows/1.0.0/owsExceptionReport.xsd", "maxFeatures")
	reportWFS200 = owsReport("http://www.opengis.net/ows/1.1", "2.0.0", "ows/1.1.0/owsExceptionReport.xsd", "count")
	reportWCS100 = serviceException(seXML, "1.2.0", "wcs/1.0.0/OGC-exception.xsd", "bbox")
	reportWCS110 = owsReport("http://www.opengis.net/ows/1.1", "1.1.0", "ows/1.1.0/owsExceptionReport.xsd", "BoundingBox")
	reportWCS201 = owsReport("http://www.opengis.net/ows/2.0", "2.0.1", "ows/2.0/owsExceptionReport.xsd", "subset")
	reportWMTS   = owsReport("http://www.opengis.net/ows/1.1", "1.0.0", "ows/1.1.0/owsExceptionReport.xsd", "TileMatrix")
)

func serviceException(contentType, version, schema, narrowing string) report {
	return report{
		contentType: contentType,
		head: xmlHead + `<ServiceExceptionReport version="` + version + `" xmlns="http://www.opengis.net/ogc"` + instance +
			`http://www.opengis.net/ogc http://schemas.opengis.net/` + schema + `">` + "\n" + `<ServiceException code="`,
		middle: ">", foot: "</ServiceException>\n</ServiceExceptionReport>\n",
		narrowing: narrowing,
	}
}

func owsReport(namespace, version, schema, narrowing string) report {
	return report{
		contentType: textXML,
		head: xmlHead + `<ows:ExceptionReport xmlns:ows="` + namespace + `"` + instance + namespace +
			` http://schemas.opengis.net/` + schema + `" version="` + version + `">` + "\n" + `<ows:Exception exceptionCode="`,
		middle: "><ows:ExceptionText>", foot: "</ows:ExceptionText></ows:Exception>\n</ows:ExceptionReport>\n",
		narrowing: narrowing,
	}
}

// reportOf finds the report of a dialect: of a version that is not known that
// of the service's newest, of no service that of OWS Common 1.1, which most
// services are built on.
func reportOf(d *classify.Dialect) *report {
	switch d.Service {
	case "WMS":
		if d.Version == "1.1.1" {
			return &reportWMS111
		}
		return &reportWMS130
	case "WFS":
		switch d.Version {
		case "1.0.0":
			return &reportWFS100
		case "1.1.0":
			return &reportWFS110
		}
		return &reportWFS200
	case "WCS":
		switch d.Version {
		case "1.0.0":
			return &reportWCS100
		case "1.1.0":
			return &reportWCS110
		}
		return &reportWCS201
	}
	return &reportWMTS
}

// appendReport writes the refusal as a report.
func (r *Refusal) appendReport(b []byte, p *report) []byte {
	var scratch [maxMessage]byte
	code, narrow := r.owsCode()
	b = append(b, p.head...)
	b = append(b, code...)
	b = append(b, '"')
	if narrow && p.narrowing != "" {
		b = append(b, ` locator="`...)
		b = append(b, p.narrowing...)
		b = append(b, '"')
	}
	b = append(b, p.middle...)
	b = appendXML(b, r.appendMessage(scratch[:0]), maxMessage)
	return append(b, p.foot...)
}

// owsCode is the code that fits the reason best, and whether it is about the
// size of what was asked for. That a service is busy is a case that the
// standards have no code for but "no other applies" (OWS Common 1.1, table 27),
// save that WFS 2.0 (table 3) has two of its own.
func (r *Refusal) owsCode() (code string, narrow bool) {
	wfs2 := r.Dialect.Service == "WFS" && r.Dialect.Version != "1.0.0" && r.Dialect.Version != "1.1.0"
	switch r.Reason {
	case NeverFits, OverBudget:
		return "InvalidParameterValue", true
	case Deadline, Upstream:
		if wfs2 {
			return "OperationProcessingFailed", false
		}
	case BadRequest:
		if wfs2 {
			return "OperationParsingFailed", false
		}
	case Rate, Concurrency, Dependency, Blocked, Draining, NoRoute, QueueDepth, QueueWait, Store, StoreFull:
	}
	return "NoApplicableCode", false
}

// appendJSONExceptions writes the refusal as a document that agents read like
// any other, with the members that GeoServer and MapServer answer
// EXCEPTIONS=application/json with.
func (r *Refusal) appendJSONExceptions(b []byte) []byte {
	code, _ := r.owsCode()
	b = r.appendProblem(b)
	b = append(b[:len(b)-1], `,"version":`...)
	b = appendString(b, r.Dialect.Version, maxVersion)
	b = append(b, `,"exceptions":[{"code":"`...)
	b = append(b, code...)
	b = append(b, `","text":"`...)
	b = append(b, r.title()...)
	return append(b, `"}]}`...)
}

// maxVersion is the longest version of a service.
const maxVersion = 8

// appendXML appends at most limit bytes of text as XML character data, cut at
// a character. What XML 1.0 cannot hold becomes a space.
func appendXML(b, text []byte, limit int) []byte {
	end := len(b) + limit
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			i++
			switch {
			case c == '&':
				if len(b)+5 > end {
					return b
				}
				b = append(b, "&amp;"...)
				continue
			case c == '<', c == '>':
				if len(b)+4 > end {
					return b
				}
				b = append(b, '&', 'l', 't', ';')
				if c == '>' {
					b[len(b)-3] = 'g'
				}
				continue
			case c < ' ', c == 0x7f:
				c = ' '
			}
			if len(b) == end {
				return b
			}
			b = append(b, c)
			continue
		}
		char, size := utf8.DecodeRune(text[i:])
		i += size
		if char == utf8.RuneError || char == 0xfffe || char == 0xffff {
			char = ' '
		}
		if len(b)+utf8.RuneLen(char) > end {
			return b
		}
		b = utf8.AppendRune(b, char)
	}
	return b
}
