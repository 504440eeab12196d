package maps_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/test/bed"
)

// python is Debian's, which finds its OWSLib.
const python = "/usr/bin/python3"

// Every client does the same through geoproxy as directly: it prints the same,
// after the same requests, and follows the URLs in the answers back to geoproxy.
func TestClients(t *testing.T) {
	b := bed.Start(t)
	b.StartTiTiler(t)
	b.StartTipg(t)
	b.StartPygeoapi(t)
	const (
		wms = "&LAYERS=parcels&STYLES=&BBOX=5.0,52.0,5.12,52.1&FORMAT=image/png&TILESIZE=256&OVERVIEWCOUNT=6&MINRESOLUTION=0.00002"
		png = "gdal_translate -q -of PNG -outsize 300 200 "
		out = " /vsistdout/"
		// Web Mercator, in the middle of the bed's ground.
		mercator = "-projwin 561000 6810000 565000 6806000"
	)
	for _, test := range []struct {
		name, server, script string
		atLeast              int // requests
	}{
		{"ogrinfo, WFS 2.0", b.MapServer, `ogrinfo -ro -so "WFS:http://$HOST/bed?SERVICE=WFS&VERSION=2.0.0" parcels -spat 5.05 52.05 5.06 52.06`, 3},
		{"ogr2ogr, WFS 2.0 in pages", b.MapServer, `ogr2ogr -f CSV /vsistdout/ "WFS:http://$HOST/bed?SERVICE=WFS&VERSION=2.0.0" parcels -spat 5.05 52.05 5.06 52.06 --config OGR_WFS_PAGE_SIZE 50 --config OGR_WFS_PAGING_ALLOWED YES`, 8},
		{"ogr2ogr, WFS 2.0, filter", b.MapServer, `ogr2ogr -f CSV /vsistdout/ "WFS:http://$HOST/bed?SERVICE=WFS&VERSION=2.0.0" parcels -where "landuse = 'water' AND value_eur > 800000"`, 3},
		{"ogr2ogr, WFS 1.1, filter", b.MapServer, `ogr2ogr -f CSV /vsistdout/ "WFS:http://$HOST/bed?SERVICE=WFS&VERSION=1.1.0" roads -where "name = 'Road 123'" -lco GEOMETRY=AS_WKT`, 3},
		{"ogr2ogr, WFS 1.0", b.MapServer, `ogr2ogr -f CSV /vsistdout/ "WFS:http://$HOST/bed?SERVICE=WFS&VERSION=1.0.0&MAXFEATURES=70" addresses`, 3},
		{"ogr2ogr, WFS, few rows of many bytes", b.MapServer, `ogr2ogr -f CSV /vsistdout/ "WFS:http://$HOST/bed?SERVICE=WFS&VERSION=2.0.0" districts -lco GEOMETRY=AS_WKT`, 3},
		{"ogr2ogr, OGC API Features", b.MapServer, `ogr2ogr -f CSV /vsistdout/ "OAPIF:http://$HOST/bed/ogcapi" parcels -limit 250 -oo PAGE_SIZE=100 -lco GEOMETRY=AS_WKT`, 4},
		{"ogr2ogr, OGC API Features of tipg", b.Tipg, `ogr2ogr -f CSV /vsistdout/ "OAPIF:http://$HOST" public.roads -limit 250 -oo PAGE_SIZE=100 -lco GEOMETRY=AS_WKT`, 4},
		{"ogr2ogr, vector tiles of tipg", b.Tipg, `mkdir -p 14/8422 && curl -sSf -o 14/8422/5407.mvt "http://$HOST/collections/public.roads/tiles/WebMercatorQuad/14/8422/5407" && ogr2ogr -f CSV /vsistdout/ MVT:14/8422/5407.mvt -lco GEOMETRY=AS_WKT`, 1},
		{"gdal_translate, WMS 1.3.0", b.MapServer, png + `-projwin 5.04 52.06 5.06 52.04 "WMS:http://$HOST/bed?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetMap&CRS=CRS:84` + wms + `"` + out, 2},
		{"gdal_translate, WMS 1.1.1", b.MapServer, png + `-projwin 5.04 52.06 5.06 52.04 "WMS:http://$HOST/bed?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&SRS=EPSG:4326` + wms + `"` + out, 2},
		{"gdal_translate, WCS 2.0.1", b.MapServer, `gdal_translate -q -of GTiff -projwin 5.02 52.04 5.03 52.03 "WCS:http://$HOST/bed?SERVICE=WCS&VERSION=2.0.1&COVERAGE=dem" out.tif && gdalinfo -checksum -nofl -nomd out.tif`, 3},
		{"gdal_translate, WMTS of MapProxy", b.MapProxy, png + mercator + ` "WMTS:http://$HOST/wmts/1.0.0/WMTSCapabilities.xml,layer=parcels"` + out, 2},
		{"gdal_translate, WMTS of MapCache", b.MapCache, png + mercator + ` "WMTS:http://$HOST/wmts/1.0.0/WMTSCapabilities.xml,layer=parcels"` + out, 2},
		{"gdal_translate, WMS of MapProxy", b.MapProxy, png + mercator + ` "WMS:http://$HOST/service?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&SRS=EPSG:3857&LAYERS=parcels&STYLES=&BBOX=556000,6800000,570000,6820000&FORMAT=image/png&TILESIZE=256&OVERVIEWCOUNT=4&MINRESOLUTION=2"` + out, 2},
		{"gdal_translate, tiles of MapProxy", b.MapProxy, png + mercator + ` "$(tms "http://$HOST/tiles/1.0.0/parcels/EPSG3857/\${z}/\${x}/\${y}.png?origin=nw" top)"` + out, 2},
		{"gdal_translate, TMS of MapCache", b.MapCache, png + mercator + ` "$(tms "http://$HOST/tms/1.0.0/parcels@GoogleMapsCompatible/\${z}/\${x}/\${y}.png" bottom)"` + out, 2},
		{"gdal_translate, XYZ of MapCache", b.MapCache, png + mercator + ` "$(tms "http://$HOST/gmaps/parcels@GoogleMapsCompatible/\${z}/\${x}/\${y}.png" top)"` + out, 2},
		{"gdal_translate, tiles of TiTiler", b.TiTiler, png + mercator + ` "$(tms "http://$HOST/cog/tiles/WebMercatorQuad/\${z}/\${x}/\${y}.png?url=` + b.Data + `/ortho.tif" top)"` + out, 2},
		{"OWSLib, WMS 1.3.0", b.MapServer, owslib(`
from owslib.wms import WebMapService
s = WebMapService(base + "/bed", version="1.3.0")
print(sorted(s.contents), s.getOperationByName("GetMap").methods)
print(digest(s.getmap(layers=["parcels"], srs="EPSG:4326", bbox=(5.04, 52.04, 5.06, 52.06), size=(256, 256), format="image/png")))
print(digest(s.getfeatureinfo(layers=["parcels"], query_layers=["parcels"], srs="EPSG:4326", bbox=(5.04, 52.04, 5.06, 52.06), size=(256, 256), xy=(100, 100), info_format="application/json")))`), 3},
		{"OWSLib, WMS exception", b.MapServer, owslib(`
from owslib.wms import WebMapService
from owslib.util import ServiceException
s = WebMapService(base + "/bed", version="1.1.1")
try:
    s.getmap(layers=["broken"], srs="EPSG:4326", bbox=(5.04, 52.04, 5.06, 52.06), size=(256, 256), format="image/png")
    print("no exception")
except ServiceException as e:
    print(e)`), 2},
		{"OWSLib, WFS 2.0", b.MapServer, owslib(`
from owslib.wfs import WebFeatureService
s = WebFeatureService(base + "/bed", version="2.0.0")
print(sorted(s.contents))
print(digest(s.getfeature(typename=["roads"], maxfeatures=20, outputFormat="geojson")))`), 2},
		{"OWSLib, WFS 1.1", b.MapServer, owslib(`
from owslib.wfs import WebFeatureService
s = WebFeatureService(base + "/bed", version="1.1.0")
print(digest(s.getfeature(typename=["parcels"], bbox=(5.04, 52.04, 5.041, 52.041), outputFormat="geojson")))`), 2},
		{"OWSLib, WCS 2.0.1", b.MapServer, owslib(`
from owslib.wcs import WebCoverageService
s = WebCoverageService(base + "/bed", version="2.0.1")
print(list(s.contents))
print(len(s.getCoverage(identifier=["dem"], format="image/tiff", subsets=[("long", 5.01, 5.02), ("lat", 52.01, 52.02)]).read()))`), 2},
		{"OWSLib, WMTS of MapProxy", b.MapProxy, owslib(`
from owslib.wmts import WebMapTileService
s = WebMapTileService(base + "/wmts/1.0.0/WMTSCapabilities.xml")
print(sorted(s.contents))
print(digest(s.gettile(layer="parcels", tilematrixset="webmercator", tilematrix="14", row=5408, column=8422, format="image/png")))`), 2},
		{"OWSLib, OGC API Features", b.MapServer, owslib(`
from owslib.ogcapi.features import Features
s = Features(base + "/bed/ogcapi/")
print(sorted(s.feature_collections()))
print(s.collection_items("parcels", limit=5, bbox=[5.04, 52.04, 5.05, 52.05]))`), 2},
		{"OWSLib, processes of pygeoapi", b.Pygeoapi, owslib(`
from owslib.ogcapi.processes import Processes
s = Processes(base)
print([p["id"] for p in s.processes()["processes"]], s.process("hello-world")["version"])`), 2},
		{"curl, a process of pygeoapi", b.Pygeoapi, `curl -sS --fail-with-body -H "Content-Type: application/json" -d '{"inputs":{"name":"bed","message":"hello"}}' "http://$HOST/processes/hello-world/execution"`, 1},
	} {
		t.Run(test.name, func(t *testing.T) { sameThroughGeoproxy(t, test.server, test.script, test.atLeast) })
	}
}

