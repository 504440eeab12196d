package proxy

import (
	"net/http"
	"strings"

	"github.com/geoproxy/geoproxy/classify"
)

// jobRule is the last column of the table of classes: who of a class may be
// answered with a job.
type jobRule uint8

const (
	jobNever jobRule = iota
	jobAsked         // only who asked, whatever jobs.when says
	jobWhen          // by jobs.when
)

// classJobs is that column.
var classJobs = map[classify.Class]jobRule{
	classify.Metadata: jobNever, classify.Tile: jobNever, classify.Map: jobAsked, classify.Typeahead: jobNever,
	classify.Read: jobWhen, classify.Download: jobAsked, classify.Compute: jobWhen, classify.Async: jobNever,
	classify.Range: jobNever, classify.MCP: jobNever, classify.Write: jobNever,
}

// mediaJob is the type of our job documents; who accepts it asks for a job.
const mediaJob = "application/vnd.geoproxy.job+json"

// jobPossible says whether the request may be answered with a job. To software
// that does not know it a 202 is a success, and its data end there: so it goes
// to those who asked, and where the route allows it to those who are known to
// read it.
func (v *Verdict) jobPossible(ask *Ask) bool {
	switch {
	case !v.jobOnRequest(ask):
		return false
	case v.steer.async, v.class.async, v.Tenant.Async, acceptsJob(ask.Header):
		return true
	case classJobs[v.Estimate.Class] == jobAsked, v.route.jobs.When != jobsAllowed:
		return false
	}
	return followsUnasked(v, ask.Header)
}

// jobOnRequest says whether a caller who asks for it may be answered with a job.
func (v *Verdict) jobOnRequest(ask *Ask) bool {
	j := &v.route.jobs
	switch {
	case classJobs[v.Estimate.Class] == jobNever, j.When == jobsNever, v.class.shadow, !v.Estimate.Replayable:
		return false
	case ask.Method == http.MethodHead, ask.Method == http.MethodOptions:
		return false
	case len(ask.Header["Range"]) > 0, len(ask.Header["Upgrade"]) > 0, isGRPC(ask.Header):
		return false
	}
	return ask.Body.Length <= j.MaxBody
}

func acceptsJob(h http.Header) bool {
	for _, line := range h["Accept"] {
		if strings.Contains(strings.ToLower(line), mediaJob) {
			return true
		}
	}
	return false
}

// neverUnasked are words in the names of software that takes a 202 for data.
var neverUnasked = []string{
	"gdal", "ogr", "qgis", "arcgis", "esri", "mapserver", "mapproxy", "mapcache", "geoserver", "geotools", "deegree", "geowebcache", "degree", "fme", "pystac", "cesium",
}

// followsUnasked says whether a caller that did not ask for a job is likely to
// read a 202 for what it is.
func followsUnasked(v *Verdict, h http.Header) bool {
	if v.Estimate.LaterPage {
		return false
	}
	switch v.Estimate.Family {
	case "wms", "wmts", "wfs", "wcs", "wps", "csw", "arcgis": // their clients read it as an empty answer
		return false
	}
	agent := strings.ToLower(first(h["User-Agent"]))
	for _, name := range neverUnasked {
		if strings.Contains(agent, name) {
			return false
		}
	}
	switch strings.ToLower(first(h["Sec-Fetch-Dest"])) {
	case "", "empty", "document":
	default:
		return false // an image, a script: nobody reads its body
	}
	accept := strings.ToLower(strings.Join(h["Accept"], ","))
	return accept == "" || strings.Contains(accept, "json") || strings.Contains(accept, "*/*")
}