// A thousand pages, one after the other.
func TestAThousandPages(t *testing.T) {
	b := bed.Start(t)
	sameThroughGeoproxy(t, b.MapServer, `ogr2ogr -f CSV /vsistdout/ "WFS:http://$HOST/bed?SERVICE=WFS&VERSION=2.0.0" parcels -spat 5.0 52.0 5.0239 52.1 --config OGR_WFS_PAGE_SIZE 10 --config OGR_WFS_PAGING_ALLOWED YES`, 1000)
}

// sameThroughGeoproxy runs a script twice, with HOST a server and with HOST
// geoproxy in front of it.
func sameThroughGeoproxy(t *testing.T, server, script string, atLeast int) {
	t.Helper()
	r := bed.Record(t, server)
	proxy := inFront(t, r.Address)

	direct := shell(t, script, r.Address)
	want := r.Asked(t, r.Address)
	through := shell(t, script, proxy.Address)
	got := r.Asked(t, proxy.Address)

	if direct.err != nil || direct.out == "" {
		t.Fatalf("directly: %v\n%.2000q\n%.2000s", direct.err, direct.out, direct.errors)
	}
	if through.err != nil || direct.sum() != through.sum() {
		t.Errorf("directly it printed %s: %.2000q\nthrough geoproxy %s (%v): %.2000q\n%.2000s",
			direct.sum(), direct.out, through.sum(), through.err, through.out, through.errors)
	}
	if len(want) < atLeast {
		t.Errorf("it made %d requests, want %d or more", len(want), atLeast)
	}
	if !slices.Equal(want, got) {
		t.Errorf("directly it asked\n%.4000s\nand through geoproxy\n%.4000s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
	t.Logf("%d requests, %d bytes, sha256 %s: directly %.1f s, through geoproxy %.1f s",
		len(got), len(through.out), through.sum(), direct.took.Seconds(), through.took.Seconds())
}

// ended is how a client ended.
type ended struct {
	out, errors string // what it printed, the host replaced
	err         error  // nil is exit status 0
	took        time.Duration
}

func (e ended) sum() string {
	sum := sha256.Sum256([]byte(e.out))
	return hex.EncodeToString(sum[:6])
}

// functions are for the scripts: tms prints GDAL's description of a tile pyramid.
const functions = `
tms() { cat <<XML
<GDAL_WMS><Service name="TMS"><ServerUrl>$(sed 's/&/\&amp;/g' <<< "$1")</ServerUrl></Service>
<DataWindow><UpperLeftX>-20037508.34</UpperLeftX><UpperLeftY>20037508.34</UpperLeftY><LowerRightX>20037508.34</LowerRightX><LowerRightY>-20037508.34</LowerRightY><TileLevel>16</TileLevel><TileCountX>1</TileCountX><TileCountY>1</TileCountY><YOrigin>$2</YOrigin></DataWindow>
<Projection>EPSG:3857</Projection><BlockSizeX>256</BlockSizeX><BlockSizeY>256</BlockSizeY><BandsCount>4</BandsCount></GDAL_WMS>
XML
}
`

// owslib is a script in Python that has base, the server's URL, and digest, of
// what a file holds.
func owslib(body string) string {
	return python + ` - <<'PYTHON'
import hashlib, os
base = "http://" + os.environ["HOST"]
def digest(file): return hashlib.sha256(file.read()).hexdigest()
` + body + "\nPYTHON"
}

// shell runs a script in a folder of its own: GDAL keeps tiles and capabilities
// in the home folder, and would ask nobody the second time.
func shell(t *testing.T, script, host string) ended {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	home := t.TempDir()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", functions+script)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOST="+host, "HOME="+home, "GDAL_DEFAULT_WMS_CACHE_PATH="+filepath.Join(home, "wms"), "LC_ALL=C.UTF-8")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	err := cmd.Run()
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	clean := strings.NewReplacer(host, "HOST", home, "HOME")
	return ended{clean.Replace(out.String()), clean.Replace(errs.String()), err, time.Since(began)}
}
